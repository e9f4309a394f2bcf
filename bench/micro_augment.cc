// What the augmentations cost for one photo of 500 x 375 that becomes 224 x 224, on one core.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <google/protobuf/text_format.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

extern const StageType kNormalizeStage;
extern const StageType kRandomFlipStage;
extern const StageType kRandomResizedCropStage;
extern const StageType kResizeStage;

namespace {

std::unique_ptr<Stage> MakeStage(const StageType& type, const std::string& fields) {
  proto::Stage message;
  const std::string text = std::string(type.name) + " { " + fields + " }";
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) std::abort();
  type.validate(message);
  return type.make(message, {});
}

Tensor Photo(int height, int width, BufferPool& pool) {
  TensorBuilder builder(DType::kUint8, {height, width, 3}, pool);
  RandomStream random(RandomKey{});
  for (size_t i = 0; i < builder.size(); ++i) {
    builder.data()[i] = static_cast<uint8_t>(random.Next());
  }
  return std::move(builder).Finish();
}

void Run(benchmark::State& state, const StageType& type, const std::string& fields, int height,
         int width) {
  BufferPool pool;
  const auto stage = MakeStage(type, fields);
  const Tensor photo = Photo(height, width, pool);
  uint64_t ordinal = 0;
  for (auto _ : state) {
    Example example;
    example.Set("image", photo);
    stage->Apply(example, {.pool = pool, .random_key = {.low = ++ordinal}});
    benchmark::DoNotOptimize(example);
  }
}

void BM_Resize(benchmark::State& state, const std::string& interpolation) {
  Run(state, kResizeStage, "height: 224 width: 224 interpolation: " + interpolation, 375, 500);
}
BENCHMARK_CAPTURE(BM_Resize, bilinear, "BILINEAR");
BENCHMARK_CAPTURE(BM_Resize, nearest, "NEAREST");
BENCHMARK_CAPTURE(BM_Resize, area, "AREA");
BENCHMARK_CAPTURE(BM_Resize, bicubic, "BICUBIC");

void BM_ResizeTo384(benchmark::State& state) {
  Run(state, kResizeStage, "height: 384 width: 384", 375, 500);
}
BENCHMARK(BM_ResizeTo384);

void BM_RandomResizedCrop(benchmark::State& state) {
  Run(state, kRandomResizedCropStage, "height: 224 width: 224", 375, 500);
}
BENCHMARK(BM_RandomResizedCrop);

void BM_RandomFlip(benchmark::State& state) {
  Run(state, kRandomFlipStage, "probability: 1", 224, 224);
}
BENCHMARK(BM_RandomFlip);

// Into the places of a batch that fits in no cache.
void BM_NormalizeIntoBatch(benchmark::State& state, const std::string& layout) {
  constexpr size_t kExamples = 512;
  constexpr size_t kPlaceBytes = size_t{3} * 224 * 224 * sizeof(float);
  BufferPool pool;
  const auto stage = MakeStage(kNormalizeStage, "layout: " + layout);
  const auto& writing = dynamic_cast<const WritingStage&>(*stage);
  const Tensor photo = Photo(224, 224, pool);
  const std::shared_ptr<Buffer> batch = pool.Allocate(kExamples * kPlaceBytes);
  for (size_t i = 0; i < kExamples; ++i) writing.WriteTo(photo, batch->data() + i * kPlaceBytes);
  size_t place = 0;
  for (auto _ : state) {
    writing.WriteTo(photo, batch->data() + place * kPlaceBytes);
    place = (place + 1) % kExamples;
  }
}
BENCHMARK_CAPTURE(BM_NormalizeIntoBatch, chw, "CHW");
BENCHMARK_CAPTURE(BM_NormalizeIntoBatch, hwc, "HWC");

void BM_NormalizeIntoItsOwnTensor(benchmark::State& state) {
  Run(state, kNormalizeStage, "", 224, 224);
}
BENCHMARK(BM_NormalizeIntoItsOwnTensor);

}  // namespace
}  // namespace echopipe::internal

BENCHMARK_MAIN();
