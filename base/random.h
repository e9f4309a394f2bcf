#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace echopipe {

/// A 128-bit name for a source of random numbers.
struct RandomKey {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const RandomKey&) const = default;
};

/// Hashes bytes (XXH3, 64 bit; the same on every machine). Chain hashes by the seed.
uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0);

/// Hashes words to a key (XXH3, 128 bit; the same on every machine).
RandomKey HashToKey(std::span<const uint64_t> words);

/// Philox4x32-10: a bijection of a 128-bit counter under a 64-bit key, four random words a call.
/// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The random numbers named by a key: a counter-based stream that starts alike wherever it is made.
///
/// The distributions are our own, exact and the same on every machine (those of `std::` are not).
/// Threads: one caller at a time; cheap to make and to copy.
class RandomStream {
 public:
  explicit RandomStream(const RandomKey& key);

  /// 32 random bits.
  uint32_t Next();
  /// Uniform over [0, n), without bias. Precondition: n >= 1. Source: Lemire, "Fast random integer
  /// generation in an interval" (2019).
  uint32_t Below(uint32_t n);
  /// Uniform over the integers of [low, high]. Precondition: low <= high, high - low < 2^32 - 1.
  int64_t Between(int64_t low, int64_t high);
  /// Uniform over [0, 1), a multiple of 2^-53.
  double Uniform();
  /// Uniform over [low, high). Precondition: low < high, high - low is finite.
  double Uniform(double low, double high);
  /// True with probability p.
  bool Bernoulli(double p) { return Uniform() < p; }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  size_t used_ = 4;
};

}  // namespace echopipe
