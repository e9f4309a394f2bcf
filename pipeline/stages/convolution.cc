#include <algorithm>
#include <cmath>

#include <echopipe/pipeline/stages/convolution.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "echopipe/pipeline/stages/convolution.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echopipe::internal {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::Rebind<int32_t, Floats>;
using QuarterBytes = hn::Rebind<uint8_t, Floats>;

void SumRows(const std::vector<const uint8_t*>& rows, const std::vector<float>& weights,
             size_t count, float* out) {
  const Floats floats;
  size_t i = 0;
  for (; i + hn::Lanes(floats) <= count; i += hn::Lanes(floats)) {
    auto sum = hn::Zero(floats);
    for (size_t k = 0; k < weights.size(); ++k) {
      const auto value = hn::PromoteTo(Ints(), hn::LoadU(QuarterBytes(), rows[k] + i));
      sum = hn::Add(sum, hn::Mul(hn::ConvertTo(floats, value), hn::Set(floats, weights[k])));
    }
    hn::StoreU(sum, floats, out + i);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      sum += static_cast<float>(rows[k][i]) * weights[k];
    }
    out[i] = sum;
  }
}

void SumNeighbours(const float* in, const std::vector<float>& weights, size_t channels,
                   size_t count, uint8_t* out) {
  const Floats floats;
  size_t i = 0;
  for (; i + hn::Lanes(floats) <= count; i += hn::Lanes(floats)) {
    auto sum = hn::Zero(floats);
    for (size_t k = 0; k < weights.size(); ++k) {
      const auto value = hn::LoadU(floats, in + i + k * channels);
      sum = hn::Add(sum, hn::Mul(value, hn::Set(floats, weights[k])));
    }
    hn::StoreU(hn::DemoteTo(QuarterBytes(), hn::NearestInt(sum)), QuarterBytes(), out + i);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) sum += in[i + k * channels] * weights[k];
    out[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sum), 0.0F, 255.0F));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace echopipe::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echopipe::internal {

HWY_EXPORT(SumRows);
HWY_EXPORT(SumNeighbours);

void SumRows(const std::vector<const uint8_t*>& rows, const std::vector<float>& weights,
             size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(SumRows)(rows, weights, count, out);
}

void SumNeighbours(const float* in, const std::vector<float>& weights, size_t channels,
                   size_t count, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SumNeighbours)(in, weights, channels, count, out);
}

}  // namespace echopipe::internal
#endif
