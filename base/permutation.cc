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
      key_(key) {}

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
    const std::array<uint32_t, 4> mixed =
        Philox4x32({static_cast<uint32_t>(right), round, static_cast<uint32_t>(key_.high),
                    static_cast<uint32_t>(key_.high >> 32)},
                   {static_cast<uint32_t>(key_.low), static_cast<uint32_t>(key_.low >> 32)});
    const uint64_t next = left ^ (mixed[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace echopipe
