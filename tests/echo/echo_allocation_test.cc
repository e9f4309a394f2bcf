#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <ostream>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/echo/adaptive_buffer.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/echo/echo_buffer.h>

namespace {
std::atomic<int64_t> allocations = 0;
std::atomic<size_t> largest_allocation = 0;
}  // namespace

// Not inlined, or the compiler takes free() for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (size > largest_allocation) largest_allocation = size;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace echopipe {

void PrintTo(const EchoOptions& options, std::ostream* out) {
  *out << "factor " << options.factor.value() << ", shuffle_buffer " << options.shuffle_buffer
       << ", spacing " << options.spacing << (options.grouped ? ", grouped" : "");
}

namespace {

class EchoAllocation : public ::testing::TestWithParam<EchoOptions> {
 protected:
  void Draw(uint64_t draws) {
    while (draws > 0) {
      while (buffer_.HasRoom()) buffer_.Offer(item_);
      if (buffer_.Draw()) --draws;
    }
  }
  // The fill target grows by one in 16 draws.
  void Fill() { Draw(16 * GetParam().shuffle_buffer); }
  void Drain() {
    buffer_.Close();
    while (buffer_.Draw()) {
    }
  }

  EchoBuffer<int> buffer_{GetParam()};
  std::shared_ptr<const int> item_ = std::make_shared<int>(1);
};

TEST_P(EchoAllocation, IsNotNeededOnceTheBufferHasFilled) {
  Fill();
  const int64_t before = allocations;
  Draw(10'000);
  Drain();
  EXPECT_EQ(allocations - before, 0);
}

TEST_P(EchoAllocation, IsNotNeededByLaterEpochsEither) {
  Fill();
  Drain();
  const int64_t before = allocations;
  for (int epoch = 0; epoch < 3; ++epoch) {
    buffer_.Reopen();
    Draw(10'000);
    Drain();
  }
  EXPECT_EQ(allocations - before, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Options, EchoAllocation,
    ::testing::Values(EchoOptions{}, EchoOptions{.factor = 1.15, .shuffle_buffer = 64},
                      EchoOptions{.factor = 2, .shuffle_buffer = 64, .spacing = 16},
                      EchoOptions{.factor = 17.25, .shuffle_buffer = 64, .spacing = 64},
                      EchoOptions{.factor = 100, .shuffle_buffer = 50, .spacing = 25},
                      EchoOptions{.factor = 3, .shuffle_buffer = 100, .grouped = true},
                      EchoOptions{.factor = 1, .shuffle_buffer = 200, .spacing = 10}));

TEST(AdaptiveAllocation, IsNotNeededOnceThePoolHasFilled) {
  for (const uint32_t max_factor : {1U, 2U, 8U, 1000U}) {
    const AdaptiveOptions options{.max_factor = max_factor, .shuffle_buffer = 100, .spacing = 40};
    AdaptiveBuffer<int> buffer(options);
    const auto item = std::make_shared<int>(1);
    for (int i = 0; i < 100; ++i) buffer.Admit(item);
    const int64_t before = allocations;
    RandomStream random({.low = max_factor});
    for (int i = 0; i < 10'000; ++i) {
      // Upstream stops now and then, until the pool is empty.
      if (buffer.CanEcho() && (i / 1'000 % 2 == 1 || random.Bernoulli(0.5))) {
        buffer.Echo();
      } else if (random.Bernoulli(0.1)) {
        buffer.Pass(item);
      } else {
        buffer.Admit(item);
      }
    }
    EXPECT_EQ(allocations - before, 0) << max_factor;
  }
}

TEST(DecisionLogAllocation, IsNotMoreThanTheBytesHoweverManyDrawsTheyTellOf) {
  DecisionLogWriter writer(1, 0);
  writer.Add({Decision::kEcho, (uint64_t{1} << 53) - 1});
  writer.Add({Decision::kFresh, 1});
  const std::string bytes = writer.TakeBytes();
  largest_allocation = 0;
  DecisionReader reader(DecisionLog::FromBytes(bytes), 0);
  while (reader.next().draws > 0) reader.Advance(reader.next().draws);
  EXPECT_EQ(reader.draw(), uint64_t{1} << 53);
  EXPECT_LT(largest_allocation, 1'000);
}

TEST(DecisionLogAllocation, OfAWriterIsAsLongAsItWaitsToBeTaken) {
  DecisionLogWriter writer(1, 0);
  size_t waited = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    writer.Add(i % 3 == 0 ? Decision::kFresh : Decision::kEcho);
    if (writer.waiting_bytes() > 4'000) waited = std::max(waited, writer.TakeBytes().size());
  }
  EXPECT_LT(waited, 4'100);
}

}  // namespace
}  // namespace echopipe
