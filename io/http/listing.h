#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// A folder's whole content as a text: the path of a file below the folder a line, as plain bytes.
///
///     cat/1.jpg
///     ./dog/2.jpg
///
/// Threads  Immutable once made.
/// Cost     Its text, and 16 bytes a line.
class Manifest {
 public:
  static constexpr std::string_view kName = "manifest.txt";

  /// Lines may end in CR LF, begin with "./", be empty or come twice. Throws kCorrupt with the
  /// number of a line that is no path below the folder, and kEmpty if there is no path at all.
  Manifest(std::string text, const std::string& where);

  /// What is in a folder below ("" for the top, else ending in "/"), sorted bytewise. Nothing if
  /// there is no such folder.
  std::optional<std::vector<FolderEntry>> Entries(std::string_view folder) const;
  /// True if there is such a file.
  bool HasFile(std::string_view path) const;

 private:
  std::string_view Path(const std::pair<uint64_t, uint64_t>& line) const;
  std::vector<std::pair<uint64_t, uint64_t>>::const_iterator LowerBound(
      std::string_view path) const;

  std::string text_;
  std::vector<std::pair<uint64_t, uint64_t>> lines_;  // begin and length, by path
};

/// The names on a server's own page for a folder, sorted bytewise: nginx's JSON, or the links of an
/// HTML page (nginx, Apache, lighttpd, Caddy, Python) that lead right below `path`, the folder's
/// percent-encoded path, which ends in "/". What cannot be the name of an entry is passed over.
/// Throws kCorrupt for JSON that is no listing.
std::vector<FolderEntry> ParseIndexPage(std::string_view content_type, std::string_view page,
                                        std::string_view path, const std::string& where);

}  // namespace echopipe::internal
