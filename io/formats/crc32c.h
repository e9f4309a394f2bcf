#pragma once

#include <cstdint>
#include <span>

namespace echopipe::internal {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4). Precondition: less than 2 GiB.
uint32_t Crc32c(std::span<const uint8_t> bytes);

/// The form in which TFRecord stores it: turned, and a constant added, so that the checksum of
/// bytes that hold checksums is a good one too.
uint32_t MaskedCrc32c(std::span<const uint8_t> bytes);

}  // namespace echopipe::internal
