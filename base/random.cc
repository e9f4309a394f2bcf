#include <algorithm>
#include <cmath>

#include <echopipe/base/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace echopipe {

uint64_t HashBytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

RandomKey HashToKey(std::span<const uint64_t> words) {
  // The words are hashed as little-endian bytes; the machines we build for are little-endian.
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const XXH128_hash_t hash = XXH3_128bits(words.data(), words.size_bytes());
  return {.low = hash.low64, .high = hash.high64};
}

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

RandomStream::RandomStream(const RandomKey& key)
    : key_{static_cast<uint32_t>(key.low), static_cast<uint32_t>(key.low >> 32)},
      counter_{0, 0, static_cast<uint32_t>(key.high), static_cast<uint32_t>(key.high >> 32)} {}

uint32_t RandomStream::Next() {
  if (used_ == block_.size()) {
    block_ = Philox4x32(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[used_++];
}

uint32_t RandomStream::Below(uint32_t n) {
  uint64_t product = uint64_t{Next()} * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t threshold = -n % n;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{Next()} * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

int64_t RandomStream::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Below(static_cast<uint32_t>(high - low + 1)));
}

double RandomStream::Uniform() {
  const uint64_t high = Next();
  const uint64_t low = Next();
  return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

// Built without fused multiply-add, whose rounding would differ between machines.
double RandomStream::Uniform(double low, double high) {
  const double value = low + (high - low) * Uniform();
  return std::min(value, std::nextafter(high, low));  // the sum may round up to `high`
}

}  // namespace echopipe
