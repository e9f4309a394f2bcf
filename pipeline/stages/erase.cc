#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <echopipe/pipeline/stages/erase.h>

namespace echopipe::internal {
namespace {

// A copy, and `write` called for each row of the box in it.
template <class Write>
Tensor CopyAndWrite(const Tensor& pixels, const PixelBox& box, BufferPool& pool,
                    const Write& write) {
  TensorBuilder builder(DType::kUint8, pixels.shape(), pool);
  std::memcpy(builder.data(), pixels.bytes().data(), builder.size());
  const auto width = static_cast<size_t>(pixels.shape()[1]);
  const auto channels = static_cast<size_t>(pixels.shape()[2]);
  for (int y = box.y; y < box.y + box.height; ++y) {
    const size_t first = static_cast<size_t>(y) * width + static_cast<size_t>(box.x);
    write(std::span(builder.data() + first * channels, static_cast<size_t>(box.width) * channels));
  }
  return std::move(builder).Finish();
}

}  // namespace

Tensor Erase(const Tensor& pixels, const PixelBox& box, const std::vector<uint8_t>& value,
             BufferPool& pool) {
  std::vector<uint8_t> one_row(static_cast<size_t>(box.width * pixels.shape()[2]));
  for (size_t i = 0; i < one_row.size(); ++i) one_row[i] = value[i % value.size()];
  return CopyAndWrite(pixels, box, pool,
                      [&](std::span<uint8_t> row) { std::ranges::copy(one_row, row.begin()); });
}

Tensor EraseWithNoise(const Tensor& pixels, const PixelBox& box, RandomStream& random,
                      BufferPool& pool) {
  return CopyAndWrite(pixels, box, pool, [&](std::span<uint8_t> row) {
    uint32_t bits = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      bits = i % 4 == 0 ? random.Next() : bits >> 8;
      row[i] = static_cast<uint8_t>(bits);
    }
  });
}

}  // namespace echopipe::internal
