// The data loader of a trainer: example echoing after decode, fresh augmentation for every use.
//
//     echopipe_example_train FOLDER      (a folder of images, one subfolder for each class)

#include <cstdio>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/pipeline.h>

namespace {

// Stands for a step on the accelerator: [N, 3, 224, 224] float32 and N labels.
double Train(const echopipe::Batch& batch) {
  const echopipe::Tensor& images = batch.Get("image");
  double sum = 0;
  for (const float value : images.as<float>()) sum += value;
  return sum / static_cast<double>(images.shape().elements());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const echopipe::PipelineSpec spec = echopipe::PipelineBuilder(argv[1])
                                          .ShuffleFully()
                                          .Epochs(2)
                                          .Decode()
                                          .Echo({.factor = 2, .shuffle_buffer = 256})
                                          .RandomResizedCrop(224, 224)
                                          .RandomFlip()
                                          .Normalize()
                                          .Batch({.size = 32})
                                          .Build();
  const auto pipeline = echopipe::Pipeline::Open(spec);
  for (const echopipe::Batch& batch : *pipeline) {
    const double mean = Train(batch);
    if (batch.end_of_epoch()) {
      std::printf("epoch %d ends with step %d (mean %.3f)\n", static_cast<int>(batch.epoch()),
                  static_cast<int>(batch.step()), mean);
    }
  }
  std::printf("%s\n", pipeline->Stats().verdict.c_str());
  return 0;
} catch (const echopipe::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
