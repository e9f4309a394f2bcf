#pragma once

#include <array>
#include <cstdint>

#include <echopipe/base/export.h>
#include <echopipe/base/random.h>

namespace echopipe {

/// The random numbers of an echo point: one for each draw, the same whichever were asked for
/// before.
///
/// Draw k takes word k % 4 of Philox's block k / 4, by Lemire's method ("Fast random integer
/// generation in an interval", 2019); in the rare case of a rejection it goes on with the first
/// words of blocks of its own. Counter: (block's number, attempt, key), attempt 0 for the former.
/// Threads: one caller at a time.
class ECHOPIPE_EXPORT DrawRandom {
 public:
  DrawRandom(uint64_t seed, uint64_t point);

  /// Uniform over [0, n), without bias. Precondition: n >= 1.
  uint32_t Below(uint64_t draw, uint32_t n);

 private:
  std::array<uint32_t, 4> Block(uint64_t number, uint32_t attempt) const;

  RandomKey key_;
  std::array<uint32_t, 4> block_{};
  uint64_t block_number_ = ~uint64_t{0};
};

}  // namespace echopipe
