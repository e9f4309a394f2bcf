#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/shaped_storage.h>
#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/fake_clock.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Duration = Clock::Duration;

// Objects named by their size; reads of the inner storage complete when told, the rest is time.
class LinkHarness {
 public:
  explicit LinkHarness(const ShapeOptions& options)
      : storage_(MakeShapedStorage(inner_, options, clock_)), start_(clock_->Now()) {}

  /// Starts a read of so many bytes that the inner storage has at once.
  Storage::ReadId Read(size_t bytes) {
    const Storage::ReadId id = StartRead(bytes);
    inner_->CompleteAll();
    return id;
  }
  /// Starts a read that waits in the inner storage.
  Storage::ReadId StartRead(size_t bytes, uint64_t length = UINT64_MAX) {
    const std::string path = std::to_string(bytes);
    inner_->Put(path, std::string(bytes, 'x'));
    const size_t number = ends_.size();
    ends_.push_back(-1ns);
    return storage_->Read({.path = path, .length = length}, pool_,
                          [this, number](Result<ReadResult> result) {
                            ends_[number] = clock_->Now() - start_;
                            log_.Callback(static_cast<int>(number))(std::move(result));
                          });
  }
  /// When each read ended, from the beginning on; -1 ns for those still under way.
  const std::vector<Duration>& RunAll() {
    while (clock_->AdvanceToNext()) {
    }
    return ends_;
  }

  FakeClock& clock() { return *clock_; }
  FakeStorage& inner() { return *inner_; }
  std::shared_ptr<Storage>& storage() { return storage_; }
  BufferPool& pool() { return pool_; }
  ReadLog& log() { return log_; }
  const std::vector<Duration>& ends() const { return ends_; }

 private:
  BufferPool pool_;
  ReadLog log_;
  std::vector<Duration> ends_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::shared_ptr<FakeStorage> inner_ = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
  std::shared_ptr<Storage> storage_;
  Clock::Time start_;
};

std::vector<Duration> LatenciesOf(const ShapeOptions& options, int reads) {
  LinkHarness link({.latency = options.latency, .jitter = options.jitter, .seed = options.seed});
  for (int i = 0; i < reads; ++i) link.Read(1);
  return link.RunAll();
}

TEST(ShapedStorageTest, ReadsShareTheBandwidthOneAfterTheOther) {
  LinkHarness link({.bytes_per_second = 1000});
  for (const size_t bytes : {500, 250, 1}) link.Read(bytes);
  EXPECT_THAT(link.RunAll(), ElementsAre(500ms, 750ms, 751ms));
}

TEST(ShapedStorageTest, LatenciesOverlap) {
  LinkHarness link({.latency = 100ms});
  for (int i = 0; i < 3; ++i) link.Read(1'000'000);
  link.clock().Advance(10ms);
  link.Read(1);
  EXPECT_THAT(link.RunAll(), ElementsAre(100ms, 100ms, 100ms, 110ms));
}

TEST(ShapedStorageTest, EachReadWaitsItsLatencyAndThenForThePipe) {
  LinkHarness link({.bytes_per_second = 1000, .latency = 100ms});
  link.Read(100);
  link.clock().Advance(50ms);
  link.Read(200);
  EXPECT_THAT(link.RunAll(), ElementsAre(200ms, 400ms));
}

TEST(ShapedStorageTest, AnIdlePipeSavesNothingUp) {
  LinkHarness link({.bytes_per_second = 1000});
  link.Read(100);
  link.clock().Advance(10s);
  link.Read(100);
  link.Read(100);
  EXPECT_THAT(link.RunAll(), ElementsAre(100ms, 10'100ms, 10'200ms));
}

TEST(ShapedStorageTest, ManyReadsTogetherTakeTheirBytesOverTheBandwidth) {
  LinkHarness link({.bytes_per_second = 64'000'000, .latency = 20ms});
  for (int i = 0; i < 640; ++i) link.Read(100'000);
  const std::vector<Duration> ends = link.RunAll();
  EXPECT_EQ(ends.back(), 1020ms);
}

TEST(ShapedStorageTest, WithoutLimitsAReadEndsAtOnce) {
  LinkHarness link({});
  link.Read(1'000'000);
  EXPECT_THAT(link.RunAll(), ElementsAre(0ms));
}

TEST(ShapedStorageTest, BytesAskedForBeyondTheEndCostNoTime) {
  LinkHarness link({.bytes_per_second = 1000});
  link.StartRead(10, 1'000'000);
  link.StartRead(1'000'000, 10);
  link.inner().CompleteAll();
  EXPECT_THAT(link.RunAll(), ElementsAre(10ms, 20ms));
}

TEST(ShapedStorageTest, AnInnerStorageSlowerThanTheLatencyDecides) {
  LinkHarness link({.bytes_per_second = 1000, .latency = 100ms});
  link.StartRead(50);
  link.clock().Advance(300ms);
  EXPECT_EQ(link.log().calls(), 0);
  link.inner().CompleteAll();
  EXPECT_THAT(link.RunAll(), ElementsAre(350ms));
}

TEST(ShapedStorageTest, AReadThatIsNotReadyDoesNotHoldTheOthersUp) {
  LinkHarness link({.bytes_per_second = 1000});
  const Storage::ReadId slow = link.StartRead(100);
  link.StartRead(200);
  link.inner().Complete(link.inner().pending().back().id);
  EXPECT_THAT(link.RunAll(), ElementsAre(-1ns, 200ms));
  EXPECT_EQ(slow, 1u);
  link.inner().CompleteAll();
  EXPECT_THAT(link.RunAll(), ElementsAre(300ms, 200ms));
}

TEST(ShapedStorageTest, AnErrorTakesItsLatencyButNoBandwidth) {
  LinkHarness link({.bytes_per_second = 1000, .latency = 100ms});
  link.inner().FailAlways("5000", Error({.code = ErrorCode::kIo, .what = "broken"}));
  link.Read(5000);
  link.Read(100);
  EXPECT_THAT(link.RunAll(), ElementsAre(100ms, 200ms));
  EXPECT_THAT(link.log().result(0), FailsWith(ErrorCode::kIo, "broken"));
  EXPECT_EQ(link.storage()->Stats().reads, 2u);
  EXPECT_EQ(link.storage()->Stats().bytes_read, 100u);
}

TEST(ShapedStorageTest, JitterStaysInItsBoundsAndFillsThem) {
  const std::vector<Duration> latencies =
      LatenciesOf({.latency = 100ms, .jitter = 40ms, .seed = 1}, 2000);
  const auto [least, most] = std::minmax_element(latencies.begin(), latencies.end());
  EXPECT_GE(*least, 60ms);
  EXPECT_LT(*least, 61ms);
  EXPECT_GT(*most, 139ms);
  EXPECT_LE(*most, 140ms);
  const Duration mean =
      std::accumulate(latencies.begin(), latencies.end(), Duration{}) / latencies.size();
  EXPECT_GT(mean, 98ms);  // the mean of 2000 has a standard deviation of 0.52 ms
  EXPECT_LT(mean, 102ms);
}

TEST(ShapedStorageTest, JitterGreaterThanTheLatencyIsCutAtZero) {
  const std::vector<Duration> latencies = LatenciesOf({.latency = 10ms, .jitter = 20ms}, 1000);
  const auto zeros = std::count(latencies.begin(), latencies.end(), 0ms);
  EXPECT_GT(zeros, 200);  // a quarter
  EXPECT_LT(zeros, 300);
  EXPECT_EQ(*std::min_element(latencies.begin(), latencies.end()), 0ms);
}

TEST(ShapedStorageTest, JitterIsNamedBySeedAndNumber) {
  const ShapeOptions options = {.latency = 100ms, .jitter = 40ms, .seed = 7};
  const std::vector<Duration> latencies = LatenciesOf(options, 100);
  EXPECT_EQ(LatenciesOf(options, 100), latencies);
  EXPECT_EQ(std::set<Duration>(latencies.begin(), latencies.end()).size(), 100u);
  EXPECT_NE(LatenciesOf({.latency = 100ms, .jitter = 40ms, .seed = 8}, 100), latencies);
}

TEST(ShapedStorageTest, ReadsEnterThePipeInTheOrderInWhichTheyAreReady) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ShapeOptions options = {
        .bytes_per_second = 1000, .latency = 100ms, .jitter = 100ms, .seed = seed};
    const std::vector<Duration> latencies = LatenciesOf(options, 20);
    std::vector<size_t> order(20);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return latencies[a] < latencies[b]; });
    std::vector<Duration> expected(20);
    Duration free{};
    for (const size_t read : order)
      expected[read] = free = std::max(free, latencies[read]) + std::chrono::milliseconds(read);

    LinkHarness link(options);
    for (size_t read = 0; read < 20; ++read) link.Read(read);
    EXPECT_EQ(link.RunAll(), expected) << "seed " << seed;
  }
}

TEST(ShapedStorageTest, ACancelledReadEndsWithoutWaitingForItsTime) {
  LinkHarness link({.bytes_per_second = 1000, .latency = 1s});
  const Storage::ReadId in_latency = link.Read(100);
  link.storage()->Cancel(in_latency);
  link.clock().Advance(0s);
  EXPECT_THAT(link.log().result(0), FailsWith(ErrorCode::kStopped, "100"));

  const Storage::ReadId in_pipe = link.Read(100);
  link.clock().Advance(1s);
  link.storage()->Cancel(in_pipe);
  link.clock().Advance(0s);
  EXPECT_THAT(link.log().result(1), FailsWith(ErrorCode::kStopped, "100"));

  link.RunAll();
  EXPECT_EQ(link.log().calls(), 2);
}

TEST(ShapedStorageTest, CancellingReachesTheInnerStorage) {
  LinkHarness link({.latency = 1s});
  link.storage()->Cancel(link.StartRead(100));
  link.log().WaitFor(1);
  EXPECT_THAT(link.log().result(0), FailsWith(ErrorCode::kStopped, "100"));
  EXPECT_THAT(link.inner().pending(), IsEmpty());
}

TEST(ShapedStorageTest, DestructionEndsReadsWhereverTheyAreThoughTimeStands) {
  LinkHarness link({.bytes_per_second = 1000, .latency = 1s});
  link.Read(100);
  link.clock().Advance(1s);  // in the pipe
  link.Read(100);            // in its latency
  link.StartRead(100);       // in the inner storage
  link.storage().reset();
  EXPECT_EQ(link.log().calls(), 3);
  for (int read = 0; read < 3; ++read)
    EXPECT_THAT(link.log().result(read), FailsWith(ErrorCode::kStopped, "100"));
  EXPECT_EQ(link.pool().bytes_in_use(), 0u);

  EXPECT_GT(link.clock().pending(), 0u);
  link.RunAll();  // what the clock still has to call finds nothing to do
  EXPECT_EQ(link.log().calls(), 3);
}

TEST(ShapedStorageTest, DestructionStopsReadsThatItsCallbacksStart) {
  auto clock = std::make_shared<FakeClock>();
  auto inner = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
  std::shared_ptr<Storage> storage = MakeShapedStorage(inner, {.latency = 1s}, clock);
  Storage& reader = *storage;
  BufferPool pool;
  ReadLog log;
  reader.Read({.path = "a"}, pool, [&](Result<ReadResult> first) {
    reader.Read({.path = "b"}, pool, log.Callback(1));
    log.Callback(0)(std::move(first));
  });
  storage.reset();
  EXPECT_EQ(log.calls(), 2);
  EXPECT_THAT(log.result(1), FailsWith(ErrorCode::kStopped, "b"));
}

TEST(ShapedStorageTest, OptionsOutOfRangeAreRefused) {
  const auto inner = std::make_shared<FakeStorage>();
  const auto clock = std::make_shared<FakeClock>();
  for (const ShapeOptions& options :
       {ShapeOptions{.latency = -1ns}, ShapeOptions{.latency = 1h + 1ns},
        ShapeOptions{.jitter = -1ns}, ShapeOptions{.jitter = 1h + 1ns}}) {
    try {
      MakeShapedStorage(inner, options, clock);
      ADD_FAILURE() << options.latency.count() << " " << options.jitter.count();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace echopipe::testing
