#include <cmath>
#include <cstring>

#include <echopipe/pipeline/stages/affine_kernels.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "echopipe/pipeline/stages/affine_kernels.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echopipe::internal {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The four pixels around a place: the upper left one, and how far it is to the others.
struct Corner {
  const uint8_t* upper;
  const uint8_t* lower;
  float u;
  float v;
};

inline Corner CornerAt(const uint8_t* pixels, size_t stride, size_t channels,
                       const PlacesOnALine& places, size_t i) {
  const double step = places.first + static_cast<double>(i);
  const double x = places.dx * step + places.x;
  const double y = places.dy * step + places.y;
  const auto column = static_cast<int64_t>(x);
  const auto row = static_cast<int64_t>(y);
  const uint8_t* upper =
      pixels + static_cast<size_t>(row) * stride + static_cast<size_t>(column) * channels;
  return {.upper = upper,
          .lower = upper + stride,
          .u = static_cast<float>(x - static_cast<double>(column)),
          .v = static_cast<float>(y - static_cast<double>(row))};
}

inline uint8_t ValueAt(const Corner& corner, size_t channels, size_t c) {
  const float value = static_cast<float>(corner.upper[c]) * ((1 - corner.u) * (1 - corner.v)) +
                      static_cast<float>(corner.upper[c + channels]) * (corner.u * (1 - corner.v)) +
                      static_cast<float>(corner.lower[c]) * ((1 - corner.u) * corner.v) +
                      static_cast<float>(corner.lower[c + channels]) * (corner.u * corner.v);
  return static_cast<uint8_t>(std::nearbyint(value));
}

#if HWY_TARGET != HWY_SCALAR
using Floats = hn::FixedTag<float, 4>;
using Ints = hn::Rebind<int32_t, Floats>;
using FourBytes = hn::Rebind<uint8_t, Floats>;

// The three channels and what comes behind them.
inline hn::Vec<Floats> Weighted(const uint8_t* pixel, float weight) {
  const auto values = hn::PromoteTo(Ints(), hn::LoadU(FourBytes(), pixel));
  return hn::Mul(hn::ConvertTo(Floats(), values), hn::Set(Floats(), weight));
}

inline hn::Vec<FourBytes> ColourAt(const Corner& corner) {
  const auto left = Weighted(corner.upper, (1 - corner.u) * (1 - corner.v));
  const auto upper = hn::Add(left, Weighted(corner.upper + 3, corner.u * (1 - corner.v)));
  const auto three = hn::Add(upper, Weighted(corner.lower, (1 - corner.u) * corner.v));
  const auto all = hn::Add(three, Weighted(corner.lower + 3, corner.u * corner.v));
  return hn::DemoteTo(FourBytes(), hn::NearestInt(all));
}

void SampleColours(const uint8_t* pixels, size_t stride, const PlacesOnALine& places,
                   uint8_t* out) {
  for (size_t i = 0; i < places.count; ++i) {
    const hn::Vec<FourBytes> colour = ColourAt(CornerAt(pixels, stride, 3, places, i));
    uint8_t bytes[4];
    hn::StoreU(colour, FourBytes(), bytes);
    std::memcpy(out + 3 * i, bytes, 3);
  }
}
#else
void SampleColours(const uint8_t* pixels, size_t stride, const PlacesOnALine& places,
                   uint8_t* out) {
  for (size_t i = 0; i < places.count; ++i) {
    const Corner corner = CornerAt(pixels, stride, 3, places, i);
    for (size_t c = 0; c < 3; ++c) out[3 * i + c] = ValueAt(corner, 3, c);
  }
}
#endif

void SampleBilinear(const uint8_t* pixels, size_t width, size_t channels,
                    const PlacesOnALine& places, uint8_t* out) {
  if (channels == 3) return SampleColours(pixels, 3 * width, places, out);
  for (size_t i = 0; i < places.count; ++i) {
    out[i] = ValueAt(CornerAt(pixels, width, 1, places, i), 1, 0);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace echopipe::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echopipe::internal {

HWY_EXPORT(SampleBilinear);

void SampleBilinear(const uint8_t* pixels, size_t width, size_t channels,
                    const PlacesOnALine& places, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SampleBilinear)(pixels, width, channels, places, out);
}

}  // namespace echopipe::internal
#endif
