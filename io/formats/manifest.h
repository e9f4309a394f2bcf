#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/io/formats/file_listing.h>
#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// Which columns of a manifest are what.
struct ManifestColumns {
  std::string path = "path";
  /// Set: each record must have it, and "" is none. Else it is "label", where there is one.
  std::optional<std::string> label = {};
};

/// The records that manifests name: tables of files with their labels and further fields.
///
///     path,label,text                      {"path": "cat/1.jpg", "label": 3, "text": "a cat"}
///     cat/1.jpg,3,a cat
///
/// Threads  Immutable once made.
/// Cost     A record takes its line, and eight bytes.
class ManifestListing final : public FileListing {
 public:
  uint64_t size() const override { return begins_.size(); }
  std::string Path(uint64_t i) const override;
  /// The path as it is written, without "./".
  std::string Key(uint64_t i) const override { return std::string(RowAt(i).path); }
  std::optional<int64_t> Label(uint64_t i) const override { return RowAt(i).label; }
  std::vector<Field> Fields(uint64_t i) const override;
  /// The manifest.
  const std::string& Root(uint64_t i) const override;
  uint64_t Fingerprint() const override;

 private:
  friend class ManifestParser;

  struct Row {
    std::string_view path = {};
    std::optional<int64_t> label = {};
    std::string_view fields = {};  // a name's number and a text each
  };
  struct Manifest {
    std::string uri;
    uint64_t first = 0;  // record
  };

  Row RowAt(uint64_t i) const;

  std::vector<Manifest> manifests_;
  std::vector<std::string> names_;  // of fields
  std::string rows_;                // one behind the other
  std::vector<uint64_t> begins_;    // of each in rows_
};

/// Reads manifests: CSV with a header (RFC 4180) or JSON lines, as their names end in .csv, or
/// .jsonl or .ndjson.
///
/// Paths    From the folder that the manifest lies in. A manifest of this machine may name any
///          path and http:// uris; one from a server only what lies below it.
/// Fields   Of CSV as text; of JSON strings as they are, null as nothing, all else as JSON.
/// Errors   `where` is the manifest and the line. kCorrupt: what is not of the format, a column or
///          path that is missing, a label that is no integer, a path that may not be. kEmpty: no
///          record. kLimitExceeded: over 1 GiB, 100 million records, 256 fields, 1 MiB a line.
///          Those of reading them.
/// Threads  Blocks while they are read.
ManifestListing ReadManifests(const std::vector<std::string>& uris, const ManifestColumns& columns,
                              Storage& storage);

/// True for the names above.
bool IsManifestName(std::string_view name);

}  // namespace echopipe::internal
