#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <utility>

#include <echopipe/pipeline/stages/affine.h>
#include <echopipe/pipeline/stages/affine_kernels.h>

namespace echopipe::internal {
namespace {

// Where in the input a place of the output comes from, both from the middle of their picture:
// x' = xx * x + xy * y + x0.
struct Map {
  double xx, xy, x0;
  double yx, yy, y0;
};

// Exact at the quarters, where a picture must come out as it went in.
double SinOf(double degrees) {
  const double within_turn = std::remainder(degrees, 360);
  if (std::remainder(degrees, 180) == 0) return 0;
  if (std::abs(within_turn) == 90) return within_turn / 90;
  return std::sin(within_turn * (std::numbers::pi / 180));
}

double CosOf(double degrees) { return SinOf(degrees + 90); }

// Source: torchvision, _get_inverse_affine_matrix. The center is from the middle of the picture.
Map InverseOf(const AffineParameters& p, const Place& center) {
  const double cos_y = CosOf(p.shear_y_degrees);
  const double tan_x = SinOf(p.shear_x_degrees) / CosOf(p.shear_x_degrees);
  const double a = CosOf(p.degrees - p.shear_y_degrees) / cos_y;
  const double b = -(a * tan_x + SinOf(p.degrees));
  const double c = SinOf(p.degrees - p.shear_y_degrees) / cos_y;
  const double d = CosOf(p.degrees) - c * tan_x;
  Map map = {.xx = d / p.scale,
             .xy = -b / p.scale,
             .x0 = center.x,
             .yx = -c / p.scale,
             .yy = a / p.scale,
             .y0 = center.y};
  const double x = center.x + p.translate_x;
  const double y = center.y + p.translate_y;
  map.x0 -= map.xx * x + map.xy * y;
  map.y0 -= map.yx * x + map.yy * y;
  return map;
}

Place FromTheMiddle(const std::optional<Place>& place, const Shape& shape) {
  if (!place) return {};
  return {.x = place->x - static_cast<double>(shape[1]) / 2,
          .y = place->y - static_cast<double>(shape[0]) / 2};
}

// To the nearest, halves to even. Precondition: 0 <= value <= 255.
uint8_t Rounded(float value) {
  constexpr float kUnitIsOne = 0x1.8p23F;  // from here on a float's last bit is 1
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(value + kUnitIsOne));
}

// A picture that can be asked for its value at any place; pixels' middles are at whole x and y.
// kChannels is 1 or 3.
template <size_t kChannels>
class Sampler {
 public:
  Sampler(const Tensor& pixels, const Sampling& sampling)
      : data_(pixels.bytes().data()),
        height_(pixels.shape()[0]),
        width_(pixels.shape()[1]),
        blends_(!sampling.fill.empty()) {
    for (size_t c = 0; c < kChannels && blends_; ++c) {
      fill_[c] = static_cast<float>(sampling.fill[c % sampling.fill.size()]);
    }
    for (size_t c = 0; c < kChannels; ++c) outside_[c] = Rounded(fill_[c]);
  }

  void NearestRow(const PlacesOnALine& places, uint8_t* out) const {
    for (size_t i = 0; i < places.count; ++i) {
      const double step = places.first + static_cast<double>(i);
      Nearest(places.dx * step + places.x, places.dy * step + places.y, out + i * kChannels);
    }
  }

  // The places whose four pixels are all inside are side by side: the fast loop is for these.
  void BilinearRow(const PlacesOnALine& places, uint8_t* out) const {
    size_t begin = 0;
    size_t end = places.count;
    for (; begin < end && !HasAllFour(places, begin); ++begin) {
      AtTheEdge(places, begin, out + begin * kChannels);
    }
    for (; begin < end && !HasAllFour(places, end - 1); --end) {
      AtTheEdge(places, end - 1, out + (end - 1) * kChannels);
    }
    PlacesOnALine inner = places;
    inner.first += static_cast<double>(begin);
    inner.count = end - begin;
    SampleBilinear(data_, static_cast<size_t>(width_), kChannels, inner, out + begin * kChannels);
  }

 private:
  const uint8_t* At(int64_t x, int64_t y) const {
    return data_ + static_cast<size_t>(y * width_ + x) * kChannels;
  }

  void Nearest(double x, double y, uint8_t* out) const {
    const double right = x + 0.5;
    const double down = y + 0.5;
    const bool inside = right >= 0 && right < static_cast<double>(width_) && down >= 0 &&
                        down < static_cast<double>(height_);
    const uint8_t* from =
        inside ? At(static_cast<int64_t>(right), static_cast<int64_t>(down)) : outside_.data();
    std::memcpy(out, from, kChannels);
  }

  // As SampleBilinear() wants it.
  bool HasAllFour(const PlacesOnALine& places, size_t i) const {
    const double step = places.first + static_cast<double>(i);
    const double x = places.dx * step + places.x;
    const double y = places.dy * step + places.y;
    return x >= 0 && x < static_cast<double>(width_ - 2) && y >= 0 &&
           y < static_cast<double>(height_ - 1);
  }

  void AtTheEdge(const PlacesOnALine& places, size_t i, uint8_t* out) const {
    const double step = places.first + static_cast<double>(i);
    const double x = places.dx * step + places.x;
    const double y = places.dy * step + places.y;
    const bool is_near =
        x > -1 && x < static_cast<double>(width_) && y > -1 && y < static_cast<double>(height_);
    if (is_near) {
      Blend(x, y, out);
    } else {
      std::memcpy(out, outside_.data(), kChannels);
    }
  }

  // What is inside of the four pixels, and the fill.
  void Blend(double x, double y, uint8_t* out) const {
    const double left = std::floor(x);
    const double top = std::floor(y);
    const auto u = static_cast<float>(x - left);
    const auto v = static_cast<float>(y - top);
    const auto column = static_cast<int64_t>(left);
    const auto row = static_cast<int64_t>(top);
    std::array<float, kChannels> sums{};
    float covered = AddIfInside(column, row, (1 - u) * (1 - v), sums);
    covered += AddIfInside(column + 1, row, u * (1 - v), sums);
    covered += AddIfInside(column, row + 1, (1 - u) * v, sums);
    covered += AddIfInside(column + 1, row + 1, u * v, sums);
    for (size_t c = 0; c < kChannels; ++c) {
      const float value = blends_ ? (sums[c] - fill_[c]) * covered + fill_[c] : sums[c];
      out[c] = Rounded(std::clamp(value, 0.0F, 255.0F));
    }
  }

  // Returns the weight, or 0 outside.
  float AddIfInside(int64_t x, int64_t y, float weight, std::array<float, kChannels>& sums) const {
    if (x < 0 || x >= width_ || y < 0 || y >= height_) return 0;
    const uint8_t* pixel = At(x, y);
    for (size_t c = 0; c < kChannels; ++c) sums[c] += static_cast<float>(pixel[c]) * weight;
    return weight;
  }

  const uint8_t* data_;
  int64_t height_;
  int64_t width_;
  bool blends_;
  std::array<float, kChannels> fill_{};
  std::array<uint8_t, kChannels> outside_{};
};

template <size_t kChannels>
void WarpTo(const Tensor& pixels, const Map& map, const Sampling& sampling, const Shape& shape,
            uint8_t* out) {
  const Sampler<kChannels> sampler(pixels, sampling);
  const auto middle = [](int64_t extent) { return static_cast<double>(extent - 1) / 2; };
  const auto width = static_cast<size_t>(shape[1]);
  for (int64_t row = 0; row < shape[0]; ++row, out += width * kChannels) {
    const double y = static_cast<double>(row) - middle(shape[0]);
    const PlacesOnALine places = {.x = map.xy * y + map.x0 + middle(pixels.shape()[1]),
                                  .y = map.yy * y + map.y0 + middle(pixels.shape()[0]),
                                  .dx = map.xx,
                                  .dy = map.yx,
                                  .first = -middle(shape[1]),
                                  .count = width};
    if (sampling.interpolation == proto::NEAREST) {
      sampler.NearestRow(places, out);
    } else {
      sampler.BilinearRow(places, out);
    }
  }
}

Tensor Warp(const Tensor& pixels, const Map& map, const Sampling& sampling, const Shape& shape,
            BufferPool& pool) {
  TensorBuilder builder(DType::kUint8, shape, pool);
  if (shape[2] == 3) {
    WarpTo<3>(pixels, map, sampling, shape, builder.data());
  } else {
    WarpTo<1>(pixels, map, sampling, shape, builder.data());
  }
  return std::move(builder).Finish();
}

// So much that all four corners are inside. Source: torchvision, _compute_affine_output_size.
Shape ExpandedShape(const Map& map, const Shape& shape) {
  const double half_height = static_cast<double>(shape[0]) / 2;
  const double half_width = static_cast<double>(shape[1]) / 2;
  double x[4];
  double y[4];
  for (int corner = 0; corner < 4; ++corner) {
    const double across = corner % 2 == 0 ? -half_width : half_width;
    const double down = corner / 2 == 0 ? -half_height : half_height;
    x[corner] = map.xx * across + map.xy * down + map.x0 + half_width;
    y[corner] = map.yx * across + map.yy * down + map.y0 + half_height;
  }
  // What is less than 1e-4 over a whole number is a rounding error.
  const auto extent = [](const double(&places)[4]) {
    const auto [least, most] = std::minmax_element(std::begin(places), std::end(places));
    return static_cast<int64_t>(std::ceil(std::trunc(*most * 1e4) / 1e4) -
                                std::floor(std::trunc(*least * 1e4) / 1e4));
  };
  return {extent(y), extent(x), shape[2]};
}

Map InverseOf(const RotationParameters& parameters, const Shape& shape) {
  return InverseOf({.degrees = -parameters.degrees}, FromTheMiddle(parameters.center, shape));
}

}  // namespace

Tensor Affine(const Tensor& pixels, const AffineParameters& parameters, const Sampling& sampling,
              BufferPool& pool) {
  const Map map = InverseOf(parameters, FromTheMiddle(parameters.center, pixels.shape()));
  return Warp(pixels, map, sampling, pixels.shape(), pool);
}

Shape RotatedShape(const Shape& shape, const RotationParameters& parameters) {
  if (!parameters.expand) return shape;
  const bool is_quarter = std::abs(std::remainder(parameters.degrees, 180)) == 90;
  if (is_quarter && !parameters.center) return {shape[1], shape[0], shape[2]};
  return ExpandedShape(InverseOf(parameters, shape), shape);
}

Tensor Rotate(const Tensor& pixels, const RotationParameters& parameters, const Sampling& sampling,
              BufferPool& pool) {
  if (parameters.degrees == 0) return pixels;
  return Warp(pixels, InverseOf(parameters, pixels.shape()), sampling,
              RotatedShape(pixels.shape(), parameters), pool);
}

}  // namespace echopipe::internal
