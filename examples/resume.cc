// A trainer that may be interrupted at any moment: it saves its model and its pipeline together and
// goes on from both, with the result of a run that was never interrupted.
//
//     echopipe_example_resume FOLDER

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/base/replace_file.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/pipeline.h>

namespace {

using echopipe::Pipeline;
using echopipe::PipelineCheckpoint;

constexpr uint64_t kSaveEvery = 4;
constexpr uint64_t kNever = ~uint64_t{0};

// Stands for a network: its mean picture value by colour, which depends on the order of the
// batches.
struct Model {
  std::array<double, 3> mean = {};

  void Train(const echopipe::Batch& batch) {
    const echopipe::Tensor& images = batch.Get("image");  // [N, 3, 32, 32] float32
    const auto values = images.as<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      double& channel = mean[i / 1024 % 3];
      channel += 1e-3 * (values[i] - channel);
    }
  }
};

// One file for both, so that they are always of the same step. Replaced in one step: whatever
// happens, the old one or the new one is there.
void Save(const Model& model, const Pipeline& pipeline, const std::string& path) {
  const std::string bytes(reinterpret_cast<const char*>(&model), sizeof(model));
  echopipe::ReplaceFile(path, bytes + pipeline.Checkpoint().ToBytes());
}

// Trains from where the file tells, or from the start, to the end or to `interrupted_at`.
Model Train(const echopipe::PipelineSpec& spec, const std::string& path, uint64_t interrupted_at) {
  Model model;
  std::unique_ptr<Pipeline> pipeline;
  if (std::ifstream file(path, std::ios::binary); file) {
    file.read(reinterpret_cast<char*>(&model), sizeof(model));
    const std::string rest(std::istreambuf_iterator<char>(file), {});
    pipeline = Pipeline::Restore(spec, PipelineCheckpoint::FromBytes(rest, path));
  } else {
    pipeline = Pipeline::Open(spec);
  }
  for (const echopipe::Batch& batch : *pipeline) {
    if (batch.step() == interrupted_at) break;
    model.Train(batch);
    if ((batch.step() + 1) % kSaveEvery == 0) Save(model, *pipeline, path);
  }
  return model;
}

void Print(const char* name, const Model& model) {
  std::printf("%s: %.15f %.15f %.15f\n", name, model.mean[0], model.mean[1], model.mean[2]);
}

// A folder of its own, removed at the end.
class WorkFolder {
 public:
  WorkFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("echopipe-resume-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~WorkFolder() { std::filesystem::remove_all(path_); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::string Path(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const echopipe::PipelineSpec spec = echopipe::PipelineBuilder(argv[1])
                                          .ShuffleFully()
                                          .Epochs(3)
                                          .Decode()
                                          .Echo({.factor = 2, .shuffle_buffer = 32})
                                          .RandomResizedCrop(32, 32)
                                          .Normalize()
                                          .Batch({.size = 8})
                                          .Build();
  const WorkFolder folder;
  const Model whole = Train(spec, folder.Path("whole"), kNever);
  // The second time all since the last save is lost, and done again.
  Train(spec, folder.Path("model"), 8);
  Train(spec, folder.Path("model"), 15);
  const Model resumed = Train(spec, folder.Path("model"), kNever);
  Print("never interrupted", whole);
  Print("interrupted twice", resumed);
  std::printf("%s\n", whole.mean == resumed.mean ? "the same" : "NOT the same");
  return whole.mean == resumed.mean ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
