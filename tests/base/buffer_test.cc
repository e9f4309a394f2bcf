#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <malloc.h>

#include <echopipe/base/buffer.h>
#include <echopipe/base/random.h>

namespace {

// Of aligned memory, which only the pools ask for.
std::atomic<size_t> allocations = 0;
std::atomic<size_t> bytes_allocated = 0;

}  // namespace

void* operator new(size_t size, std::align_val_t alignment) {
  void* block = nullptr;
  if (posix_memalign(&block, static_cast<size_t>(alignment), size) != 0) throw std::bad_alloc();
  ++allocations;
  bytes_allocated += malloc_usable_size(block);
  return block;
}

void operator delete(void* block, std::align_val_t) noexcept {
  bytes_allocated -= malloc_usable_size(block);
  std::free(block);
}

namespace echopipe {
namespace {

using Buffers = std::vector<std::shared_ptr<Buffer>>;

RandomStream Stream(uint64_t seed) {
  return RandomStream(HashToKey(std::array<uint64_t, 1>{seed}));
}

Buffers Allocate(BufferPool& pool, size_t size, int count) {
  Buffers buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(pool.Allocate(size));
  return buffers;
}

std::set<const uint8_t*> Places(const Buffers& buffers) {
  std::set<const uint8_t*> places;
  for (const std::shared_ptr<Buffer>& buffer : buffers) places.insert(buffer->data());
  return places;
}

TEST(BufferPoolTest, BuffersAreAlignedAndHaveTheSizeAskedFor) {
  BufferPool pool;
  for (size_t size = 0; size < 5000; size += 7) {
    const std::shared_ptr<Buffer> buffer = pool.Allocate(size);
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(buffer->bytes().size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    std::memset(buffer->data(), 1, size);
  }
}

TEST(BufferPoolTest, AtMostAnEighthIsUnused) {
  for (size_t size = 257; size < 1'000'000; size += 1 + size / 50) {
    BufferPool pool;
    const std::shared_ptr<Buffer> buffer = pool.Allocate(size);
    EXPECT_GE(pool.bytes_in_use(), size);
    EXPECT_LE(pool.bytes_in_use(), size + size / 8 + 1) << size;
  }
}

TEST(BufferPoolTest, BytesInUseFollowTheBuffersAndThePeakStays) {
  BufferPool pool;
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  std::shared_ptr<Buffer> first = pool.Allocate(1024);
  const std::shared_ptr<const Buffer> shared = first;
  const std::shared_ptr<Buffer> second = pool.Allocate(2048);
  EXPECT_EQ(pool.bytes_in_use(), 3072u);
  first.reset();
  EXPECT_EQ(pool.bytes_in_use(), 3072u) << "still shared";
}

TEST(BufferPoolTest, ThePeakIsTheMostThatWasInUseTogether) {
  BufferPool pool;
  Allocate(pool, 1024, 3);
  Allocate(pool, 1024, 2);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_EQ(pool.peak_bytes_in_use(), 3072u);
}

TEST(BufferPoolTest, InSteadyStateTheSameBlocksComeBack) {
  BufferPool pool;
  const std::set<const uint8_t*> places = Places(Allocate(pool, 100'000, 10));
  for (int round = 0; round < 100; ++round) ASSERT_EQ(Places(Allocate(pool, 100'000, 10)), places);
}

TEST(BufferPoolTest, ALargerBlockServesDownToAQuarterOfItsSizeAndIsCountedWhole) {
  BufferPool pool;
  const uint8_t* place = pool.Allocate(8192)->data();
  const std::shared_ptr<Buffer> quarter = pool.Allocate(2048);
  EXPECT_EQ(quarter->data(), place);
  EXPECT_EQ(quarter->size(), 2048u);
  EXPECT_EQ(pool.bytes_in_use(), 8192u);
}

TEST(BufferPoolTest, ABlockMoreThanFourTimesTheSizeIsLeftForOthers) {
  BufferPool pool;
  const uint8_t* place = pool.Allocate(16384)->data();
  const std::shared_ptr<Buffer> small = pool.Allocate(2048);
  EXPECT_NE(small->data(), place);
  EXPECT_EQ(pool.bytes_in_use(), 2048u);
}

TEST(BufferPoolTest, BlocksOfAClassNoLongerAskedForMakeRoom) {
  BufferPool pool;
  Allocate(pool, 1 << 16, 64);
  // The free blocks are too small for these and hold all the memory that there may be.
  Allocate(pool, 1 << 20, 4);
  const size_t before = allocations;
  for (int round = 0; round < 20; ++round) Allocate(pool, 1 << 20, 4);
  EXPECT_EQ(allocations, before);
}

// Photos decode to sizes that vary by some factor; a window of them is in use at any time.
TEST(BufferPoolTest, VaryingSizesHardlyEverNeedANewBlock) {
  BufferPool pool;
  RandomStream stream = Stream(1);
  std::deque<std::shared_ptr<Buffer>> window;
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      window.push_back(pool.Allocate(static_cast<size_t>(100'000 * std::exp2(stream.Uniform()))));
      while (window.size() > 60 + stream.Below(8)) window.pop_front();
    }
  };
  run(5000);
  const size_t before = allocations;
  run(10'000);
  EXPECT_LE(allocations - before, 10u);
}

TEST(BufferPoolTest, AllBlocksTogetherHoldAtMostTwiceThePeak) {
  BufferPool pool;
  const size_t before = bytes_allocated;
  for (int log2 = 21; log2 >= 12; --log2) {
    Buffers buffers;
    for (int i = 0; i < 1 << (22 - log2); ++i) {
      buffers.push_back(pool.Allocate(size_t{1} << log2));
      const auto limit = static_cast<double>(pool.peak_bytes_in_use()) * 2;
      // What malloc adds to each block is not the pool's.
      ASSERT_LE(static_cast<double>(bytes_allocated - before), limit * 1.01 + 4096) << log2;
    }
  }
}

TEST(BufferPoolTest, TheClassAskedForLongestAgoGoesFirst) {
  BufferPool pool;
  Allocate(pool, 1 << 16, 64);  // 4 MiB, which are kept beside the next 4
  Allocate(pool, 1 << 20, 4);
  Allocate(pool, 1 << 17, 16);  // these 2 MiB take the place of 2 of the oldest
  const size_t before = allocations;
  Allocate(pool, 1 << 20, 4);
  EXPECT_EQ(allocations, before);
}

TEST(BufferPoolTest, BuffersMayOutliveThePool) {
  std::shared_ptr<Buffer> buffer;
  {
    BufferPool pool;
    pool.Allocate(1000);
    buffer = pool.Allocate(3000);
  }
  std::memset(buffer->data(), 7, buffer->size());
  EXPECT_EQ(buffer->data()[2999], 7);
}

TEST(BufferPoolTest, TheImpossibleThrowsAndIsNotCounted) {
  BufferPool pool;
  EXPECT_THROW(pool.Allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(pool.Allocate((size_t{1} << 63) + 1), std::bad_alloc);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they do not throw
  EXPECT_THROW(pool.Allocate(size_t{1} << 62), std::bad_alloc);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_EQ(pool.peak_bytes_in_use(), 0u);
#endif
}

TEST(BufferPoolTest, ManyThreadsNeverShareABlock) {
  BufferPool pool;
  {
    std::vector<std::jthread> threads;
    for (uint64_t id = 1; id <= 4; ++id) {
      threads.emplace_back([&pool, id] {
        RandomStream stream = Stream(id);
        std::deque<std::shared_ptr<Buffer>> held;
        for (int i = 0; i < 2000; ++i) {
          held.push_back(pool.Allocate(1 + stream.Below(4000)));
          std::memset(held.back()->data(), static_cast<int>(id), held.back()->size());
          if (held.size() <= 8) continue;
          const auto bytes = held.front()->bytes();
          EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [id](uint8_t b) { return b == id; }));
          held.pop_front();
        }
      });
    }
  }
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace echopipe
