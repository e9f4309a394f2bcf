// How pipelines end: by themselves, by Stop(), by errors, by destruction, in a forked child.

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/graph_run.h>
#include <echopipe/tests/support/image_data.h>

#if defined(__SANITIZE_ADDRESS__)
#define ECHOPIPE_TEST_SLOW 1
#else
#define ECHOPIPE_TEST_SLOW 0
#endif

namespace echopipe {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using testing::FakeStorage;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TempFolder;

namespace fs = std::filesystem;

std::shared_ptr<FakeStorage> ImageStorage(FakeStorage::Mode mode = FakeStorage::Mode::kImmediate) {
  auto storage = std::make_shared<FakeStorage>(mode);
  for (const auto& [name, bytes] : testing::MakeImages(30, 3)) storage->Put("data/" + name, bytes);
  return storage;
}

const char* const kStages =
    "stage { decode {} } stage { echo { factor: 2 } } "
    "stage { random_crop { height: 8 width: 8 } } stage { batch { size: 4 } }";

PipelineSpec Spec(const std::string& source, const std::string& stages) {
  return PipelineSpec::FromText("seed: 5 source { " + source + " } " + stages);
}

/// The code of the error that Next() throws; nothing if it gives a batch or the end.
std::optional<ErrorCode> ErrorOfNext(Pipeline& pipeline) {
  try {
    pipeline.Next();
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

/// Takes all there is; the error that ends it.
std::optional<Error> DrainToError(Pipeline& pipeline, uint64_t* examples = nullptr) {
  try {
    while (const std::optional<Batch> batch = pipeline.Next()) {
      if (examples != nullptr) *examples += batch->size();
    }
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

TEST(PipelineEndTest, AfterTheEndNextGivesNothingAnyNumberOfTimes) {
  const auto pipeline = Pipeline::Open(Spec("uri: 'data'", kStages), {.storage = ImageStorage()});
  EXPECT_FALSE(DrainToError(*pipeline));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(pipeline->Next());
}

TEST(PipelineEndTest, ManyCallersShareTheBatchesAndAllSeeTheEnd) {
  const auto pipeline =
      Pipeline::Open(Spec("uri: 'data' epochs: 5", kStages), {.storage = ImageStorage()});
  std::array<std::vector<uint64_t>, 4> steps;
  {
    std::vector<std::jthread> callers;
    for (std::vector<uint64_t>& mine : steps) {
      callers.emplace_back([&] {
        while (const std::optional<Batch> batch = pipeline->Next()) mine.push_back(batch->step());
      });
    }
  }
  std::set<uint64_t> all;
  size_t count = 0;
  for (const std::vector<uint64_t>& mine : steps) {
    EXPECT_TRUE(std::ranges::is_sorted(mine)) << "a caller sees its batches in order";
    all.insert(mine.begin(), mine.end());
    count += mine.size();
  }
  EXPECT_EQ(count, 75u);  // 5 epochs of 60 draws in fours
  EXPECT_THAT(all, SizeIs(75));
}

TEST(PipelineEndTest, StopFreesEveryWaitingCaller) {
  const auto pipeline = Pipeline::Open(Spec("uri: 'data'", kStages),
                                       {.storage = ImageStorage(FakeStorage::Mode::kGated)});
  std::atomic<int> stopped = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&] { stopped += ErrorOfNext(*pipeline) == ErrorCode::kStopped; });
    }
    while (pipeline->Stats().stall_s == 0) std::this_thread::yield();
    pipeline->Stop();
  }
  EXPECT_EQ(stopped, 3);
  EXPECT_EQ(ErrorOfNext(*pipeline), ErrorCode::kStopped) << "later callers too";
  pipeline->Stop();
}

TEST(PipelineEndTest, AfterStopBatchesThatAreReadyAreNotGivenEither) {
  testing::GraphRun run(Spec("uri: 'synthetic'", "stage { batch { size: 2 } }"), {.records = 20});
  run.graph().Drive();
  run.graph().Stop();
  EXPECT_THROW(run.graph().Take(), Error);
  EXPECT_EQ(run.graph().Stats().batches, 0u);
}

TEST(PipelineEndTest, StopCountsNoFurtherBatches) {
  const auto pipeline =
      Pipeline::Open(Spec("uri: 'data' epochs: 0", kStages), {.storage = ImageStorage()});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pipeline->Next());
  pipeline->Stop();
  EXPECT_EQ(ErrorOfNext(*pipeline), ErrorCode::kStopped);
  EXPECT_EQ(pipeline->Stats().batches, 50u);
}

TEST(PipelineEndTest, AThrowingFunctionEndsItAfterAllThatCameBeforeAndIsThrownAgain) {
  const PipelineSpec spec = Spec("uri: 'data'",
                                 "stage { map { function: 'fails' } } stage { echo { factor: 2 } } "
                                 "stage { batch { size: 4 } }")
                                .WithMap("fails", [](Example& example) {
                                  if (example.provenance().identity.ordinal == 21)
                                    throw std::runtime_error("no more");
                                });
  const auto pipeline = Pipeline::Open(spec, {.threads = 2, .storage = ImageStorage()});
  uint64_t examples = 0;
  const std::optional<Error> error = DrainToError(*pipeline, &examples);
  ASSERT_TRUE(error);
  EXPECT_EQ(examples, 42u);
  EXPECT_EQ(error->code(), ErrorCode::kUserFunction);
  EXPECT_THAT(error->what(), HasSubstr("no more"));
  EXPECT_THAT(error->what(), HasSubstr("map"));
  EXPECT_THAT(error->what(), HasSubstr("data/class-"));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(DrainToError(*pipeline)->what(), std::string(error->what()));
}

TEST(PipelineEndTest, WhatIsThrownNeedNotBeAnException) {
  const PipelineSpec spec =
      Spec("uri: 'data'", "stage { filter { function: 'fails' } } stage { batch { size: 4 } }")
          .WithFilter("fails", [](const Example&) -> bool { throw 42; });
  const auto pipeline = Pipeline::Open(spec, {.storage = ImageStorage()});
  EXPECT_EQ(ErrorOfNext(*pipeline), ErrorCode::kUserFunction);
}

TEST(PipelineEndTest, ABrokenReadEndsItWithTheFilesName) {
  const auto storage = ImageStorage();
  storage->FailAlways("data/class-1/image-010.jpg", Error({.code = ErrorCode::kIo,
                                                           .what = "the disk is broken",
                                                           .where = "data/class-1/image-010.jpg"}));
  const auto pipeline = Pipeline::Open(Spec("uri: 'data'", kStages), {.storage = storage});
  const std::optional<Error> error = DrainToError(*pipeline);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kIo);
  EXPECT_THAT(error->what(), HasSubstr("image-010.jpg"));
}

TEST(PipelineEndTest, AVanishedFolderEndsAnEndlessPipeline) {
  for (const std::string policy : {"FAIL", "SKIP"}) {
    const TempFolder parent;
    for (const auto& [name, bytes] : testing::MakeImages(30, 3)) {
      parent.Write("photos/" + name, bytes);
    }
    const std::string folder = parent.Path("photos");
    const auto pipeline = Pipeline::Open(Spec(
        "uri: '" + folder + "' epochs: 0", kStages + (" bad_examples { policy: " + policy + " }")));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(pipeline->Next());
    fs::remove_all(folder);
    const std::optional<Error> error = DrainToError(*pipeline);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kNotFound) << policy;
    EXPECT_THAT(error->what(), HasSubstr(folder)) << policy;
  }
}

TEST(PipelineEndTest, AFolderThatNeverWasIsToldByOpen) {
  try {
    Pipeline::Open(Spec("uri: '/nowhere/at/all'", kStages));
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/at/all"));
  }
}

/// Runs in a child process; true if it returned true there.
template <class Body>
bool InChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(PipelineEndTest, AForkedChildGetsAnErrorAndTheParentGoesOn) {
  std::unique_ptr<Pipeline> pipeline =
      Pipeline::Open(Spec("uri: 'data' epochs: 3", kStages), {.storage = ImageStorage()});
  uint64_t examples = pipeline->Next()->size();
  EXPECT_TRUE(InChild([&] { return ErrorOfNext(*pipeline) == ErrorCode::kForked; }));
  EXPECT_TRUE(InChild([&] {
    try {
      pipeline->Stop();
    } catch (const Error& error) {
      return error.code() == ErrorCode::kForked;
    }
    return false;
  }));
  EXPECT_TRUE(InChild([&] {
    pipeline.reset();  // must not wait for threads that the child does not have
    return true;
  }));
  EXPECT_FALSE(DrainToError(*pipeline, &examples));
  EXPECT_EQ(examples, 180u);
}

struct Config {
  const char* name;
  const char* source;
  const char* stages;
  bool real_files = false;
  FakeStorage::Mode mode = FakeStorage::Mode::kImmediate;
};

class PipelineDestruction : public ::testing::TestWithParam<Config> {
 protected:
  static bool Small(const Example& example) {
    return example.provenance().identity.ordinal % 3 > 0;
  }
};

TEST_P(PipelineDestruction, MayComeAtAnyMoment) {
  const Config& config = GetParam();
  const int rounds = ECHOPIPE_TEST_SLOW ? 60 : 400;
  TempFolder folder;
  if (config.real_files) testing::WriteImages(folder, 30, 3);
  const std::string uri = config.real_files ? folder.path().string() : "data";
  const PipelineSpec spec =
      Spec("uri: '" + uri + "' " + config.source, config.stages).WithFilter("small", &Small);
  RandomStream random(HashToKey(std::array<uint64_t, 1>{77}));
  const auto files = ImageStorage();
  for (int round = 0; round < rounds; ++round) {
    RuntimeOptions options{.threads = static_cast<int>(random.Between(1, 3)),
                           .reads_in_flight = static_cast<int>(random.Between(1, 8))};
    std::shared_ptr<FakeStorage> gated;
    if (config.mode == FakeStorage::Mode::kGated) {
      options.storage = gated = ImageStorage(config.mode);
    } else if (!config.real_files) {
      options.storage = files;
    }
    const auto pipeline = Pipeline::Open(spec, options);
    std::jthread consumer;
    if (random.Below(2) == 0) {
      consumer = std::jthread([&] {
        const std::optional<Error> error = DrainToError(*pipeline);
        if (error) {
          EXPECT_EQ(error->code(), ErrorCode::kStopped) << error->what();
        }
      });
    }
    for (uint32_t i = random.Below(40); gated && i > 0; --i) gated->CompleteNext();
    for (uint32_t spin = random.Below(200'000); spin > 0; --spin) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the loop
    }
    if (consumer.joinable() || random.Below(2) == 0) pipeline->Stop();
    if (consumer.joinable()) consumer.join();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Configs, PipelineDestruction,
    ::testing::Values(Config{"RealFiles", "shuffle { full {} } epochs: 0", kStages, true},
                      Config{"FinishedSoon", "take: 6", kStages},
                      Config{"ReadsShut", "epochs: 0", kStages, false, FakeStorage::Mode::kGated},
                      Config{"BatchEcho", "epochs: 0",
                             "stage { echo { factor: 1.5 } } stage { decode {} } "
                             "stage { center_crop { height: 8 width: 8 } } stage { normalize {} } "
                             "stage { batch { size: 4 remainder: DROP } } "
                             "stage { echo { factor: 2 } } stage { echo { factor: 1.5 } }"},
                      Config{"Filter", "shuffle { window: 7 } epochs: 0",
                             "stage { filter { function: 'small' } } "
                             "stage { echo { factor: 3 drain_each_epoch: true } } "
                             "stage { batch { size: 4 } }"}),
    [](const auto& config) { return config.param.name; });

}  // namespace
}  // namespace echopipe
