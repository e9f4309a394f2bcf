#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <echopipe/pipeline/stages/color_kernels.h>
#include <echopipe/pipeline/stages/color_ops.h>

namespace echopipe::internal {
namespace {

/// What becomes of each value.
using Table = std::array<uint8_t, 256>;

template <class Function>
Table TableOf(const Function& function) {
  Table table;
  for (int value = 0; value < 256; ++value) {
    table[static_cast<size_t>(value)] = static_cast<uint8_t>(function(value));
  }
  return table;
}

size_t ChannelsOf(const Tensor& pixels) { return static_cast<size_t>(pixels.shape()[2]); }

Tensor MapValues(const Tensor& pixels, const Table& table, BufferPool& pool) {
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  uint8_t* out = builder.data();
  for (const uint8_t value : pixels.bytes()) *out++ = table[value];
  return std::move(builder).Finish();
}

// Each channel by the table that `table_of` makes of its histogram.
template <class TableOfHistogram>
Tensor MapByHistogram(const Tensor& pixels, const TableOfHistogram& table_of, BufferPool& pool) {
  using Histogram = std::array<uint64_t, 256>;
  std::array<Histogram, 3> histograms{};
  const size_t channels = ChannelsOf(pixels);
  const std::span<const uint8_t> values = pixels.bytes();
  for (size_t i = 0; i < values.size(); i += channels) {
    for (size_t c = 0; c < channels; ++c) ++histograms[c][values[i + c]];
  }
  std::array<Table, 3> tables;
  for (size_t c = 0; c < channels; ++c) tables[c] = table_of(histograms[c]);
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  uint8_t* out = builder.data();
  for (size_t i = 0; i < values.size(); i += channels) {
    for (size_t c = 0; c < channels; ++c) out[i + c] = tables[c][values[i + c]];
  }
  return std::move(builder).Finish();
}

// Cut to 0..255 and rounded down.
uint8_t ToByte(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F)); }

// Calls `kernel` with the values, how many pixels of three channels they are, and the output.
template <class Kernel>
Tensor RunOnColors(const Tensor& pixels, BufferPool& pool, const Kernel& kernel) {
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  kernel(pixels.bytes().data(), pixels.bytes().size() / 3, builder.data());
  return std::move(builder).Finish();
}

Tensor Scale(const Tensor& pixels, double factor, float shift, BufferPool& pool) {
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  const std::span<const uint8_t> values = pixels.bytes();
  ScaleAndShift(values.data(), values.size(), static_cast<float>(factor), shift, builder.data());
  return std::move(builder).Finish();
}

float MeanGray(const Tensor& pixels) {
  const std::span<const uint8_t> values = pixels.bytes();
  const size_t count = values.size() / ChannelsOf(pixels);
  uint64_t sum = 0;
  if (ChannelsOf(pixels) == 3) {
    sum = SumOfGrays(values.data(), count);
  } else {
    for (const uint8_t value : values) sum += value;
  }
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(count));
}

Table StretchingTable(const std::array<uint64_t, 256>& histogram) {
  const auto is_used = [](uint64_t count) { return count > 0; };
  const auto low = std::ranges::find_if(histogram, is_used) - histogram.begin();
  const auto high =
      255 - (std::find_if(histogram.rbegin(), histogram.rend(), is_used) - histogram.rbegin());
  if (low == high) return TableOf([](int value) { return value; });
  const float scale = static_cast<float>(high - low) * static_cast<float>(1.0 / 255);
  return TableOf([&](int value) { return ToByte(static_cast<float>(value - low) / scale); });
}

// Source: Pillow, ImageOps.equalize.
Table EqualizingTable(const std::array<uint64_t, 256>& histogram) {
  uint64_t total = 0;
  uint64_t highest = 0;  // how many have the highest value that there is
  for (const uint64_t count : histogram) {
    total += count;
    if (count > 0) highest = count;
  }
  const uint64_t step = (total - highest) / 255;
  if (step == 0) return TableOf([](int value) { return value; });
  uint64_t sum = step / 2;
  return TableOf([&](int value) {
    const uint64_t level = sum / step;
    sum += histogram[static_cast<size_t>(value)];
    return std::min<uint64_t>(level, 255);
  });
}

}  // namespace

Tensor AdjustBrightness(const Tensor& pixels, double factor, BufferPool& pool) {
  return Scale(pixels, factor, 0, pool);
}

Tensor AdjustContrast(const Tensor& pixels, double factor, BufferPool& pool) {
  return Scale(pixels, factor, MeanGray(pixels) * static_cast<float>(1 - factor), pool);
}

Tensor AdjustSaturation(const Tensor& pixels, double factor, BufferPool& pool) {
  if (ChannelsOf(pixels) == 1) return pixels;
  return RunOnColors(pixels, pool, [factor](const uint8_t* in, size_t count, uint8_t* out) {
    BlendWithGray(in, count, factor, out);
  });
}

Tensor AdjustHue(const Tensor& pixels, double turns, BufferPool& pool) {
  if (ChannelsOf(pixels) == 1) return pixels;
  return RunOnColors(pixels, pool, [turns](const uint8_t* in, size_t count, uint8_t* out) {
    TurnHue(in, count, turns, out);
  });
}

Tensor AdjustSharpness(const Tensor& pixels, double factor, BufferPool& pool) {
  const Shape& shape = pixels.shape();
  if (shape[0] <= 2 || shape[1] <= 2) return pixels;
  TensorBuilder builder(DType::kUint8, shape, pool);
  const size_t stride = static_cast<size_t>(shape[1] * shape[2]);
  const size_t last = pixels.bytes().size() - stride;
  const uint8_t* in = pixels.bytes().data();
  std::memcpy(builder.data(), in, stride);
  for (size_t i = stride; i < last; i += stride) {
    SharpenRow({.above = in + i - stride,
                .row = in + i,
                .below = in + i + stride,
                .count = stride,
                .channels = ChannelsOf(pixels)},
               factor, builder.data() + i);
  }
  std::memcpy(builder.data() + last, in + last, stride);
  return std::move(builder).Finish();
}

Tensor Grayscale(const Tensor& pixels, BufferPool& pool) {
  if (ChannelsOf(pixels) == 1) return pixels;
  return RunOnColors(pixels, pool, &MakeGray);
}

Tensor Posterize(const Tensor& pixels, int bits, BufferPool& pool) {
  const int mask = 0xFF << (8 - bits) & 0xFF;
  return MapValues(pixels, TableOf([mask](int value) { return value & mask; }), pool);
}

Tensor Solarize(const Tensor& pixels, double threshold, BufferPool& pool) {
  const auto solarized = [t = static_cast<float>(threshold)](int value) {
    return static_cast<float>(value) >= t ? 255 - value : value;
  };
  return MapValues(pixels, TableOf(solarized), pool);
}

Tensor Invert(const Tensor& pixels, BufferPool& pool) {
  return MapValues(pixels, TableOf([](int value) { return 255 - value; }), pool);
}

Tensor Autocontrast(const Tensor& pixels, BufferPool& pool) {
  return MapByHistogram(pixels, &StretchingTable, pool);
}

Tensor Equalize(const Tensor& pixels, BufferPool& pool) {
  return MapByHistogram(pixels, &EqualizingTable, pool);
}

}  // namespace echopipe::internal
