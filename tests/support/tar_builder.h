#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace echopipe::testing {

/// Makes tar archives byte by byte, right ones and wrong ones.
class TarBuilder {
 public:
  enum class Magic { kUstar, kGnu, kV7 };

  /// The fields of a header as they stand in it.
  struct Header {
    std::string name = {};
    std::string size = {};  ///< 12 bytes at most, as written
    char type = '0';
    Magic magic = Magic::kUstar;
    std::string prefix = {};
    bool signed_checksum = false;
  };

  /// A header block with its checksum.
  TarBuilder& AddHeader(const Header& header);
  /// Data and its padding.
  TarBuilder& AddData(std::string_view data);
  /// A regular file.
  TarBuilder& AddFile(const std::string& name, std::string_view data, Magic magic = Magic::kUstar);
  /// An entry of this type that holds `data`: 'L', 'K', 'x', 'g'.
  TarBuilder& AddExtension(char type, std::string_view data);
  /// The two zero blocks.
  TarBuilder& AddEnd();
  TarBuilder& AddBytes(std::string_view bytes);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// A size field: 11 octal digits.
std::string OctalSize(uint64_t size);
/// A pax record "length key=value\n".
std::string PaxRecord(std::string_view key, std::string_view value);

}  // namespace echopipe::testing
