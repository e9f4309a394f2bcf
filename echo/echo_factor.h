#pragma once

#include <cstdint>

#include <echopipe/base/export.h>

namespace echopipe {

/// Uses per item: a decimal >= 1, held in millionths.
class ECHOPIPE_EXPORT EchoFactor {
 public:
  static constexpr int64_t kUnit = 1'000'000;
  static constexpr int64_t kMax = 1'000;

  constexpr EchoFactor() = default;
  /// Throws kInvalidArgument unless 1 <= factor <= kMax with at most six decimal places.
  EchoFactor(double factor);  // NOLINT(google-explicit-constructor): {.factor = 1.5}

  int64_t millionths() const { return millionths_; }
  double value() const { return static_cast<double>(millionths_) / kUnit; }
  /// The most uses any item gets: ceil(e).
  uint32_t MaxUses() const { return static_cast<uint32_t>((millionths_ + kUnit - 1) / kUnit); }
  /// Uses of n items together: floor(n * e). Precondition: it is below 2^64.
  uint64_t Uses(uint64_t n) const;
  /// Uses of the i-th item, counted from 1: floor(i * e) - floor((i - 1) * e).
  uint64_t Share(uint64_t i) const { return Uses(i) - Uses(i - 1); }

  bool operator==(const EchoFactor&) const = default;

 private:
  int64_t millionths_ = kUnit;
};

}  // namespace echopipe
