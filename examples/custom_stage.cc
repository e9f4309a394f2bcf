// The program's own functions as stages: a Filter that leaves examples out, a Map that adds a
// feature.
//
//     echopipe_example_custom_stage FOLDER

#include <cstdio>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/pipeline.h>

namespace {

using echopipe::Example;

// Mean brightness of the picture, as a feature of its own: [1] float32.
void AddBrightness(Example& example) {
  static echopipe::BufferPool pool;
  double sum = 0;
  const echopipe::Tensor& image = example.Get("image");
  for (const uint8_t value : image.bytes()) sum += value;
  echopipe::TensorBuilder brightness(echopipe::DType::kFloat32, {1}, pool);
  *brightness.as<float>() = static_cast<float>(sum / static_cast<double>(image.bytes().size()));
  example.Set("brightness", std::move(brightness).Finish());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const echopipe::PipelineSpec spec =
      echopipe::PipelineBuilder(argv[1])
          .SkipBadExamples()
          .Decode()
          .Filter("even labels", [](const Example& example) { return *example.label() % 2 == 0; })
          .Stage("resize { height: 64 width: 64 interpolation: AREA }")
          .Map("brightness", AddBrightness)
          .Batch({.size = 16})
          .Build();
  const auto pipeline = echopipe::Pipeline::Open(spec);
  for (const echopipe::Batch& batch : *pipeline) {
    std::printf("%zu examples, the first is %s with brightness %.1f\n", batch.size(),
                batch.provenance(0).key.c_str(), batch.Get("brightness").as<float>()[0]);
  }
  return 0;
} catch (const echopipe::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
