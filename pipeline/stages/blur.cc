#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <echopipe/pipeline/stages/blur.h>
#include <echopipe/pipeline/stages/convolution.h>

namespace echopipe::internal {
namespace {

// The weights of a kernel of `size` taps, without those at its ends that are too small to be seen.
std::vector<float> WeightsOf(int size, double sigma) {
  constexpr double kLeast = 1e-7;
  const int radius = size / 2;
  const auto height_at = [sigma](int x) { return std::exp(-0.5 * (x / sigma) * (x / sigma)); };
  double sum = 0;
  for (int x = -radius; x <= radius; ++x) sum += height_at(x);
  std::vector<float> weights;
  for (int x = -radius; x <= radius; ++x) {
    const double weight = height_at(x) / sum;
    if (weight >= kLeast || x == 0) weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

// The place in [0, size) that `i`, which is less than `size` outside, is mirrored to.
int64_t Mirrored(int64_t i, int64_t size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

// Copies the pixels that lie mirrored on both sides of a row of `width`; `row` is its first pixel.
void MirrorEnds(float* row, int64_t width, int64_t channels, int64_t radius) {
  const size_t bytes = static_cast<size_t>(channels) * sizeof(float);
  const auto copy = [&](int64_t to) {
    std::memcpy(row + to * channels, row + Mirrored(to, width) * channels, bytes);
  };
  for (int64_t i = 1; i <= radius; ++i) {
    copy(-i);
    copy(width - 1 + i);
  }
}

}  // namespace

Tensor Blur(const Tensor& pixels, const GaussianKernel& kernel, BufferPool& pool) {
  const std::vector<float> across = WeightsOf(kernel.width, kernel.sigma);
  const std::vector<float> down = WeightsOf(kernel.height, kernel.sigma);
  const auto radius_of = [](const std::vector<float>& w) {
    return static_cast<int64_t>(w.size()) / 2;
  };
  const int64_t height = pixels.shape()[0];
  const int64_t width = pixels.shape()[1];
  const int64_t channels = pixels.shape()[2];
  const auto stride = static_cast<size_t>(width * channels);
  const auto margin = static_cast<size_t>(radius_of(across) * channels);
  const auto sums = pool.Allocate((stride + 2 * margin) * sizeof(float));
  float* row = reinterpret_cast<float*>(sums->data());
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  std::vector<const uint8_t*> rows(down.size());
  for (int64_t y = 0; y < height; ++y) {
    for (size_t k = 0; k < rows.size(); ++k) {
      const int64_t from = Mirrored(y + static_cast<int64_t>(k) - radius_of(down), height);
      rows[k] = pixels.bytes().data() + static_cast<size_t>(from) * stride;
    }
    SumRows(rows, down, stride, row + margin);
    MirrorEnds(row + margin, width, channels, radius_of(across));
    SumNeighbours(row, across, static_cast<size_t>(channels), stride,
                  builder.data() + static_cast<size_t>(y) * stride);
  }
  return std::move(builder).Finish();
}

}  // namespace echopipe::internal
