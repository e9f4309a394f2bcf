// What a checkpoint costs: its size, its time, and the stall that one each second adds.
//
//     echopipe_checkpoint_cost FOLDER [ROUNDS]
//
// First a pipeline whose echo point holds 10,000 records (made up, of 4 KB each): size, CPU and
// wall time of Checkpoint() and Save(), and the time from Restore() to the first batch. Then the
// images of FOLDER are read, decoded, echoed, augmented and batched for a consumer that takes 40 ms
// for each batch: in turn without checkpoints and with one each second, which the consumer's thread
// makes and writes. All time that the consumer does not spend on batches is stall. Prints one JSON
// object.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/pipeline.h>

namespace echopipe {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kResidents = 10'000;
constexpr size_t kRecordBytes = 4096;
constexpr std::chrono::milliseconds kConsumerTime(40);
constexpr std::chrono::seconds kRunTime(4);
constexpr std::chrono::seconds kEvery(1);

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// A folder of its own, removed at the end.
class WorkFolder {
 public:
  WorkFolder()
      : path_(fs::temp_directory_path() /
              ("echopipe-checkpoint-cost-" + std::to_string(getpid()))) {
    fs::create_directory(path_);
  }
  ~WorkFolder() { fs::remove_all(path_); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string MakeRecords(const WorkFolder& work) {
  const std::string folder = work.Path("records");
  fs::create_directories(folder + "/class");
  const std::string bytes(kRecordBytes, 'x');
  for (uint64_t i = 0; i < 2 * kResidents; ++i) {
    std::ofstream(folder + "/class/" + std::to_string(i) + ".jpg") << bytes;
  }
  return folder;
}

void Print(const char* name, std::vector<double> values, const char* end = ",\n") {
  std::sort(values.begin(), values.end());
  std::printf("  \"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}%s", name,
              values[values.size() / 2], values.front(), values.back(), end);
}

struct Cost {
  double cpu_ms = 0;  // of the calling thread
  double wall_ms = 0;
};

Cost Measure(const std::function<void()>& call) {
  const auto cpu_now = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto milliseconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) * 1e-3;
    };
    return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
  };
  const double cpu = cpu_now();
  const Clock::time_point begin = Clock::now();
  call();
  return {cpu_now() - cpu, Milliseconds(Clock::now() - begin)};
}

// Spacing has the buffer filled before the first batch.
void MeasureOne(const WorkFolder& work, int rounds) {
  const PipelineSpec spec =
      PipelineBuilder(MakeRecords(work))
          .ShuffleFully()
          .Epochs(0)
          .Echo({.factor = 2, .shuffle_buffer = kResidents, .spacing = kResidents})
          .Batch({.size = 100})
          .Build();
  const std::string path = work.Path("run.ckpt");
  const auto pipeline = Pipeline::Open(spec);
  std::vector<double> cpu;
  std::vector<double> wall;
  std::vector<double> restore;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 100; ++i) pipeline->Next();
    const Cost cost = Measure([&] { pipeline->Checkpoint().Save(path); });
    cpu.push_back(cost.cpu_ms);
    wall.push_back(cost.wall_ms);
    restore.push_back(
        Measure([&] { Pipeline::Restore(spec, PipelineCheckpoint::Load(path))->Next(); }).wall_ms);
  }
  std::printf("  \"residents\": %d,\n  \"bytes\": %d,\n", static_cast<int>(kResidents),
              static_cast<int>(fs::file_size(path)));
  Print("checkpoint_and_save_cpu_ms", cpu);
  Print("checkpoint_and_save_wall_ms", wall);
  Print("restore_to_first_batch_wall_ms", restore);
}

/// Shares of a run's time, in percent.
struct Shares {
  double stall = 0;  ///< inside Next()
  double in_checkpoint = 0;
  double in_save = 0;
};

Shares Consume(Pipeline& pipeline, const std::optional<std::string>& checkpoint) {
  pipeline.Next();
  const Clock::time_point begin = Clock::now();
  Clock::time_point next = begin + kEvery;
  double stall = 0;
  double in_checkpoint = 0;
  double in_save = 0;
  while (Clock::now() < begin + kRunTime) {
    std::this_thread::sleep_for(kConsumerTime);
    if (checkpoint && Clock::now() >= next) {
      std::optional<PipelineCheckpoint> made;
      in_checkpoint += Measure([&] { made = pipeline.Checkpoint(); }).wall_ms;
      in_save += Measure([&] { made->Save(*checkpoint); }).wall_ms;
      next += kEvery;
    }
    stall += Measure([&] { pipeline.Next(); }).wall_ms;
  }
  const double all = Milliseconds(Clock::now() - begin);
  return {.stall = 100 * stall / all,
          .in_checkpoint = 100 * in_checkpoint / all,
          .in_save = 100 * in_save / all};
}

void MeasureStall(const std::string& folder, const WorkFolder& work, int rounds) {
  const PipelineSpec spec = PipelineBuilder(folder)
                                .ShuffleFully()
                                .Epochs(0)
                                .Decode()
                                .Echo({.factor = 2, .shuffle_buffer = 128})
                                .RandomResizedCrop(224, 224)
                                .RandomFlip()
                                .Normalize()
                                .Batch({.size = 8})
                                .Build();
  std::vector<double> without;
  std::vector<double> with;
  std::vector<double> added;
  std::vector<double> in_checkpoint;
  std::vector<double> in_save;
  for (int round = 0; round < rounds; ++round) {
    Shares shares[2];
    for (const int turn : {0, 1}) {
      const int checkpoints = (turn + round) % 2;  // each goes first in every second round
      shares[checkpoints] =
          Consume(*Pipeline::Open(spec),
                  checkpoints == 1 ? std::optional(work.Path("run.ckpt")) : std::nullopt);
    }
    without.push_back(shares[0].stall);
    with.push_back(shares[1].stall);
    added.push_back(shares[1].stall - shares[0].stall);
    in_checkpoint.push_back(shares[1].in_checkpoint);
    in_save.push_back(shares[1].in_save);
  }
  Print("stall_percent_without", without);
  Print("stall_percent_with_one_each_second", with);
  Print("stall_percent_added", added);
  Print("in_checkpoint_percent", in_checkpoint);
  Print("in_save_percent", in_save, "\n}\n");
}

}  // namespace
}  // namespace echopipe

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [ROUNDS]\n", argv[0]);
    return 2;
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 15;
  try {
    const echopipe::WorkFolder work;
    std::printf("{\n  \"rounds\": %d,\n", rounds);
    echopipe::MeasureOne(work, rounds);
    echopipe::MeasureStall(argv[1], work, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 3;
  }
  return 0;
}
