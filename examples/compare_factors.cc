// Which echo factor is free here? Runs the same pipeline at several factors over slow storage.
//
//     echopipe_example_compare_factors FOLDER

#include <chrono>
#include <cstdio>
#include <thread>

#include <echopipe/base/clock.h>
#include <echopipe/base/error.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/pipeline.h>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::printf("factor  examples/s  stall      R\n");
  for (const double factor : {1.0, 2.0, 4.0}) {
    const echopipe::PipelineSpec spec = echopipe::PipelineBuilder(argv[1])
                                            .ShuffleFully()
                                            .Decode()
                                            .Echo({.factor = factor, .shuffle_buffer = 32})
                                            .RandomResizedCrop(64, 64)
                                            .Batch({.size = 16})
                                            .Build();
    const auto pipeline = echopipe::Pipeline::Open(
        spec, {.storage = echopipe::MakeShapedStorage(echopipe::MakeLocalStorage(8),
                                                      {.bytes_per_second = 20'000'000},
                                                      echopipe::MakeSteadyClock())});
    for (const echopipe::Batch& batch : *pipeline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(batch.size()));  // a step of training
    }
    const echopipe::PipelineStats stats = pipeline->Stats();
    std::printf("%6.1f %11.0f  %4.0f%%  %5.1f\n", factor, stats.examples_per_s,
                stats.stall_share * 100, stats.echo_points[0].r);
  }
  return 0;
} catch (const echopipe::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
