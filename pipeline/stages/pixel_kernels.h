#pragma once

#include <cstddef>
#include <cstdint>

/// Loops over pixels for every instruction set, chosen at run time; the results are the same bit
/// for bit on all of them.
namespace echopipe::internal {

/// Writes a row of `width` pixels of three channels in reverse order.
void MirrorRow3(const uint8_t* in, size_t width, uint8_t* out);

/// f(v) = ((v - high) - low) * scale for v in 0..255, in float32.
///
/// For v / 255 normalized, high + low is 255 * mean and v - high is exact: so the difference keeps
/// all of its digits where v is close to the mean, and no compiler can merge a product with a sum.
struct Normalization {
  float high = 0;
  float low = 0;
  float scale = 0;

  /// (v / 255 - mean) / std. Precondition: |mean| <= 1000, std > 0.
  static Normalization Of(double mean, double std);
};

/// out[i] = f[i % 3](in[i]), for `count` values.
void NormalizeInterleaved(const uint8_t* in, size_t count, const Normalization (&f)[3], float* out);
/// out[c * pixels + i] = f[c](in[3 * i + c]).
void NormalizeToPlanes(const uint8_t* in, size_t pixels, const Normalization (&f)[3], float* out);

/// A float16 (IEEE binary16) as its bits.
enum class Float16 : uint16_t {};

/// The same, each float32 rounded to the nearest float16, halves to even.
void NormalizeInterleaved(const uint8_t* in, size_t count, const Normalization (&f)[3],
                          Float16* out);
void NormalizeToPlanes(const uint8_t* in, size_t pixels, const Normalization (&f)[3], Float16* out);

}  // namespace echopipe::internal
