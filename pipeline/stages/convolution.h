#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// Loops of a weighted sum along one axis, for every instruction set, chosen at run time; the
/// results are the same bit for bit on all of them.
namespace echopipe::internal {

/// out[i] = sum over k of weights[k] * rows[k][i], in the order of k, for `count` values.
void SumRows(const std::vector<const uint8_t*>& rows, const std::vector<float>& weights,
             size_t count, float* out);

/// out[i] = sum over k of weights[k] * in[i + k * channels], in the order of k, rounded to the
/// nearest of 0..255 (halves to even), for `count` values. `in` holds what is read beyond them.
void SumNeighbours(const float* in, const std::vector<float>& weights, size_t channels,
                   size_t count, uint8_t* out);

}  // namespace echopipe::internal
