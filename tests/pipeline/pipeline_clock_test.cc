// The steady-state law on a virtual clock: behind a link that is R times slower than the consumer,
// an echo factor e <= R gives e times the examples per second.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>

#include <echopipe/io/open_source.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/tests/support/fake_clock.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;
using testing::FakeStorage;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr uint64_t kRecordBytes = 1000;
constexpr int kRecords = 800;  // 25 shuffle buffers of four batches

/// A pipeline over a link of 1 MB/s with a consumer that takes so long for an example. Time moves
/// only when nothing can be done without it.
class SlowLink {
 public:
  SlowLink(const std::string& factor, Clock::Duration per_example, Clock::Duration latency = 5ms)
      : per_example_(per_example),
        storage_(MakeShapedStorage(
            objects_, {.bytes_per_second = 1'000'000, .latency = latency, .jitter = latency / 2},
            clock_)),
        graph_(SpecOf(factor), {.threads = 2}, clock_,
               [&](BufferPool& pool, std::function<void()> wake) {
                 SourceOptions options{.wake = std::move(wake)};
                 return OpenSource(SpecOf(factor).message().source(0), storage_, pool,
                                   std::move(options));
               }) {}

  /// What the pipeline tells at the end of the data.
  PipelineStats Run() {
    std::jthread consumer([this] { Consume(); });
    while (!Settle()) {
      if (!clock_->AdvanceToNext()) {
        ADD_FAILURE() << "nothing can move any more";
        graph_.Stop();
        break;
      }
    }
    consumer.join();
    return graph_.Stats();
  }

 private:
  static PipelineSpec SpecOf(const std::string& factor) {
    return PipelineSpec::FromText(
               "source { uri: 'data' } stage { map { function: 'nothing' } }"
               "stage { echo { factor: " +
               factor + " shuffle_buffer: 32 } } stage { batch { size: 8 } }")
        .WithMap("nothing", [](Example&) {});
  }
  static std::shared_ptr<FakeStorage> MakeObjects() {
    auto objects = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
    for (int i = 0; i < kRecords; ++i) {
      objects->Put("data/class/" + std::to_string(10000 + i) + ".jpg",
                   std::string(kRecordBytes, 'x'));
    }
    return objects;
  }

  void Consume() {
    try {
      while (const std::optional<Batch> batch = graph_.Take()) {
        std::unique_lock lock(mutex_);
        ++taken_;
        stepping_ = true;
        clock_->CallAt(clock_->Now() + per_example_ * static_cast<int64_t>(batch->size()), [this] {
          const std::lock_guard inner(mutex_);
          stepping_ = false;
          stepped_.notify_all();
        });
        stepped_.wait(lock, [this] { return !stepping_; });
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }

  // Lets everything happen that can at this time; true once the consumer has come to the end.
  bool Settle() {
    while (true) {
      const uint64_t before = taken();
      do {
        graph_.Drive();
      } while (objects_->CompleteAll() > 0);
      while (!ConsumerIsAtRest()) std::this_thread::yield();
      const std::lock_guard lock(mutex_);
      if (taken_ == before) return ended_;
    }
  }
  uint64_t taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  bool ConsumerIsAtRest() {
    const std::lock_guard lock(mutex_);
    return ended_ || stepping_ || graph_.ConsumerWaits();
  }

  const Clock::Duration per_example_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  const std::shared_ptr<FakeStorage> objects_ = MakeObjects();
  const std::shared_ptr<Storage> storage_;
  std::mutex mutex_;
  std::condition_variable stepped_;
  uint64_t taken_ = 0;
  bool stepping_ = false;
  bool ended_ = false;
  internal::Graph graph_;
};

TEST(PipelineClockTest, WhileReadingIsTheBottleneckAFactorOfFourGivesFourTimesTheExamples) {
  // A record takes 1 ms on the link, an example 0.2 ms in the consumer: R = 5.
  const PipelineStats once = SlowLink("1", 200us).Run();
  const PipelineStats four = SlowLink("4", 200us).Run();
  EXPECT_EQ(once.examples, uint64_t{kRecords});
  EXPECT_EQ(four.examples, uint64_t{4 * kRecords});
  EXPECT_NEAR(once.examples_per_s, 1000, 20);
  EXPECT_GE(four.examples_per_s, 3.8 * once.examples_per_s);
  EXPECT_NEAR(four.fresh_per_s, 1000, 50) << "the link is no less busy";
  EXPECT_THAT(once.verdict, StartsWith("read "));
  EXPECT_THAT(four.verdict, StartsWith("read "));
  EXPECT_NEAR(once.stall_share, 0.8, 0.02);
  EXPECT_NEAR(four.stall_share, 0.2, 0.05);
}

TEST(PipelineClockTest, TheVerdictAdvisesTheFactorThatTheLinkIsTooSlowBy) {
  const PipelineStats stats = SlowLink("1", 200us).Run();
  EXPECT_THAT(stats.verdict, HasSubstr("from 1 to 5 for about 5.0 times"));
  ASSERT_THAT(stats.echo_points, SizeIs(1));
  EXPECT_NEAR(stats.echo_points[0].r, 5, 0.1);
}

TEST(PipelineClockTest, AboveRTheConsumerSetsThePace) {
  // R = 2. Without latency, which a held up reader can no longer hide.
  const PipelineStats stats = SlowLink("4", 500us, 0ms).Run();
  EXPECT_NEAR(stats.examples_per_s, 2000, 50);
  EXPECT_NEAR(stats.stall_share, 0, 0.02);
  EXPECT_THAT(stats.verdict, StartsWith("The consumer sets the pace"));
  EXPECT_NEAR(stats.echo_points.at(0).r, 2, 0.3);
}

TEST(PipelineClockTest, ARunIsTheSameEachTime) {
  const PipelineStats first = SlowLink("4", 200us).Run();
  const PipelineStats second = SlowLink("4", 200us).Run();
  EXPECT_EQ(first.seconds, second.seconds);
  EXPECT_EQ(first.stall_s, second.stall_s);
  EXPECT_EQ(first.examples_per_s, second.examples_per_s);
}

}  // namespace
}  // namespace echopipe
