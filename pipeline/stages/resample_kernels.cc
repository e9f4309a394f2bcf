#include <algorithm>
#include <cstring>

#include <echopipe/pipeline/stages/resample_kernels.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "echopipe/pipeline/stages/resample_kernels.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echopipe::internal {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

inline uint8_t ToByte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// Adds `weight` times the values from `in` on to the lanes.
template <class Ints>
inline hn::Vec<Ints> AddWeighted(Ints ints, const uint8_t* in, int32_t weight, hn::Vec<Ints> sum) {
  const hn::Rebind<uint8_t, Ints> bytes;
  const auto values = hn::PromoteTo(ints, hn::LoadU(bytes, in));
  return hn::Add(sum, hn::Mul(values, hn::Set(ints, weight)));
}

#if HWY_TARGET != HWY_SCALAR
// The three channels, and a lane that does not count.
void ResampleColours(const uint8_t* in, const AxisWeights& axis, uint8_t* out) {
  const hn::FixedTag<int32_t, 4> ints;
  const hn::Rebind<uint8_t, decltype(ints)> bytes;
  for (const Taps& taps : axis.taps) {
    auto sum = hn::Set(ints, kHalf);
    const uint8_t* pixel = in + 3 * taps.first;
    const int32_t* weights = axis.weights.data() + taps.begin;
    for (size_t k = 0; k < taps.count; ++k) {
      sum = AddWeighted(ints, pixel + 3 * k, weights[k], sum);
    }
    uint8_t colour[4];
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<kWeightBits>(sum)), bytes, colour);
    std::memcpy(out, colour, 3);
    out += 3;
  }
}
#endif

void ResampleRow(const uint8_t* in, const AxisWeights& axis, size_t channels, uint8_t* out) {
#if HWY_TARGET != HWY_SCALAR
  if (channels == 3) return ResampleColours(in, axis, out);
#endif
  for (const Taps& taps : axis.taps) {
    const int32_t* weights = axis.weights.data() + taps.begin;
    for (size_t c = 0; c < channels; ++c) {
      int32_t sum = kHalf;
      for (size_t k = 0; k < taps.count; ++k) {
        sum += weights[k] * in[(taps.first + k) * channels + c];
      }
      *out++ = ToByte(sum);
    }
  }
}

void ResampleRows(const uint8_t* in, size_t stride, const AxisWeights& axis, const Taps& taps,
                  size_t count, uint8_t* out) {
  const hn::ScalableTag<int32_t> ints;
  const hn::Rebind<uint8_t, decltype(ints)> bytes;
  const uint8_t* first = in + taps.first * stride;
  const int32_t* weights = axis.weights.data() + taps.begin;
  size_t i = 0;
  for (; i + hn::Lanes(ints) <= count; i += hn::Lanes(ints)) {
    auto sum = hn::Set(ints, kHalf);
    for (size_t k = 0; k < taps.count; ++k) {
      sum = AddWeighted(ints, first + k * stride + i, weights[k], sum);
    }
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<kWeightBits>(sum)), bytes, out + i);
  }
  for (; i < count; ++i) {
    int32_t sum = kHalf;
    for (size_t k = 0; k < taps.count; ++k) sum += weights[k] * first[k * stride + i];
    out[i] = ToByte(sum);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace echopipe::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echopipe::internal {

HWY_EXPORT(ResampleRow);
HWY_EXPORT(ResampleRows);

void ResampleRow(const uint8_t* in, const AxisWeights& axis, size_t channels, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ResampleRow)(in, axis, channels, out);
}

void ResampleRows(const uint8_t* in, size_t stride, const AxisWeights& axis, const Taps& taps,
                  size_t count, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ResampleRows)(in, stride, axis, taps, count, out);
}

}  // namespace echopipe::internal
#endif
