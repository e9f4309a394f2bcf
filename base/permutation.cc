#include <algorithm>
#include <bit>

#include <echopipe/base/permutation.h>

namespace echopipe {
namespace {

// Enough for small ranges too, where each round mixes few bits.
constexpr uint32_t kRounds = 12;

}  // namespace

Permutation::Permutation(uint64_t n, const RandomKey& key)
    : n_(n),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2)),
      key_(key),
      swap_(RoundBits(0, kRounds) & 1) {}

uint64_t Permutation::operator()(uint64_t i) const {
  do {
    i = Encrypt(i);
  } while (i >= n_);
  return i;
}

uint64_t Permutation::Encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (RoundBits(right, round) & mask);
    left = right;
    right = next;
  }
  const uint64_t encrypted = left << half_bits_ | right;
  return encrypted <= 1 ? encrypted ^ swap_ : encrypted;
}

uint32_t Permutation::RoundBits(uint64_t half, uint32_t round) const {
  return Philox4x32({static_cast<uint32_t>(half), round, static_cast<uint32_t>(key_.high),
                     static_cast<uint32_t>(key_.high >> 32)},
                    {static_cast<uint32_t>(key_.low), static_cast<uint32_t>(key_.low >> 32)})[0];
}

}  // namespace echopipe
