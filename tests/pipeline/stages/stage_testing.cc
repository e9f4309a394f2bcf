#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <echopipe/base/random.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

proto::Stage Parse(const StageType& type, const std::string& fields) {
  proto::Stage message;
  const std::string text = std::string(type.name) + " { " + fields + " }";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

}  // namespace

std::unique_ptr<Stage> MakeStage(const StageType& type, const std::string& fields,
                                 const UserFunctions& functions) {
  const proto::Stage message = Parse(type, fields);
  type.validate(message);
  return type.make(message, functions);
}

std::string InvalidMessage(const StageType& type, const std::string& fields) {
  try {
    type.validate(Parse(type, fields));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

ErrorCode CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error was thrown";
  return ErrorCode::kInternal;
}

Tensor Picture(int height, int width, int channels,
               const std::function<int(int, int, int)>& value) {
  BufferPool pool;
  TensorBuilder builder(DType::kUint8, {height, width, channels}, pool);
  uint8_t* out = builder.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) *out++ = static_cast<uint8_t>(value(y, x, c));
    }
  }
  return std::move(builder).Finish();
}

Tensor Noise(int height, int width, int channels) {
  RandomStream random(Key(static_cast<uint64_t>(height) << 32 | static_cast<uint32_t>(width)));
  return Picture(height, width, channels,
                 [&](int, int, int) { return static_cast<int>(random.Below(256)); });
}

Tensor CutOut(const Tensor& pixels, const PixelBox& box) {
  const auto height = static_cast<int>(pixels.shape()[0]);
  const auto width = static_cast<int>(pixels.shape()[1]);
  const auto channels = static_cast<int>(pixels.shape()[2]);
  return Picture(box.height, box.width, channels, [&](int y, int x, int c) {
    const int row = box.y + y;
    const int column = box.x + x;
    if (row < 0 || row >= height || column < 0 || column >= width) return 0;
    return int{pixels.bytes()[static_cast<size_t>((row * width + column) * channels + c)]};
  });
}

RandomKey Key(uint64_t i) { return HashToKey(std::array{uint64_t{2024}, i}); }

Tensor Apply(const Stage& stage, const Tensor& image, uint64_t i) {
  BufferPool pool;
  Example example;
  example.Set("image", image);
  EXPECT_TRUE(stage.Apply(example, {.pool = pool, .random_key = Key(i)}));
  return example.Get("image");
}

std::vector<uint8_t> Bytes(const Tensor& tensor) {
  return {tensor.bytes().begin(), tensor.bytes().end()};
}

double ChiSquareSigmas(const std::vector<int>& counts) {
  const double cells = static_cast<double>(counts.size());
  const double expected = std::accumulate(counts.begin(), counts.end(), 0.0) / cells;
  double statistic = 0;
  for (const int count : counts) statistic += (count - expected) * (count - expected) / expected;
  const double freedom = cells - 1;
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

}  // namespace echopipe::internal
