// What a whole pipeline tells about itself, and that it keeps to its limits.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/open_source.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using testing::FakeStorage;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::shared_ptr<FakeStorage> ImageStorage(FakeStorage::Mode mode = FakeStorage::Mode::kImmediate) {
  auto storage = std::make_shared<FakeStorage>(mode);
  for (const auto& [name, bytes] : testing::MakeImages(60, 5)) storage->Put("data/" + name, bytes);
  return storage;
}

uint64_t TotalBytes() {
  uint64_t bytes = 0;
  for (const auto& [name, image] : testing::MakeImages(60, 5)) bytes += image.size();
  return bytes;
}

PipelineSpec Spec(const std::string& stages) {
  return PipelineSpec::FromText("seed: 7 source { uri: 'data' } " + stages);
}

const char* const kEchoed =
    "stage { decode {} } stage { echo { factor: 2.5 } } "
    "stage { random_resized_crop { height: 8 width: 8 } } stage { normalize {} } "
    "stage { batch { size: 8 } }";

uint64_t Drain(Pipeline& pipeline) {
  uint64_t examples = 0;
  for (const Batch& batch : pipeline) examples += batch.size();
  return examples;
}

const StageStats& StageNamed(const PipelineStats& stats, const std::string& name) {
  const auto found = std::ranges::find(stats.stages, name, &StageStats::name);
  if (found == stats.stages.end()) throw std::out_of_range("no stage " + name);
  return *found;
}

TEST(PipelineStatsTest, ItemsAreCountedInFrontOfAndBehindAnEchoPoint) {
  const auto storage = ImageStorage();
  const auto pipeline = Pipeline::Open(Spec(kEchoed), {.threads = 2, .storage = storage});
  EXPECT_EQ(Drain(*pipeline), 150u);
  const PipelineStats stats = pipeline->Stats();
  EXPECT_EQ(stats.examples, 150u);
  EXPECT_EQ(stats.fresh, 60u);
  EXPECT_EQ(stats.batches, 19u);
  EXPECT_EQ(stats.records, 60u);
  EXPECT_EQ(stats.bytes_read, TotalBytes());
  EXPECT_EQ(stats.bytes_in_flight, 0u);
  EXPECT_EQ(stats.bad_count, 0u);
  std::vector<std::string> names;
  for (const StageStats& stage : stats.stages) {
    names.push_back(stage.name);
    EXPECT_GE(stage.busy_s, 0) << stage.name;
    EXPECT_GE(stage.seconds_per_item, 0) << stage.name;
  }
  EXPECT_THAT(names, ElementsAre("read", "decode", "random_resized_crop", "normalize", "consumer"));
  EXPECT_EQ(StageNamed(stats, "read").items, 60u);
  EXPECT_EQ(StageNamed(stats, "decode").items, 60u);
  EXPECT_EQ(StageNamed(stats, "random_resized_crop").items, 150u);
  EXPECT_EQ(StageNamed(stats, "normalize").items, 150u);
  EXPECT_EQ(StageNamed(stats, "consumer").items, 150u);
  ASSERT_THAT(stats.echo_points, SizeIs(1));
  EXPECT_EQ(stats.echo_points[0].position, "after decode");
  EXPECT_EQ(stats.echo_points[0].factor, 2.5);
  EXPECT_EQ(stats.echo_points[0].admitted, 60u);
  EXPECT_EQ(stats.echo_points[0].draws, 150u);
  EXPECT_EQ(stats.echo_points[0].factor_effective, 2.5);
  EXPECT_GT(stats.echo_points[0].r, 0);
  EXPECT_GT(stats.seconds, 0);
  EXPECT_LE(stats.first_batch_s, stats.seconds);
  EXPECT_THAT(stats.verdict, Not(IsEmpty()));
}

TEST(PipelineStatsTest, EchoesOfBatchesAreNotFreshEither) {
  const auto pipeline =
      Pipeline::Open(Spec("stage { batch { size: 8 } } stage { echo { factor: 2 } }"),
                     {.storage = ImageStorage()});
  EXPECT_EQ(Drain(*pipeline), 120u);
  const PipelineStats stats = pipeline->Stats();
  EXPECT_EQ(stats.fresh, 60u);
  EXPECT_EQ(stats.batches, 16u);
  ASSERT_THAT(stats.echo_points, SizeIs(1));
  EXPECT_EQ(stats.echo_points[0].position, "after batch");
  EXPECT_EQ(stats.echo_points[0].admitted, 8u);
  EXPECT_EQ(stats.echo_points[0].draws, 16u);
}

TEST(PipelineStatsTest, NothingIsMoreThanItsWindow) {
  const auto pipeline =
      Pipeline::Open(PipelineSpec::FromText("source { uri: 'data' epochs: 20 } "
                                            "stage { echo { factor: 2 } } stage { decode {} } "
                                            "stage { echo { factor: 1.5 } } "
                                            "stage { random_crop { height: 8 width: 8 } } "
                                            "stage { batch { size: 8 } } "
                                            "stage { echo { factor: 1.5 } }"),
                     {.threads = 2, .reads_in_flight = 4, .storage = ImageStorage()});
  Drain(*pipeline);
  const PipelineStats stats = pipeline->Stats();
  ASSERT_THAT(stats.windows, SizeIs(4));
  for (const WindowStats& window : stats.windows) {
    EXPECT_GT(window.peak_in_flight, 0u) << window.name;
    EXPECT_LE(window.peak_in_flight, window.window) << window.name;
  }
}

TEST(PipelineStatsTest, BytesInFlightKeepToTheirPartOfTheMemoryCap) {
  auto storage = std::make_shared<FakeStorage>();
  for (int i = 0; i < 40; ++i) {
    storage->Put("data/class/" + std::to_string(100 + i) + ".jpg",
                 std::string(i == 20 ? 3'000'000 : 300'000, 'x'));
  }
  const auto pipeline =
      Pipeline::Open(PipelineSpec::FromText("source { uri: 'data' } stage { batch { size: 1 } }"),
                     {.reads_in_flight = 16, .memory_cap = 32'000'000, .storage = storage});
  EXPECT_EQ(Drain(*pipeline), 40u);
  const PipelineStats stats = pipeline->Stats();
  EXPECT_LE(stats.peak_bytes_in_flight, 8'000'001u + 3'000'000u);
  EXPECT_GE(stats.peak_bytes_in_flight, 3'000'000u);
  EXPECT_EQ(stats.bytes_in_flight, 0u);
}

TEST(PipelineStatsTest, EmptyOrNotYetBegunItTellsNoNonsense) {
  const auto storage = ImageStorage(FakeStorage::Mode::kGated);
  const auto pipeline = Pipeline::Open(Spec(kEchoed), {.storage = storage});
  const PipelineStats stats = pipeline->Stats();
  EXPECT_EQ(stats.examples, 0u);
  EXPECT_EQ(stats.examples_per_s, 0);
  EXPECT_EQ(stats.stall_share, 0);
  EXPECT_THAT(stats.verdict, HasSubstr("too short"));
}

/// A graph over a storage whose reads wait for the test.
struct GatedGraph {
  std::shared_ptr<FakeStorage> storage = ImageStorage(FakeStorage::Mode::kGated);
  internal::Graph graph;

  GatedGraph(const PipelineSpec& spec, const RuntimeOptions& options)
      : graph(spec, options, MakeSteadyClock(), [&](BufferPool& pool, std::function<void()> wake) {
          SourceOptions source{.wake = std::move(wake)};
          source.limits.reads_in_flight = options.reads_in_flight;
          return OpenSource(spec.message().source(0), storage, pool, std::move(source));
        }) {}
};

TEST(PipelineStatsTest, WithEveryReadShutTheCpuPoolIsFreeAndCountersKeepToTheirLimits) {
  GatedGraph run(Spec(kEchoed), {.threads = 1, .reads_in_flight = 7});
  run.storage->WaitForPending(7);
  std::atomic<bool> ran = false;
  run.graph.arena().execute([&] { ran = true; });
  EXPECT_TRUE(ran);
  run.graph.Drive();
  EXPECT_THAT(run.storage->pending(), SizeIs(7));
  for (const WindowStats& window : run.graph.Stats().windows) {
    EXPECT_EQ(window.in_flight, 0u) << window.name;
  }
}

TEST(PipelineStatsTest, ReadsThatCompleteInAnyOrderComeInTheirOrder) {
  GatedGraph run(Spec("stage { batch { size: 60 } }"), {.threads = 2, .reads_in_flight = 9});
  while (true) {
    run.graph.Drive();
    const std::vector<FakeStorage::PendingRead> reads = run.storage->pending();
    if (reads.empty()) break;
    run.storage->Complete(reads.back().id);
  }
  const std::optional<Batch> batch = run.graph.Take();
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->size(), 60u);
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(batch->provenance(i).identity.ordinal, i);
}

TEST(PipelineStatsTest, AConsumerThatTakesNothingStopsTheReads) {
  const auto storage = ImageStorage(FakeStorage::Mode::kGated);
  const PipelineSpec spec = PipelineSpec::FromText(
      "source { uri: 'data' epochs: 0 } stage { echo { factor: 2 shuffle_buffer: 16 } } "
      "stage { batch { size: 8 } }");
  GatedGraph run(spec, {.threads = 1, .reads_in_flight = 4});
  uint64_t read = 0;
  while (true) {
    run.graph.Drive();
    const size_t completed = run.storage->CompleteAll();
    if (completed == 0) break;
    ASSERT_LT(read += completed, 100u) << "the source runs away";
  }
  // The source's window, the shuffle buffer as far as it is filled by then, half the last window.
  const PipelineStats stats = run.graph.Stats();
  EXPECT_EQ(stats.records, read);
  for (const WindowStats& window : stats.windows) {
    EXPECT_EQ(window.in_flight, window.window) << window.name;
  }
}

}  // namespace
}  // namespace echopipe
