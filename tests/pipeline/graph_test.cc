#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/task_group.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/tests/support/graph_run.h>

namespace echopipe {
namespace {

using testing::Describe;
using ::testing::Each;
using testing::GraphRun;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::SyntheticSource;

PipelineSpec Spec(const std::string& stages) {
  return PipelineSpec::FromText("seed: 7 source { uri: 'synthetic' } " + stages);
}

std::string Deliver(const PipelineSpec& spec, const SyntheticSource::Options& source,
                    const RuntimeOptions& options = {}) {
  GraphRun run(spec, source, options);
  return Describe(run.Drain());
}

// A map stage that takes a pseudo-random time up to 5 ms, of the example's own.
void TakeSomeTime(Example& example) {
  const Identity& identity = example.provenance().identity;
  const std::array<uint64_t, 3> words{identity.epoch, identity.ordinal, identity.use[0]};
  RandomStream random(HashToKey(words));
  std::this_thread::sleep_for(std::chrono::microseconds(random.Below(5000)));
}

TEST(GraphTest, WithoutEchoItDeliversTheSourceInOrder) {
  EXPECT_EQ(Deliver(Spec("stage { batch { size: 3 } }"), {.records = 7}),
            "(0.0 0.1 0.2)(0.3 0.4 0.5)(0.6)|");
}

TEST(GraphTest, BatchesEndWithTheirEpochUnlessAskedToCrossIt) {
  EXPECT_EQ(Deliver(Spec("stage { batch { size: 2 } }"), {.records = 3, .epochs = 2}),
            "(0.0 0.1)(0.2)|(1.0 1.1)(1.2)|");
  EXPECT_EQ(
      Deliver(Spec("stage { batch { size: 2 across_epochs: true } }"), {.records = 3, .epochs = 2}),
      "(0.0 0.1)(0.2 1.0)|(1.1 1.2)|");
}

TEST(GraphTest, ADroppedRemainderLeavesTheEpochsEndToTheBatchBefore) {
  EXPECT_EQ(
      Deliver(Spec("stage { batch { size: 2 remainder: DROP } }"), {.records = 5, .epochs = 2}),
      "(0.0 0.1)(0.2 0.3)|(1.0 1.1)(1.2 1.3)|");
  EXPECT_EQ(
      Deliver(Spec("stage { batch { size: 2 remainder: DROP } }"), {.records = 4, .epochs = 2}),
      "(0.0 0.1)(0.2 0.3)|(1.0 1.1)(1.2 1.3)|");
  EXPECT_EQ(
      Deliver(Spec("stage { batch { size: 2 remainder: DROP } }"), {.records = 1, .epochs = 3}),
      "");
}

TEST(GraphTest, StepsPerEpochMarksEverySoManyBatches) {
  EXPECT_EQ(
      Deliver(Spec("stage { batch { size: 2 } } steps_per_epoch: 2"), {.records = 3, .epochs = 3}),
      "(0.0 0.1)(0.2 1.0)|(1.1 1.2)(2.0 2.1)|(2.2)");
}

TEST(GraphTest, AFilteredTailStillEndsItsEpoch) {
  const PipelineSpec spec =
      Spec("stage { filter { function: 'low' } } stage { batch { size: 2 } }")
          .WithFilter("low", [](const Example& example) { return *example.label() < 4; });
  EXPECT_EQ(Deliver(spec, {.records = 6, .epochs = 2}), "(0.0 0.1)(0.2 0.3)|(1.0 1.1)(1.2 1.3)|");
}

TEST(GraphTest, EndlessEpochsSmallerThanABatchThatDropsRemaindersEndTheStream) {
  GraphRun run(PipelineSpec::FromText("source { uri: 'synthetic' epochs: 0 } "
                                      "stage { batch { size: 4 remainder: DROP } }"),
               {.records = 3, .epochs = 0});
  try {
    run.graph().Take();
    FAIL() << "a batch came";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEmpty) << error.what();
  }
}

TEST(GraphTest, AnEpochInWhichNothingIsLeftEndsTheStream) {
  const auto first_epoch = [](const Example& example) {
    return example.provenance().identity.epoch == 0;
  };
  for (const std::string echo :
       {"", "stage { echo { factor: 2 shuffle_buffer: 2 spacing: 1 drain_each_epoch: true } }"}) {
    for (const std::string batch : {"size: 4", "size: 4 across_epochs: true", "size: 1"}) {
      for (const std::string steps : {"", "steps_per_epoch: 2"}) {
        const PipelineSpec spec = Spec("stage { filter { function: 'first epoch' } } " + echo +
                                       " stage { batch { " + batch + " } } " + steps)
                                      .WithFilter("first epoch", first_epoch);
        GraphRun run(spec, {.records = 3, .epochs = 0});
        uint64_t examples = 0;
        try {
          while (const std::optional<Batch> next = run.graph().Take()) examples += next->size();
          FAIL() << "the end came without an error";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kEmpty) << error.what();
          EXPECT_THAT(error.what(),
                      HasSubstr("0 were bad and " + std::string(echo.empty() ? "3" : "6") +
                                " filtered out"));
        }
        EXPECT_EQ(examples, echo.empty() ? 3u : 6u);
      }
    }
  }
}

TEST(GraphTest, UnshuffledEchoRepeatsEachItemInPlace) {
  EXPECT_EQ(Deliver(Spec("stage { echo { factor: 2 shuffle_buffer: 1 spacing: 0 } }"
                         "stage { batch { size: 4 } }"),
                    {.records = 3}),
            "(0.0[0] 0.0[1] 0.1[0] 0.1[1])(0.2[0] 0.2[1])|");
}

TEST(GraphTest, BatchEchoHandsOutTheSameBatchAgain) {
  GraphRun run(Spec("stage { batch { size: 2 } } stage { echo { factor: 1.5 } }"), {.records = 6});
  const std::vector<Batch> batches = run.Drain();
  EXPECT_EQ(Describe(batches), "(0.0[0] 0.1[0])(0.2[0] 0.3[0])(0.2[1] 0.3[1])(0.4[0] 0.5[0])|");
  EXPECT_EQ(batches[1].bytes_features()[0].values[0].bytes().data(),
            batches[2].bytes_features()[0].values[0].bytes().data());
}

TEST(GraphTest, EpochsAreCountedInDrawsBehindAnEchoPoint) {
  // 3 records an epoch at 1.5: 4 draws in the first epoch, 9 in both.
  GraphRun run(Spec("stage { echo { factor: 1.5 shuffle_buffer: 2 spacing: 1 } }"
                    "stage { batch { size: 2 } }"),
               {.records = 3, .epochs = 2});
  std::vector<std::pair<size_t, bool>> shape;
  for (const Batch& batch : run.Drain()) shape.emplace_back(batch.size(), batch.end_of_epoch());
  EXPECT_EQ(shape, (std::vector<std::pair<size_t, bool>>{
                       {2, false}, {2, true}, {2, false}, {2, false}, {1, true}}));
}

TEST(GraphTest, DrainEachEpochKeepsEpochsApart) {
  GraphRun run(
      Spec("stage { echo { factor: 3 shuffle_buffer: 8 spacing: 4 drain_each_epoch: true } }"
           "stage { batch { size: 4 } }"),
      {.records = 10, .epochs = 3});
  uint64_t epoch = 0;
  for (const Batch& batch : run.Drain()) {
    for (size_t i = 0; i < batch.size(); ++i) EXPECT_EQ(batch.provenance(i).identity.epoch, epoch);
    if (batch.end_of_epoch()) ++epoch;
  }
  EXPECT_EQ(epoch, 3u);
}

struct Place {
  const char* name;
  const char* stages;
  uint64_t uses;  // of 101 records
};

class GraphLaws : public ::testing::TestWithParam<Place> {};

TEST_P(GraphLaws, TheOrderDoesNotDependOnThreadsNorOnHowLongStagesTake) {
  const PipelineSpec spec = Spec(GetParam().stages);
  const PipelineSpec quick = spec.WithMap("work", [](Example&) {});
  const std::string expected = Deliver(quick, {.records = 101}, {.threads = 1});
  EXPECT_EQ(Deliver(quick, {.records = 101}, {.threads = 2}), expected);
  EXPECT_EQ(Deliver(quick, {.records = 101}, {.threads = 8}), expected);
  // Each thread's first item waits for the other threads, however busy the machine is.
  std::mutex mutex;
  std::condition_variable all_here;
  std::set<std::thread::id> threads;
  const PipelineSpec slow = spec.WithMap("work", [&](Example& example) {
    TakeSomeTime(example);
    std::unique_lock lock(mutex);
    if (!threads.insert(std::this_thread::get_id()).second) return;
    all_here.notify_all();
    all_here.wait_for(lock, std::chrono::seconds(30), [&] { return threads.size() == 8; });
  });
  EXPECT_EQ(Deliver(slow, {.records = 101}, {.threads = 8}), expected);
  EXPECT_THAT(threads, SizeIs(8));
}

TEST_P(GraphLaws, EveryItemIsUsedItsShareOften) {
  GraphRun run(Spec(GetParam().stages).WithMap("work", [](Example&) {}), {.records = 101});
  uint64_t examples = 0;
  for (const Batch& batch : run.Drain()) examples += batch.size();
  EXPECT_EQ(examples, GetParam().uses);
}

INSTANTIATE_TEST_SUITE_P(
    Places, GraphLaws,
    ::testing::Values(
        Place{"WithoutEcho", "stage { map { function: 'work' } } stage { batch { size: 8 } }", 101},
        Place{"Before",
              "stage { echo { factor: 1.15 } } stage { map { function: 'work' } } stage { batch { "
              "size: 8 } }",
              116},
        Place{"After",
              "stage { map { function: 'work' } } stage { echo { factor: 5 } } stage { batch { "
              "size: 8 } }",
              505},
        Place{"Between",
              "stage { map { function: 'work' } } stage { echo { factor: 1.5 } } stage { map { "
              "function: 'work' } } stage { batch { size: 8 } }",
              151},
        Place{"Twice",
              "stage { echo { factor: 2 } } stage { map { function: 'work' } } stage { echo { "
              "factor: 3 } } stage { map { function: 'work' } } stage { batch { size: 8 } }",
              606},
        Place{"BehindBatch",
              "stage { map { function: 'work' } } stage { batch { size: 8 remainder: DROP } } "
              "stage { echo { factor: 2 } }",
              192}),
    [](const auto& place) { return place.param.name; });

TEST(GraphTest, NoBatchHoldsAnItemTwiceBeforeTheFinalDrain) {
  GraphRun run(Spec("stage { echo { factor: 4 shuffle_buffer: 32 } } stage { batch { size: 16 } }"),
               {.records = 400});
  const std::vector<Batch> batches = run.Drain();
  for (size_t b = 0; b + 12 < batches.size(); ++b) {
    std::set<uint64_t> ordinals;
    for (size_t i = 0; i < batches[b].size(); ++i) {
      ordinals.insert(batches[b].provenance(i).identity.ordinal);
    }
    EXPECT_THAT(ordinals, SizeIs(batches[b].size())) << "batch " << b;
  }
}

TEST(GraphTest, OneCpuIsEnough) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  const PipelineSpec spec = Spec(
                                "stage { map { function: 'work' } } stage { echo { factor: 2 } } "
                                "stage { batch { size: 4 } }")
                                .WithMap("work", [](Example&) {});
  const std::string expected = Deliver(spec, {.records = 100});
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(Deliver(spec, {.records = 100}), expected);
  sched_setaffinity(0, sizeof(all), &all);
}

TEST(GraphTest, AUsersLimitOfOneThreadIsEnough) {
  const PipelineSpec spec = Spec("stage { echo { factor: 2 } } stage { batch { size: 4 } }");
  const std::string expected = Deliver(spec, {.records = 100});
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  EXPECT_EQ(Deliver(spec, {.records = 100}), expected);
}

TEST(GraphTest, TheUsersTasksMayWaitForBatches) {
  const PipelineSpec spec = Spec("stage { echo { factor: 2 } } stage { batch { size: 4 } }");
  GraphRun run(spec, {.records = 200});
  std::atomic<uint64_t> examples = 0;
  tbb::task_group group;
  for (int task = 0; task < 8; ++task) {
    group.run([&] {
      while (const std::optional<Batch> batch = run.graph().Take()) examples += batch->size();
    });
  }
  group.wait();
  EXPECT_EQ(examples, 400u);
}

TEST(GraphTest, NothingExceedsItsWindowWhileReadsAreShut) {
  const PipelineSpec spec =
      Spec("stage { echo { factor: 4 shuffle_buffer: 16 } } stage { batch { size: 4 } }");
  GraphRun run(spec, {.records = 1000, .gated = true}, {.threads = 1});
  std::atomic<bool> ran = false;
  run.graph().arena().execute([&] { ran = true; });
  EXPECT_TRUE(ran);
  for (int i = 0; i < 100; ++i) run.source().Release(10);
  run.graph().Drive();
  const PipelineStats stats = run.graph().Stats();
  ASSERT_THAT(stats.windows, SizeIs(2));
  for (const WindowStats& window : stats.windows) {
    EXPECT_LE(window.peak_in_flight, window.window) << window.name;
    EXPECT_GT(window.peak_in_flight, 0u) << window.name;
  }
  EXPECT_LT(stats.records, 200u) << "the source ran away from a consumer that takes nothing";
  EXPECT_THAT(run.Drain(), SizeIs(1000));
}

TEST(GraphTest, AFailingSourceEndsAfterAllThatCameBefore) {
  GraphRun run(Spec("stage { echo { factor: 2 } } stage { batch { size: 4 } }"),
               {.records = 100, .fails_at = 50});
  uint64_t examples = 0;
  try {
    while (const std::optional<Batch> batch = run.graph().Take()) examples += batch->size();
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the source broke"));
  }
  EXPECT_EQ(examples, 100u);
  EXPECT_THROW(run.graph().Take(), Error) << "and again";
}

TEST(GraphTest, UnderFailABadExampleEndsThePipelineWithItsName) {
  GraphRun run(Spec("stage { batch { size: 4 } }"), {.records = 10, .bad = {6}});
  try {
    run.Drain();
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("item-6"));
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

TEST(GraphTest, UnderSkipBadExamplesAreLeftOutCountedOnceAndNamed) {
  GraphRun run(Spec("stage { echo { factor: 3 } } stage { batch { size: 4 } }"
                    "bad_examples { policy: SKIP }"),
               {.records = 30, .epochs = 2, .bad = {3, 17}});
  uint64_t examples = 0;
  for (const Batch& batch : run.Drain()) {
    for (const int64_t label : batch.labels())
      EXPECT_THAT(label, ::testing::AllOf(::testing::Ne(3), ::testing::Ne(17)));
    examples += batch.size();
  }
  EXPECT_EQ(examples, 28u * 2 * 3);
  const PipelineStats stats = run.graph().Stats();
  EXPECT_EQ(stats.bad_count, 2u);
  ASSERT_THAT(stats.bad_examples, SizeIs(2));
  EXPECT_EQ(stats.bad_examples[0].stage, "source");
}

TEST(GraphTest, SkippingStopsAtItsLimit) {
  GraphRun run(Spec("stage { batch { size: 4 } } bad_examples { policy: SKIP max_count: 2 }"),
               {.records = 30, .bad = {3, 9, 17}});
  try {
    run.Drain();
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimitExceeded);
    EXPECT_THAT(error.what(), HasSubstr("item-17"));
  }
}

TEST(GraphTest, AThrowingFunctionIsABadExampleThatNamesStageAndRecord) {
  const PipelineSpec spec = Spec("stage { map { function: 'throws' } } stage { batch { size: 4 } }")
                                .WithMap("throws", [](Example& example) {
                                  if (example.label() == 5)
                                    throw std::runtime_error("out of cheese");
                                });
  GraphRun run(spec, {.records = 10});
  try {
    run.Drain();
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUserFunction);
    EXPECT_THAT(error.what(), HasSubstr("item-5"));
    EXPECT_THAT(error.what(), HasSubstr("map"));
    EXPECT_THAT(error.what(), HasSubstr("out of cheese"));
  }
}

TEST(GraphTest, UnequalShapesNameBothKeys) {
  const PipelineSpec spec =
      Spec("stage { map { function: 'shape' } } stage { batch { size: 4 } }")
          .WithMap("shape", [](Example& example) {
            BufferPool pool;
            const int64_t extent = example.label() == 2 ? 3 : 2;
            example.Set("x", TensorBuilder(DType::kUint8, {extent}, pool).Finish());
          });
  GraphRun run(spec, {.records = 10});
  try {
    run.Drain();
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kShapeMismatch);
    EXPECT_THAT(error.what(), HasSubstr("item-2"));
    EXPECT_THAT(error.what(), HasSubstr("item-0"));
  }
}

TEST(GraphTest, StopFreesAWaitingCaller) {
  GraphRun run(Spec("stage { batch { size: 4 } }"), {.records = 10, .gated = true});
  std::jthread stopper([&] {
    while (run.graph().Stats().stall_s == 0) std::this_thread::yield();
    run.graph().Stop();
  });
  try {
    run.graph().Take();
    FAIL() << "a batch came out of a shut source";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kStopped);
  }
}

TEST(GraphTest, ItMayEndAtAnyMoment) {
  const PipelineSpec spec = Spec(
                                "stage { map { function: 'work' } } stage { echo { factor: 2 } }"
                                "stage { map { function: 'work' } } stage { batch { size: 4 } } "
                                "stage { echo { factor: 2 } }")
                                .WithMap("work", [](Example&) {});
  RandomStream random(HashToKey(std::array<uint64_t, 1>{11}));
  for (int round = 0; round < 300; ++round) {
    GraphRun run(spec, {.records = 500, .epochs = 0});
    for (uint32_t take = random.Below(20); take > 0; --take) run.graph().Take();
    if (random.Below(2) == 0) run.graph().Stop();
    if (random.Below(2) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random.Below(300)));
  }
}

}  // namespace
}  // namespace echopipe
