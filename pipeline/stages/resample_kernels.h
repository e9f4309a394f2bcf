#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// Loops over weighted sums of bytes in fixed point, for every instruction set, chosen at run time;
/// the results are the same on all of them.
namespace echopipe::internal {

/// Weights are in units of 2^-kWeightBits; sums are rounded to the nearest and cut to 0..255.
inline constexpr int kWeightBits = 22;

/// Which values of an axis a value of the resampled axis is made of: those from `first` on.
struct Taps {
  size_t first;
  size_t count;
  size_t begin;  ///< of their weights
};

/// All of an axis; the sum of a value's weights is 1, that of their absolute values less than 2.
struct AxisWeights {
  std::vector<Taps> taps;
  std::vector<int32_t> weights;
};

/// Resamples a row of pixels of 1 or 3 channels. `in` has a byte more than the row, which is read
/// but does not count.
void ResampleRow(const uint8_t* in, const AxisWeights& axis, size_t channels, uint8_t* out);

/// Makes one row of many: out[i] = sum of the weights times in[(first + k) * stride + i].
void ResampleRows(const uint8_t* in, size_t stride, const AxisWeights& axis, const Taps& taps,
                  size_t count, uint8_t* out);

}  // namespace echopipe::internal
