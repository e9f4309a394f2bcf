// A user's program: a folder of made-up records, echoed and batched.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/dlpack.h>  // needs none of DLPack's own headers
#include <echopipe/pipeline/pipeline.h>

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "echopipe-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  for (const char* name : {"cats/1.jpg", "cats/2.jpg", "dogs/1.jpg"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << name;
  }
  const echopipe::PipelineSpec spec = echopipe::PipelineBuilder(folder)
                                          .Echo({.factor = 2, .shuffle_buffer = 2, .spacing = 2})
                                          .Batch({.size = 2})
                                          .Build();
  size_t examples = 0;
  int64_t dogs = 0;
  const auto pipeline = echopipe::Pipeline::Open(spec);
  for (const echopipe::Batch& batch : *pipeline) {
    examples += batch.size();
    for (const int64_t label : batch.labels()) dogs += label;
  }
  std::filesystem::remove_all(folder);
  try {
    echopipe::PipelineBuilder("nowhere").Batch({.size = 0}).Build();
    return 1;
  } catch (const echopipe::Error& error) {
    std::cout << error.what() << '\n';
  }
  return examples == 6 && dogs == 2 ? 0 : 1;
}
