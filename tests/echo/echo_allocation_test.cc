#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <ostream>

#include <gmock/gmock.h>

#include <echopipe/echo/echo_buffer.h>

namespace {
std::atomic<int64_t> allocations = 0;
}

// Not inlined, or the compiler takes free() for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
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

}  // namespace
}  // namespace echopipe
