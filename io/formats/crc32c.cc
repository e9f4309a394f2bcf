#include <bit>

#include <isa-l/crc.h>

#include <echopipe/io/formats/crc32c.h>

namespace echopipe::internal {

uint32_t Crc32c(std::span<const uint8_t> bytes) {
  // It reads alone, whatever its signature says.
  auto* data = const_cast<unsigned char*>(bytes.data());
  return ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0U);
}

// The constant: tensorflow/core/lib/hash/crc32c.h, kMaskDelta.
uint32_t MaskedCrc32c(std::span<const uint8_t> bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xa282ead8U;
}

}  // namespace echopipe::internal
