// Allocations that fail on the pipeline's own threads, one after the other.

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <echopipe/base/error.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/pipeline/graph/cpus.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/failing_new.h>
#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/image_data.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe {
namespace {

using testing::allocations;
using testing::counts;
using testing::fail_begin;
using testing::fail_end;
using testing::kNever;
using testing::TempFolder;

TEST(OutOfMemoryTest, TheErrorNeedsNoMemoryItself) {
  fail_begin = allocations.load();
  const Error error = OutOfMemory();
  const std::optional<Error> copy = error;
  fail_begin = kNever;
  EXPECT_EQ(copy->code(), ErrorCode::kResourceExhausted);
  EXPECT_STREQ(copy->what(), "out of memory");
}

enum class From { kFiles, kShapedFiles, kServer };

struct Setting {
  const char* name;
  bool sharded;
  From from;
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
    if (GetParam().from == From::kServer) Serve(tar.bytes());
  }
  ~OutOfMemory() override { counts = true; }

  // Has oneTBB start all the workers that a pipeline may get: what these allocate when they start
  // is not ours, and the process would end.
  static void SetUpTestSuite() {
    const int threads = 4 * internal::AvailableCpus();
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<size_t>(threads));
    std::barrier all_are_here(threads);
    tbb::task_arena arena(threads);
    arena.execute([&] {
      tbb::task_group group;
      for (int i = 0; i < threads; ++i) group.run([&] { all_are_here.arrive_and_wait(); });
      group.wait();
    });
  }
  // What is made once, by either side, is there then.
  void SetUp() override { ASSERT_TRUE(RunsToItsEnd(int64_t{1} << 40)); }

  void Serve(const std::string& tar) {
    server_ = std::make_unique<testing::FaultServer>([] { counts = false; });
    server_->Put("/a.tar", tar);
    std::string manifest;
    for (const auto& [name, bytes] : testing::MakeImages(12, 2)) {
      server_->Put("/photos/" + name, bytes);
      manifest += name + "\n";
    }
    server_->Put("/photos/manifest.txt", manifest);
  }

  PipelineSpec Spec() const {
    const std::string name = GetParam().sharded ? "a.tar" : "photos";
    return PipelineSpec::FromText(
               "source { uri: '" + (server_ ? server_->url() + "/" + name : folder_.Path(name)) +
               "' epochs: 2 shuffle { window: 4 } } stage { map { function: 'nothing' } } "
               "stage { decode {} } stage { echo { factor: 2 } } "
               "stage { random_resized_crop { height: 8 width: 8 } } stage { normalize {} } "
               "stage { batch { size: 4 } } stage { echo { factor: 1.5 } } "
               "bad_examples { policy: SKIP }")
        .WithMap("nothing", [](Example&) {});
  }

  RuntimeOptions Options() const {
    RuntimeOptions options{.threads = 2, .reads_in_flight = 2};
    if (GetParam().from == From::kShapedFiles) {
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
  std::unique_ptr<testing::FaultServer> server_;
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

INSTANTIATE_TEST_SUITE_P(
    Settings, OutOfMemory,
    ::testing::Values(Setting{"Folder", false, From::kFiles, false},
                      Setting{"FolderForGood", false, From::kFiles, true},
                      Setting{"Shards", true, From::kFiles, false},
                      Setting{"ShardsForGood", true, From::kFiles, true},
                      Setting{"Shaped", false, From::kShapedFiles, false},
                      Setting{"ShapedForGood", false, From::kShapedFiles, true},
                      Setting{"Served", false, From::kServer, false},
                      Setting{"ServedForGood", false, From::kServer, true},
                      Setting{"ServedShards", true, From::kServer, false},
                      Setting{"ServedShardsForGood", true, From::kServer, true}),
    [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace echopipe
