#include <array>

#include <echopipe/io/formats/compression.h>

namespace echopipe::internal {

std::string_view CompressionOf(std::string_view begin) {
  struct Magic {
    std::string_view bytes;
    std::string_view name;
  };
  using namespace std::string_view_literals;
  constexpr std::array<Magic, 6> kMagics = {{{"\x1f\x8b"sv, "gzip"},
                                             {"\x28\xb5\x2f\xfd"sv, "zstd"},
                                             {"BZh"sv, "bzip2"},
                                             {"\xfd\x37zXZ\0"sv, "xz"},
                                             {"\x04\x22\x4d\x18"sv, "lz4"},
                                             {"PK\x03\x04"sv, "zip"}}};
  for (const Magic& magic : kMagics) {
    if (begin.starts_with(magic.bytes)) return magic.name;
  }
  return {};
}

}  // namespace echopipe::internal
