#pragma once

#include <array>
#include <cstdint>

#include <echopipe/base/random.h>

namespace echopipe {

/// A random permutation of [0, n) in O(1) memory: a Feistel network with Philox as its round
/// function, walked until the value falls into the range (fewer than four steps on average).
///
/// Source: Black and Rogaway, "Ciphers with arbitrary finite domains" (2002).
/// Threads: immutable.
class Permutation {
 public:
  /// Precondition: 1 <= n <= 2^62.
  Permutation(uint64_t n, const RandomKey& key);

  uint64_t size() const { return n_; }
  /// The value at place i. Precondition: i < size().
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t Encrypt(uint64_t value) const;
  uint32_t RoundBits(uint64_t half, uint32_t round) const;

  uint64_t n_;
  int half_bits_;
  RandomKey key_;
  uint64_t swap_;  // whether 0 and 1 change places: the network alone gives even permutations only
};

}  // namespace echopipe
