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
namespace {

// "random_flip { probability: 1 }"
std::unique_ptr<Stage> MakeStage(const std::string& text) {
  proto::Stage message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) std::abort();
  const StageType& type = *FindStageType(message);
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

void Run(benchmark::State& state, const std::string& text, int height, int width) {
  BufferPool pool;
  const auto stage = MakeStage(text);
  const Tensor photo = Photo(height, width, pool);
  uint64_t ordinal = 0;
  for (auto _ : state) {
    Example example;
    example.Set("image", photo);
    stage->Apply(example, {.pool = pool, .random_key = {.low = ++ordinal}});
    benchmark::DoNotOptimize(example);
  }
}

void BM_Resize(benchmark::State& state, const std::string& fields) {
  Run(state, "resize { height: 224 width: 224 " + fields + " }", 375, 500);
}
BENCHMARK_CAPTURE(BM_Resize, bilinear, "interpolation: BILINEAR");
BENCHMARK_CAPTURE(BM_Resize, nearest, "interpolation: NEAREST");
BENCHMARK_CAPTURE(BM_Resize, area, "interpolation: AREA");
BENCHMARK_CAPTURE(BM_Resize, bicubic, "interpolation: BICUBIC");
BENCHMARK_CAPTURE(BM_Resize, bilinear_antialias, "interpolation: BILINEAR antialias: true");
BENCHMARK_CAPTURE(BM_Resize, bicubic_antialias, "interpolation: BICUBIC antialias: true");

void BM_ResizeTo384(benchmark::State& state) {
  Run(state, "resize { height: 384 width: 384 }", 375, 500);
}
BENCHMARK(BM_ResizeTo384);

void BM_RandomResizedCrop(benchmark::State& state) {
  Run(state, "random_resized_crop { height: 224 width: 224 }", 375, 500);
}
BENCHMARK(BM_RandomResizedCrop);

void BM_RandomFlip(benchmark::State& state) {
  Run(state, "random_flip { probability: 1 }", 224, 224);
}
BENCHMARK(BM_RandomFlip);

// 224 x 224, always applied.
void BM_Augment(benchmark::State& state, const std::string& text) { Run(state, text, 224, 224); }
BENCHMARK_CAPTURE(BM_Augment, brightness, "color_jitter { brightness: 0.4 }");
BENCHMARK_CAPTURE(BM_Augment, contrast, "color_jitter { contrast: 0.4 }");
BENCHMARK_CAPTURE(BM_Augment, saturation, "color_jitter { saturation: 0.4 }");
BENCHMARK_CAPTURE(BM_Augment, hue, "color_jitter { hue: 0.1 }");
BENCHMARK_CAPTURE(BM_Augment, color_jitter,
                  "color_jitter { brightness: 0.4 contrast: 0.4 saturation: 0.4 hue: 0.1 }");
BENCHMARK_CAPTURE(BM_Augment, random_grayscale, "random_grayscale { probability: 1 }");
BENCHMARK_CAPTURE(BM_Augment, gaussian_blur, "gaussian_blur { kernel_size: 23 }");
BENCHMARK_CAPTURE(BM_Augment, random_erasing, "random_erasing { probability: 1 }");
BENCHMARK_CAPTURE(BM_Augment, random_rotation_nearest, "random_rotation { degrees: 30 }");
BENCHMARK_CAPTURE(BM_Augment, random_rotation_bilinear,
                  "random_rotation { degrees: 30 interpolation: BILINEAR }");
BENCHMARK_CAPTURE(BM_Augment, random_autocontrast, "random_autocontrast { probability: 1 }");
BENCHMARK_CAPTURE(BM_Augment, random_equalize, "random_equalize { probability: 1 }");
BENCHMARK_CAPTURE(BM_Augment, random_posterize, "random_posterize { bits: 4 probability: 1 }");
BENCHMARK_CAPTURE(BM_Augment, random_adjust_sharpness,
                  "random_adjust_sharpness { factor: 2 probability: 1 }");
BENCHMARK_CAPTURE(BM_Augment, rand_augment, "rand_augment {}");
BENCHMARK_CAPTURE(BM_Augment, trivial_augment_wide, "trivial_augment_wide {}");

// Into the places of a batch that fits in no cache.
void BM_NormalizeIntoBatch(benchmark::State& state, const std::string& fields) {
  constexpr size_t kExamples = 512;
  constexpr size_t kPlaceBytes = size_t{3} * 224 * 224 * sizeof(float);
  BufferPool pool;
  const auto stage = MakeStage("normalize { " + fields + " }");
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
BENCHMARK_CAPTURE(BM_NormalizeIntoBatch, chw, "layout: CHW");
BENCHMARK_CAPTURE(BM_NormalizeIntoBatch, hwc, "layout: HWC");
BENCHMARK_CAPTURE(BM_NormalizeIntoBatch, chw_float16, "layout: CHW type: FLOAT16");
BENCHMARK_CAPTURE(BM_NormalizeIntoBatch, hwc_float16, "layout: HWC type: FLOAT16");

void BM_NormalizeIntoItsOwnTensor(benchmark::State& state) { Run(state, "normalize {}", 224, 224); }
BENCHMARK(BM_NormalizeIntoItsOwnTensor);

}  // namespace
}  // namespace echopipe::internal

BENCHMARK_MAIN();
