#include <algorithm>
#include <cstring>

#include <echopipe/pipeline/stages/color_kernels.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "echopipe/pipeline/stages/color_kernels.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echopipe::internal {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<uint8_t>;
using Floats = hn::ScalableTag<float>;
using Ints = hn::Rebind<int32_t, Floats>;
using QuarterBytes = hn::Rebind<uint8_t, Floats>;
using FloatVec = hn::Vec<Floats>;

inline FloatVec Constant(double value) { return hn::Set(Floats(), static_cast<float>(value)); }

inline FloatVec LoadFloats(const uint8_t* values) {
  return hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), hn::LoadU(QuarterBytes(), values)));
}

// Cut to 0..255 and rounded down.
inline void StoreFloats(FloatVec values, uint8_t* out) {
  values = hn::Min(hn::Max(values, hn::Zero(Floats())), hn::Set(Floats(), 255.0F));
  hn::StoreU(hn::DemoteTo(QuarterBytes(), hn::ConvertTo(Ints(), values)), QuarterBytes(), out);
}

void ScaleAndShift(const uint8_t* in, size_t count, float factor, float shift, uint8_t* out) {
  const Floats floats;
  size_t i = 0;
  for (; i + hn::Lanes(floats) <= count; i += hn::Lanes(floats)) {
    const FloatVec scaled = hn::Mul(LoadFloats(in + i), hn::Set(floats, factor));
    StoreFloats(hn::Add(scaled, hn::Set(floats, shift)), out + i);
  }
  for (; i < count; ++i) {
    const float value = static_cast<float>(in[i]) * factor + shift;
    out[i] = static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
  }
}

// As many pixels as a vector has bytes, each channel for itself.
struct Planes {
  HWY_ALIGN uint8_t r[HWY_MAX_BYTES];
  HWY_ALIGN uint8_t g[HWY_MAX_BYTES];
  HWY_ALIGN uint8_t b[HWY_MAX_BYTES];
};

inline void LoadPlanes(const uint8_t* in, Planes& planes) {
  const Bytes bytes;
  hn::Vec<Bytes> r;
  hn::Vec<Bytes> g;
  hn::Vec<Bytes> b;
  hn::LoadInterleaved3(bytes, in, r, g, b);
  hn::Store(r, bytes, planes.r);
  hn::Store(g, bytes, planes.g);
  hn::Store(b, bytes, planes.b);
}

inline void StorePlanes(const Planes& planes, uint8_t* out) {
  const Bytes bytes;
  hn::StoreInterleaved3(hn::Load(bytes, planes.r), hn::Load(bytes, planes.g),
                        hn::Load(bytes, planes.b), bytes, out);
}

// Gives `change` one vector of floats' pixels after the other, to be changed in place.
template <class Change>
inline void ChangeBlock(const uint8_t* in, const Change& change, uint8_t* out) {
  Planes planes;
  LoadPlanes(in, planes);
  for (size_t i = 0; i < hn::Lanes(Bytes()); i += hn::Lanes(Floats())) {
    change(planes.r + i, planes.g + i, planes.b + i);
  }
  StorePlanes(planes, out);
}

template <class Change>
inline void ChangePixels(const uint8_t* in, size_t pixels, const Change& change, uint8_t* out) {
  const size_t step = hn::Lanes(Bytes());
  size_t i = 0;
  for (; i + step <= pixels; i += step) ChangeBlock(in + 3 * i, change, out + 3 * i);
  if (i == pixels) return;
  uint8_t rest[3 * HWY_MAX_BYTES] = {};
  uint8_t changed[3 * HWY_MAX_BYTES];
  std::memcpy(rest, in + 3 * i, 3 * (pixels - i));
  ChangeBlock(rest, change, changed);
  std::memcpy(out + 3 * i, changed, 3 * (pixels - i));
}

inline FloatVec GrayOf(FloatVec r, FloatVec g, FloatVec b) {
  const FloatVec red_green = hn::Add(hn::Mul(r, Constant(0.2989)), hn::Mul(g, Constant(0.587)));
  return hn::Floor(hn::Add(red_green, hn::Mul(b, Constant(0.114))));
}

struct ToGray {
  void operator()(uint8_t* r, uint8_t* g, uint8_t* b) const {
    const FloatVec gray = GrayOf(LoadFloats(r), LoadFloats(g), LoadFloats(b));
    StoreFloats(gray, r);
    StoreFloats(gray, g);
    StoreFloats(gray, b);
  }
};

void MakeGray(const uint8_t* in, size_t pixels, uint8_t* out) {
  ChangePixels(in, pixels, ToGray(), out);
}

uint64_t SumOfGrays(const uint8_t* in, size_t pixels) {
  constexpr size_t kPart = 256;
  uint8_t grays[3 * kPart];
  uint64_t sum = 0;
  for (size_t begin = 0; begin < pixels; begin += kPart) {
    const size_t count = std::min(kPart, pixels - begin);
    MakeGray(in + 3 * begin, count, grays);
    for (size_t i = 0; i < count; ++i) sum += grays[3 * i];
  }
  return sum;
}

struct GrayBlend {
  FloatVec factor;
  FloatVec rest;

  void operator()(uint8_t* r, uint8_t* g, uint8_t* b) const {
    const FloatVec red = LoadFloats(r);
    const FloatVec green = LoadFloats(g);
    const FloatVec blue = LoadFloats(b);
    const FloatVec gray = hn::Mul(GrayOf(red, green, blue), rest);
    StoreFloats(hn::Add(hn::Mul(red, factor), gray), r);
    StoreFloats(hn::Add(hn::Mul(green, factor), gray), g);
    StoreFloats(hn::Add(hn::Mul(blue, factor), gray), b);
  }
};

void BlendWithGray(const uint8_t* in, size_t pixels, double factor, uint8_t* out) {
  ChangePixels(in, pixels, GrayBlend{Constant(factor), Constant(1 - factor)}, out);
}

struct HsvVec {
  FloatVec h;
  FloatVec s;
  FloatVec v;
};

// All in [0, 1].
inline HsvVec ToHsv(FloatVec r, FloatVec g, FloatVec b) {
  const FloatVec zero = hn::Zero(Floats());
  const FloatVec one = Constant(1);
  const FloatVec highest = hn::Max(r, hn::Max(g, b));
  const FloatVec range = hn::Sub(highest, hn::Min(r, hn::Min(g, b)));
  const auto is_gray = hn::Eq(range, zero);
  const FloatVec divisor = hn::IfThenElse(is_gray, one, range);
  const FloatVec rc = hn::Div(hn::Sub(highest, r), divisor);
  const FloatVec gc = hn::Div(hn::Sub(highest, g), divisor);
  const FloatVec bc = hn::Div(hn::Sub(highest, b), divisor);
  const FloatVec if_red = hn::Sub(bc, gc);
  const FloatVec if_green = hn::Sub(hn::Add(rc, Constant(2)), bc);
  const FloatVec if_blue = hn::Sub(hn::Add(gc, Constant(4)), rc);
  const FloatVec sector = hn::IfThenElse(hn::Eq(highest, r), if_red,
                                         hn::IfThenElse(hn::Eq(highest, g), if_green, if_blue));
  const FloatVec hue = hn::Add(hn::Mul(sector, Constant(1.0 / 6)), one);
  return {.h = hn::Sub(hue, hn::IfThenElseZero(hn::Ge(hue, one), one)),
          .s = hn::Div(range, hn::IfThenElse(is_gray, one, highest)),
          .v = highest};
}

struct HueTurn {
  FloatVec turns;

  void operator()(uint8_t* r, uint8_t* g, uint8_t* b) const {
    const FloatVec unit = Constant(1.0 / 255);
    HsvVec hsv = ToHsv(hn::Mul(LoadFloats(r), unit), hn::Mul(LoadFloats(g), unit),
                       hn::Mul(LoadFloats(b), unit));
    const FloatVec one = Constant(1);
    FloatVec h = hn::Add(hsv.h, turns);
    h = hn::Sub(h, hn::IfThenElseZero(hn::Ge(h, one), one));
    hsv.h = hn::Add(h, hn::IfThenElseZero(hn::Lt(h, hn::Zero(Floats())), one));
    StoreRgb(hsv, r, g, b);
  }

  static FloatVec UnitClamped(FloatVec x) {
    return hn::Min(hn::Max(x, hn::Zero(Floats())), Constant(1));
  }

  static FloatVec Choose(FloatVec sector, FloatVec in_0, FloatVec in_1, FloatVec in_2,
                         FloatVec in_3, FloatVec in_4, FloatVec in_5) {
    const FloatVec low = hn::IfThenElse(hn::Lt(sector, Constant(1)), in_0,
                                        hn::IfThenElse(hn::Lt(sector, Constant(2)), in_1, in_2));
    const FloatVec high = hn::IfThenElse(hn::Lt(sector, Constant(4)), in_3,
                                         hn::IfThenElse(hn::Lt(sector, Constant(5)), in_4, in_5));
    return hn::IfThenElse(hn::Lt(sector, Constant(3)), low, high);
  }

  static void StoreRgb(const HsvVec& hsv, uint8_t* r, uint8_t* g, uint8_t* b) {
    const FloatVec one = Constant(1);
    const FloatVec h6 = hn::Mul(hsv.h, Constant(6));
    const FloatVec whole = hn::Floor(h6);
    // A hue of 1, which rounding may make, is one of 0.
    const FloatVec sector = hn::IfThenElse(hn::Lt(whole, Constant(6)), whole, hn::Zero(Floats()));
    const FloatVec sf = hn::Mul(hsv.s, hn::Sub(h6, whole));
    const FloatVec without_s = hn::Sub(one, hsv.s);
    const FloatVec v = hsv.v;
    const FloatVec q = UnitClamped(hn::Mul(hn::Sub(one, sf), v));
    const FloatVec t = UnitClamped(hn::Mul(hn::Add(sf, without_s), v));
    const FloatVec p = UnitClamped(hn::Mul(without_s, v));
    // torchvision's way back to uint8: 1 becomes 255, and each value gets an equal share of [0, 1].
    const FloatVec scale = Constant(256 - 1e-3);
    StoreFloats(hn::Mul(Choose(sector, v, q, p, p, t, v), scale), r);
    StoreFloats(hn::Mul(Choose(sector, t, v, v, q, p, p), scale), g);
    StoreFloats(hn::Mul(Choose(sector, p, p, t, v, v, q), scale), b);
  }
};

void TurnHue(const uint8_t* in, size_t pixels, double turns, uint8_t* out) {
  ChangePixels(in, pixels, HueTurn{Constant(turns)}, out);
}

// x + rest * (soft - x), with rest = 1 - factor, as torchvision has it.
inline uint8_t Sharpen(const ThreeRows& rows, size_t i, float rest) {
  const size_t c = rows.channels;
  int sum = 4 * rows.row[i];
  for (const uint8_t* row : {rows.above, rows.row, rows.below}) {
    sum += row[i - c] + row[i] + row[i + c];
  }
  const float x = rows.row[i];
  const int soft = (sum + 6) / 13;
  return static_cast<uint8_t>(std::clamp(x + rest * (static_cast<float>(soft) - x), 0.0F, 255.0F));
}

using Shorts = hn::ScalableTag<uint16_t>;
using HalfBytes = hn::Rebind<uint8_t, Shorts>;

inline hn::Vec<Shorts> LoadShorts(const uint8_t* values) {
  return hn::PromoteTo(Shorts(), hn::LoadU(HalfBytes(), values));
}

inline hn::Vec<Shorts> SumOfThree(const uint8_t* row, size_t i, size_t channels) {
  return hn::Add(hn::Add(LoadShorts(row + i - channels), LoadShorts(row + i + channels)),
                 LoadShorts(row + i));
}

// The mean of thirteen, rounded: their sum is at most 13 * 255, for which the product is exact.
inline hn::Vec<Shorts> SoftOf(const ThreeRows& rows, size_t i) {
  const hn::Vec<Shorts> nine = hn::Add(
      hn::Add(SumOfThree(rows.above, i, rows.channels), SumOfThree(rows.below, i, rows.channels)),
      SumOfThree(rows.row, i, rows.channels));
  const hn::Vec<Shorts> thirteen = hn::Add(nine, hn::ShiftLeft<2>(LoadShorts(rows.row + i)));
  return hn::MulHigh(hn::Add(thirteen, hn::Set(Shorts(), 6)), hn::Set(Shorts(), 5042));
}

void SharpenRow(const ThreeRows& rows, double factor, uint8_t* out) {
  const float rest = static_cast<float>(1 - factor);
  const size_t step = hn::Lanes(Shorts());
  const size_t end = rows.count - rows.channels;
  HWY_ALIGN uint8_t soft[HWY_MAX_BYTES];
  std::memcpy(out, rows.row, rows.channels);
  size_t i = rows.channels;
  for (; i + step <= end; i += step) {
    hn::StoreU(
        hn::DemoteTo(HalfBytes(), hn::BitCast(hn::RebindToSigned<Shorts>(), SoftOf(rows, i))),
        HalfBytes(), soft);
    for (size_t k = 0; k < step; k += hn::Lanes(Floats())) {
      const FloatVec x = LoadFloats(rows.row + i + k);
      const FloatVec change = hn::Mul(hn::Sub(LoadFloats(soft + k), x), hn::Set(Floats(), rest));
      StoreFloats(hn::Add(x, change), out + i + k);
    }
  }
  for (; i < end; ++i) out[i] = Sharpen(rows, i, rest);
  std::memcpy(out + end, rows.row + end, rows.channels);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace echopipe::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echopipe::internal {

HWY_EXPORT(ScaleAndShift);
HWY_EXPORT(MakeGray);
HWY_EXPORT(SumOfGrays);
HWY_EXPORT(BlendWithGray);
HWY_EXPORT(TurnHue);
HWY_EXPORT(SharpenRow);

void ScaleAndShift(const uint8_t* in, size_t count, float factor, float shift, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ScaleAndShift)(in, count, factor, shift, out);
}

void MakeGray(const uint8_t* in, size_t pixels, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(MakeGray)(in, pixels, out);
}

uint64_t SumOfGrays(const uint8_t* in, size_t pixels) {
  return HWY_DYNAMIC_DISPATCH(SumOfGrays)(in, pixels);
}

void BlendWithGray(const uint8_t* in, size_t pixels, double factor, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(BlendWithGray)(in, pixels, factor, out);
}

void TurnHue(const uint8_t* in, size_t pixels, double turns, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(TurnHue)(in, pixels, turns, out);
}

void SharpenRow(const ThreeRows& rows, double factor, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SharpenRow)(rows, factor, out);
}

}  // namespace echopipe::internal
#endif
