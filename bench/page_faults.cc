// How many minor page faults a pipeline has in steady state: memory that it takes anew instead of
// using its own again.
//
//     echopipe_page_faults FOLDER [ROUNDS]
//
// The images of FOLDER are read, decoded, augmented and batched again and again, on one thread and
// on two. After a warm-up, in which the pools fill, a round is 1,000 examples. Prints one JSON
// object with the medians and the spread of the rounds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/pipeline/pipeline.h>

namespace echopipe {
namespace {

constexpr uint64_t kWarmUp = 15'000;
constexpr uint64_t kRound = 1'000;

PipelineSpec Spec(const std::string& folder) {
  return PipelineBuilder(folder)
      .ShuffleFully()
      .Epochs(0)
      .Decode()
      .RandomResizedCrop(224, 224)
      .RandomFlip()
      .Normalize()
      .Batch({.size = 40, .across_epochs = true})
      .Build();
}

// `examples` is a multiple of the batch size.
void Take(Pipeline& pipeline, uint64_t examples) {
  uint64_t taken = 0;
  while (taken < examples) {
    const std::optional<Batch> batch = pipeline.Next();
    if (!batch) throw Error({.what = "the data ended"});
    taken += batch->size();
  }
}

double Faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}

std::vector<double> FaultsPerRound(const std::string& folder, int threads, int rounds) {
  RuntimeOptions options;
  options.threads = threads;
  const auto pipeline = Pipeline::Open(Spec(folder), options);
  Take(*pipeline, kWarmUp);
  std::vector<double> faults;
  for (int round = 0; round < rounds; ++round) {
    const double before = Faults();
    Take(*pipeline, kRound);
    faults.push_back(Faults() - before);
  }
  return faults;
}

void Print(const char* name, std::vector<double> values, const char* end) {
  std::sort(values.begin(), values.end());
  std::printf("  \"%s\": {\"median\": %.0f, \"min\": %.0f, \"max\": %.0f}%s", name,
              values[values.size() / 2], values.front(), values.back(), end);
}

int Run(const std::string& folder, int rounds) {
  const std::vector<double> one = FaultsPerRound(folder, 1, rounds);
  const std::vector<double> two = FaultsPerRound(folder, 2, rounds);
  std::printf("{\n  \"warm_up\": %d,\n  \"examples\": %d,\n  \"rounds\": %d,\n",
              static_cast<int>(kWarmUp), static_cast<int>(kRound), rounds);
  Print("minor_page_faults_on_one_thread", one, ",\n");
  Print("minor_page_faults_on_two_threads", two, "\n}\n");
  return 0;
}

}  // namespace
}  // namespace echopipe

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [ROUNDS]\n", argv[0]);
    return 2;
  }
  try {
    return echopipe::Run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 10);
  } catch (const echopipe::Error& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 3;
  }
}
