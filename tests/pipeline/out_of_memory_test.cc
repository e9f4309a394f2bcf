// Allocations that fail on the pipeline's own threads, one after the other.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/image_data.h>
#include <echopipe/tests/support/tar_builder.h>

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;  // can be added to

// Threads that a test did not start count; of their allocations those numbered [begin, end) fail.
thread_local bool counts = true;
std::atomic<int64_t> allocations = 0;
std::atomic<int64_t> fail_begin = kNever;
std::atomic<int64_t> fail_end = kNever;

void* Allocate(size_t size, size_t alignment) {
  if (counts) {
    const int64_t number = allocations++;
    if (fail_begin <= number && number < fail_end) throw std::bad_alloc();
  }
  const size_t whole = (std::max<size_t>(size, 1) + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, whole)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Not inlined, or the compiler takes free() for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) { return Allocate(size, 16); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace echopipe {
namespace {

using testing::TempFolder;

TEST(OutOfMemoryTest, TheErrorNeedsNoMemoryItself) {
  fail_begin = allocations.load();
  const Error error = OutOfMemory();
  const std::optional<Error> copy = error;
  fail_begin = kNever;
  EXPECT_EQ(copy->code(), ErrorCode::kResourceExhausted);
  EXPECT_STREQ(copy->what(), "out of memory");
}

struct Setting {
  const char* name;
  bool sharded;
  bool shaped;
  bool for_good;  // all allocations fail from one on; else that one alone
};

class OutOfMemory : public ::testing::TestWithParam<Setting> {
 protected:
  OutOfMemory() {
    testing::TarBuilder tar;
    for (const auto& [name, bytes] : testing::MakeImages(12, 2)) {
      folder_.Write("photos/" + name, bytes);
      const std::string key = std::to_string(images_++);
      tar.AddFile(key + ".jpg", bytes).AddFile(key + ".cls", "1");
    }
    folder_.Write("a.tar", tar.AddEnd().bytes());
    counts = false;
  }
  ~OutOfMemory() override { counts = true; }

  PipelineSpec Spec() const {
    return PipelineSpec::FromText(
               "source { uri: '" + folder_.Path(GetParam().sharded ? "a.tar" : "photos") +
               "' epochs: 2 shuffle { window: 4 } } stage { map { function: 'nothing' } } "
               "stage { decode {} } stage { echo { factor: 2 } } "
               "stage { random_resized_crop { height: 8 width: 8 } } stage { normalize {} } "
               "stage { batch { size: 4 } } stage { echo { factor: 1.5 } } "
               "bad_examples { policy: SKIP }")
        .WithMap("nothing", [](Example&) {});
  }

  RuntimeOptions Options() const {
    RuntimeOptions options{.threads = 2, .reads_in_flight = 2};
    if (GetParam().shaped) {
      options.storage = MakeShapedStorage(
          MakeLocalStorage(2), {.latency = std::chrono::microseconds(1)}, MakeSteadyClock());
    }
    return options;
  }

  /// True if it ran to its end; else it has to say that there was no memory.
  bool RunsToItsEnd(int64_t failing) {
    allocations = 0;
    std::unique_ptr<Pipeline> pipeline;
    std::optional<Error> error;
    uint64_t batches = 0;
    fail_end = GetParam().for_good ? kNever : failing + 1;
    fail_begin = failing;
    try {
      pipeline = Pipeline::Open(Spec(), Options());
      while (pipeline->Next()) ++batches;
    } catch (const Error& thrown) {
      error = thrown;
    }
    if (pipeline) {
      EXPECT_EQ(pipeline->Stats().bad_count, 0u) << "no example is to blame";
      ExpectARightCheckpointOrNone(*pipeline, batches);
    }
    pipeline = nullptr;
    fail_begin = kNever;
    if (error) {
      EXPECT_EQ(error->code(), ErrorCode::kResourceExhausted) << error->what();
    } else {
      EXPECT_EQ(batches, 18u);  // 2 epochs of 24 uses in fours, times 1.5
    }
    return !error;
  }

 private:
  // The shadow may have been the one without memory.
  void ExpectARightCheckpointOrNone(const Pipeline& pipeline, uint64_t batches) {
    std::optional<PipelineCheckpoint> checkpoint;
    try {
      checkpoint = pipeline.Checkpoint();
    } catch (const Error& error) {
      EXPECT_THAT(error.code(),
                  ::testing::AnyOf(ErrorCode::kResourceExhausted, ErrorCode::kStopped));
      return;
    }
    fail_begin = kNever;
    EXPECT_EQ(checkpoint->steps(), batches);
    const std::unique_ptr<Pipeline> restored = Pipeline::Restore(Spec(), *checkpoint, Options());
    while (restored->Next()) ++batches;
    EXPECT_EQ(batches, 18u);
  }

  TempFolder folder_;
  int images_ = 0;
};

TEST_P(OutOfMemory, IsAnErrorWhicheverAllocationFails) {
  ASSERT_TRUE(RunsToItsEnd(kNever));
  const int64_t all = allocations;
  ASSERT_GT(all, 500);
  int failures = 0;
  for (int64_t failing = 0; failing < all; failing += failing < 100 ? 1 : 7) {
    if (!RunsToItsEnd(failing)) ++failures;
    if (HasFailure()) FAIL() << "allocation " << failing;
  }
  EXPECT_GT(failures, 100);
}

INSTANTIATE_TEST_SUITE_P(Settings, OutOfMemory,
                         ::testing::Values(Setting{"Folder", false, false, false},
                                           Setting{"FolderForGood", false, false, true},
                                           Setting{"Shards", true, false, false},
                                           Setting{"ShardsForGood", true, false, true},
                                           Setting{"Shaped", false, true, false},
                                           Setting{"ShapedForGood", false, true, true}),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace echopipe
