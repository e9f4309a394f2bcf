#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <echopipe/pipeline/stages/pixel_kernels.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "echopipe/pipeline/stages/pixel_kernels.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echopipe::internal {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<uint8_t>;
using Floats = hn::ScalableTag<float>;

// From this size on an output is written past the caches: it would push out what is still needed.
constexpr size_t kStreamBytes = size_t{256} << 10;

inline float Apply(const Normalization& f, uint8_t value) {
  return ((static_cast<float>(value) - f.high) - f.low) * f.scale;
}

// To float16, in integers, so that all machines do the same. Source: F. Giesen, "Float to half done
// quick" (2012).
constexpr uint32_t kSignBit = 0x80000000;
constexpr uint32_t kLeastNormal = 113 << 23;  // 2^-14, as the bits of a float32
constexpr uint32_t kExponentShift = 112 << 23;
constexpr uint32_t kInfinity16 = 0x7C00;
// Its last bit is the unit of the float16 below 2^-14: what is added to it is rounded to these.
constexpr float kUnitIsLeast16 = 0.5F;

inline Float16 ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSignBit;
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kUnitIsLeast16) -
                         std::bit_cast<uint32_t>(kUnitIsLeast16);
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  const uint32_t normal = std::min((rounded - kExponentShift) >> 13, kInfinity16);
  const uint32_t half = magnitude < kLeastNormal ? small : normal;
  return static_cast<Float16>(half | (bits & kSignBit) >> 16);
}

inline void Store(float value, float* out) { *out = value; }
inline void Store(float value, Float16* out) { *out = ToFloat16(value); }

inline void StoreVector(hn::Vec<Floats> values, float* out) { hn::StoreU(values, Floats(), out); }

inline void StoreVector(hn::Vec<Floats> values, Float16* out) {
  const Floats floats;
  const hn::Rebind<int32_t, Floats> ints;
  const hn::Rebind<uint16_t, Floats> halves;
  const auto bits = hn::BitCast(ints, values);
  const auto magnitude = hn::BitCast(ints, hn::Abs(values));
  const auto unit = hn::Set(floats, kUnitIsLeast16);
  const auto small =
      hn::Sub(hn::BitCast(ints, hn::Add(hn::Abs(values), unit)), hn::BitCast(ints, unit));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(ints, 1));
  const auto bias = hn::Set(ints, 0xFFF - static_cast<int32_t>(kExponentShift));
  const auto rounded = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, bias), odd));
  const auto normal = hn::Min(rounded, hn::Set(ints, kInfinity16));
  const auto is_small = hn::Lt(magnitude, hn::Set(ints, kLeastNormal));
  const auto half = hn::IfThenElse(is_small, small, normal);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(ints, 0x8000));
  hn::StoreU(hn::DemoteTo(halves, hn::Or(half, sign)), halves, reinterpret_cast<uint16_t*>(out));
}

struct VectorNormalization {
  explicit VectorNormalization(const Normalization& f)
      : high(hn::Set(Floats(), f.high)),
        low(hn::Set(Floats(), f.low)),
        scale(hn::Set(Floats(), f.scale)) {}
  VectorNormalization(const float* highs, const float* lows, const float* scales)
      : high(hn::LoadU(Floats(), highs)),
        low(hn::LoadU(Floats(), lows)),
        scale(hn::LoadU(Floats(), scales)) {}

  hn::Vec<Floats> operator()(const uint8_t* values) const {
    const Floats floats;
    const hn::Rebind<int32_t, Floats> ints;
    const hn::Rebind<uint8_t, Floats> quarter;
    const auto value = hn::ConvertTo(floats, hn::PromoteTo(ints, hn::LoadU(quarter, values)));
    return hn::Mul(hn::Sub(hn::Sub(value, high), low), scale);
  }

  hn::Vec<Floats> high;
  hn::Vec<Floats> low;
  hn::Vec<Floats> scale;
};

// Whole vectors of one channel, `count` values of 0..255 to floats.
template <bool kStream, class Out>
inline void NormalizeRun(const uint8_t* values, size_t count, const VectorNormalization& f,
                         Out* out) {
  const Floats floats;
  for (size_t i = 0; i < count; i += hn::Lanes(floats)) {
    if constexpr (kStream) {
      hn::Stream(f(values + i), floats, out + i);
    } else {
      StoreVector(f(values + i), out + i);
    }
  }
}

template <bool kStream, class Out>
void NormalizeToPlanesWith(const uint8_t* in, size_t pixels, const Normalization* f, Out* out) {
  const Bytes bytes;
  const size_t step = hn::Lanes(bytes);
  const VectorNormalization red(f[0]);
  const VectorNormalization green(f[1]);
  const VectorNormalization blue(f[2]);
  HWY_ALIGN uint8_t planes[3][HWY_MAX_BYTES];
  size_t i = 0;
  for (; i + step <= pixels; i += step) {
    hn::Vec<Bytes> r;
    hn::Vec<Bytes> g;
    hn::Vec<Bytes> b;
    hn::LoadInterleaved3(bytes, in + 3 * i, r, g, b);
    hn::Store(r, bytes, planes[0]);
    hn::Store(g, bytes, planes[1]);
    hn::Store(b, bytes, planes[2]);
    NormalizeRun<kStream>(planes[0], step, red, out + i);
    NormalizeRun<kStream>(planes[1], step, green, out + pixels + i);
    NormalizeRun<kStream>(planes[2], step, blue, out + 2 * pixels + i);
  }
  for (; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) Store(Apply(f[c], in[3 * i + c]), out + c * pixels + i);
  }
  if constexpr (kStream) hwy::FlushStream();
}

void NormalizeToFloatPlanes(const uint8_t* in, size_t pixels, const Normalization* f, float* out) {
  const size_t plane_bytes = pixels * sizeof(float);
  const size_t misalignment = (reinterpret_cast<uintptr_t>(out) | plane_bytes) % HWY_MAX_BYTES;
  if (misalignment == 0 && 3 * plane_bytes >= kStreamBytes) {
    NormalizeToPlanesWith<true>(in, pixels, f, out);
  } else {
    NormalizeToPlanesWith<false>(in, pixels, f, out);
  }
}

// A vector's worth of float16 is half a vector, which cannot be streamed.
void NormalizeToHalfPlanes(const uint8_t* in, size_t pixels, const Normalization* f, Float16* out) {
  NormalizeToPlanesWith<false>(in, pixels, f, out);
}

template <class Out>
void NormalizeInterleavedTo(const uint8_t* in, size_t count, const Normalization* f, Out* out) {
  const size_t lanes = hn::Lanes(Floats());
  // The three channels' constants repeat every three vectors.
  constexpr size_t kPeriod = size_t{3} * HWY_MAX_BYTES / sizeof(float);
  float highs[kPeriod];
  float lows[kPeriod];
  float scales[kPeriod];
  for (size_t i = 0; i < 3 * lanes; ++i) {
    highs[i] = f[i % 3].high;
    lows[i] = f[i % 3].low;
    scales[i] = f[i % 3].scale;
  }
  const VectorNormalization first(highs, lows, scales);
  const VectorNormalization second(highs + lanes, lows + lanes, scales + lanes);
  const VectorNormalization third(highs + 2 * lanes, lows + 2 * lanes, scales + 2 * lanes);
  size_t i = 0;
  for (; i + 3 * lanes <= count; i += 3 * lanes) {
    StoreVector(first(in + i), out + i);
    StoreVector(second(in + i + lanes), out + i + lanes);
    StoreVector(third(in + i + 2 * lanes), out + i + 2 * lanes);
  }
  for (; i < count; ++i) Store(Apply(f[i % 3], in[i]), out + i);
}

void NormalizeToFloats(const uint8_t* in, size_t count, const Normalization* f, float* out) {
  NormalizeInterleavedTo(in, count, f, out);
}

void NormalizeToHalves(const uint8_t* in, size_t count, const Normalization* f, Float16* out) {
  NormalizeInterleavedTo(in, count, f, out);
}

void MirrorRow3(const uint8_t* in, size_t width, uint8_t* out) {
  size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<uint8_t, 16> bytes;
  alignas(16) static constexpr uint8_t kReversed[16] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                        7,  6,  5,  4,  3,  2,  1, 0};
  const auto reversed = hn::Load(bytes, kReversed);
  for (; x + 16 <= width; x += 16) {
    hn::Vec<decltype(bytes)> r;
    hn::Vec<decltype(bytes)> g;
    hn::Vec<decltype(bytes)> b;
    hn::LoadInterleaved3(bytes, in + 3 * x, r, g, b);
    hn::StoreInterleaved3(hn::TableLookupBytes(r, reversed), hn::TableLookupBytes(g, reversed),
                          hn::TableLookupBytes(b, reversed), bytes, out + 3 * (width - x - 16));
  }
#endif
  for (; x < width; ++x) std::memcpy(out + 3 * (width - 1 - x), in + 3 * x, 3);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace echopipe::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echopipe::internal {

HWY_EXPORT(MirrorRow3);
HWY_EXPORT(NormalizeToFloatPlanes);
HWY_EXPORT(NormalizeToFloats);
HWY_EXPORT(NormalizeToHalfPlanes);
HWY_EXPORT(NormalizeToHalves);

Normalization Normalization::Of(double mean, double std) {
  const double middle = 255 * mean;
  // high is a multiple of a power of two so large that v - high has at most 23 bits.
  int exponent = 0;
  std::frexp(std::abs(middle) + 256, &exponent);
  const double unit = std::ldexp(1.0, exponent - 23);
  const double high = std::nearbyint(middle / unit) * unit;
  return {.high = static_cast<float>(high),
          .low = static_cast<float>(middle - high),
          .scale = static_cast<float>(1 / (255 * std))};
}

void MirrorRow3(const uint8_t* in, size_t width, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(MirrorRow3)(in, width, out);
}

void NormalizeInterleaved(const uint8_t* in, size_t count, const Normalization (&f)[3],
                          float* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeToFloats)(in, count, f, out);
}

void NormalizeInterleaved(const uint8_t* in, size_t count, const Normalization (&f)[3],
                          Float16* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeToHalves)(in, count, f, out);
}

void NormalizeToPlanes(const uint8_t* in, size_t pixels, const Normalization (&f)[3], float* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeToFloatPlanes)(in, pixels, f, out);
}

void NormalizeToPlanes(const uint8_t* in, size_t pixels, const Normalization (&f)[3],
                       Float16* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeToHalfPlanes)(in, pixels, f, out);
}

}  // namespace echopipe::internal
#endif
