#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/resample.h>
#include <echopipe/pipeline/stages/resample_kernels.h>

namespace echopipe::internal {
namespace {

/// How much a value counts at a distance; nothing from `radius` on.
struct Filter {
  double radius;
  double (*weight)(double distance);
};

double Triangle(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

// Keys' cubic with a = -0.5.
double Cubic(double distance) {
  constexpr double kA = -0.5;
  const double x = std::abs(distance);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

Filter FilterOf(proto::Interpolation interpolation) {
  if (interpolation == proto::BICUBIC) return {.radius = 2, .weight = &Cubic};
  return {.radius = 1, .weight = &Triangle};
}

int32_t ToFixed(double weight) {
  return static_cast<int32_t>(std::lround(weight * (1 << kWeightBits)));
}

// Source: Pillow, precompute_coeffs and normalize_coeffs_8bpc.
AxisWeights WeightsOf(int from, int to, const Filter& filter) {
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(scale, 1.0);
  const double radius = filter.radius * stretch;
  AxisWeights axis;
  axis.taps.reserve(static_cast<size_t>(to));
  std::vector<double> weights;
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::floor(center - radius + 0.5)));
    const int end = std::min(from, static_cast<int>(std::floor(center + radius + 0.5)));
    weights.clear();
    double sum = 0;
    for (int k = first; k < end; ++k) {
      weights.push_back(filter.weight((k - center + 0.5) * (1 / stretch)));
      sum += weights.back();
    }
    axis.taps.push_back({.first = static_cast<size_t>(first),
                         .count = weights.size(),
                         .begin = axis.weights.size()});
    for (const double weight : weights) axis.weights.push_back(ToFixed(weight / sum));
  }
  return axis;
}

/// The pixels of a box inside a picture.
struct Rows {
  const uint8_t* data;
  size_t stride;
  size_t count;
  size_t bytes;  // of each
};

Rows RowsOf(const Tensor& pixels, const PixelBox& box) {
  const auto channels = static_cast<size_t>(pixels.shape()[2]);
  const size_t stride = static_cast<size_t>(pixels.shape()[1]) * channels;
  return {.data = pixels.bytes().data() + static_cast<size_t>(box.y) * stride +
                  static_cast<size_t>(box.x) * channels,
          .stride = stride,
          .count = static_cast<size_t>(box.height),
          .bytes = static_cast<size_t>(box.width) * channels};
}

void ResizeWidth(const Rows& rows, const AxisWeights& axis, size_t channels, BufferPool& pool,
                 uint8_t* out) {
  // A copy of each, because a byte more is read.
  const auto row = pool.Allocate(rows.bytes + 1);
  row->data()[rows.bytes] = 0;
  for (size_t y = 0; y < rows.count; ++y, out += axis.taps.size() * channels) {
    std::memcpy(row->data(), rows.data + y * rows.stride, rows.bytes);
    ResampleRow(row->data(), axis, channels, out);
  }
}

void ResizeHeight(const Rows& rows, const AxisWeights& axis, uint8_t* out) {
  for (const Taps& taps : axis.taps) {
    ResampleRows(rows.data, rows.stride, axis, taps, rows.bytes, out);
    out += rows.bytes;
  }
}

}  // namespace

void CheckAntialias(bool antialias, proto::Interpolation interpolation) {
  if (!antialias || interpolation == proto::BILINEAR || interpolation == proto::BICUBIC) return;
  ThrowInvalidField("antialias", "is not for this interpolation",
                    proto::Interpolation_Name(interpolation), "BILINEAR or BICUBIC");
}

Tensor ResizeAntialiased(const Tensor& pixels, const PixelBox& box, int height, int width,
                         proto::Interpolation interpolation, BufferPool& pool) {
  if (box.height == height && box.width == width) return Crop(pixels, box, pool);
  const Filter filter = FilterOf(interpolation);
  const auto channels = static_cast<size_t>(pixels.shape()[2]);
  TensorBuilder builder(DType::kUint8, {height, width, pixels.shape()[2]}, pool);
  Rows rows = RowsOf(pixels, box);
  if (box.height == height) {
    ResizeWidth(rows, WeightsOf(box.width, width, filter), channels, pool, builder.data());
    return std::move(builder).Finish();
  }
  std::shared_ptr<Buffer> between;
  if (box.width != width) {
    const size_t row_bytes = static_cast<size_t>(width) * channels;
    between = pool.Allocate(rows.count * row_bytes);
    ResizeWidth(rows, WeightsOf(box.width, width, filter), channels, pool, between->data());
    rows = {.data = between->data(), .stride = row_bytes, .count = rows.count, .bytes = row_bytes};
  }
  ResizeHeight(rows, WeightsOf(box.height, height, filter), builder.data());
  return std::move(builder).Finish();
}

}  // namespace echopipe::internal
