#include <cstddef>
#include <cstdint>
#include <span>

#include <echopipe/pipeline/stages/image_formats.h>

namespace echopipe::internal {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;
constexpr size_t kEntryBytes = 12;

// Numbers at places inside a TIFF structure; 0 for what lies outside.
class TiffReader {
 public:
  TiffReader(std::span<const uint8_t> bytes, bool little_endian)
      : bytes_(bytes), little_endian_(little_endian) {}

  uint32_t Short(size_t at) const { return Number(at, 2); }
  uint32_t Long(size_t at) const { return Number(at, 4); }

 private:
  uint32_t Number(size_t at, size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      number = number << 8 | bytes_[at + (little_endian_ ? size - 1 - i : i)];
    }
    return number;
  }

  std::span<const uint8_t> bytes_;
  bool little_endian_;
};

}  // namespace

// Source: CIPA DC-008 (EXIF 2.32), sections 4.5.2 and 4.6.4; TIFF 6.0, section 2.
int ExifOrientation(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const TiffReader reader(tiff, tiff[0] == 'I');
  if (reader.Short(2) != 42) return 1;
  const size_t directory = reader.Long(4);
  const size_t entries = reader.Short(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (reader.Short(entry) != kOrientationTag) continue;
    const uint32_t value = reader.Short(entry + 8);
    const bool sound = reader.Short(entry + 2) == kShortType && reader.Long(entry + 4) == 1 &&
                       value >= 1 && value <= 8;
    return sound ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace echopipe::internal
