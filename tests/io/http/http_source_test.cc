// Of very many objects behind a server, few are asked for at first.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/mutex.h>
#include <echopipe/io/http_storage.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/io/source_harness.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/nginx_server.h>

namespace echopipe::testing {
namespace {

constexpr int kObjects = 10'000;
constexpr uint64_t kWindow = 20;

/// As many names for one shard of two samples, or for one picture: "many/a/00000.tar", ...
class ManyObjects {
 public:
  ManyObjects(const std::string& extension, bool has_manifest) {
    TarBuilder tar;
    for (const std::string key : {"a", "b"}) {
      tar.AddFile(key + ".jpg", std::string(2000, '.')).AddFile(key + ".cls", "1");
    }
    const std::string first = folder_.Write("object", tar.AddEnd().bytes());
    std::filesystem::create_directories(folder_.Path("many/a"));
    std::string manifest;
    for (int i = 0; i < kObjects; ++i) {
      const std::string name = "a/" + std::to_string(100'000 + i).substr(1) + extension;
      std::filesystem::create_hard_link(first, folder_.Path("many/" + name));
      manifest += name + "\n";
    }
    if (has_manifest) folder_.Write("many/manifest.txt", manifest);
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

/// A source that is read as fast as its storage goes.
class RunningSource {
 public:
  RunningSource(const std::string& spec, const SourceLimits& limits)
      : source_(OpenSource(ParseSpec(spec), MakeHttpStorage({}), pool_,
                           {.limits = limits, .wake = [this] { Wake(); }})) {}

  /// Polls for up to `wanted` at a time until so many have come.
  std::vector<SourceItem> Take(uint64_t count, uint64_t wanted) {
    std::vector<SourceItem> items;
    while (items.size() < count) {
      const size_t before = items.size();
      source_->Poll(std::min<uint64_t>(wanted, count - before), &items);
      if (items.size() == before) WaitForWake();
    }
    return items;
  }

  SourceCounters counters() const { return source_->counters(); }
  size_t peak_bytes() const { return pool_.peak_bytes_in_use(); }

 private:
  void Wake() {
    MutexLock lock(mutex_);
    is_woken_ = true;
    changed_.NotifyOne();
  }
  void WaitForWake() {
    MutexLock lock(mutex_);
    while (!is_woken_) changed_.Wait(mutex_);
    is_woken_ = false;
  }

  BufferPool pool_;
  Mutex mutex_;
  CondVar changed_;
  bool is_woken_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Source> source_;
};

struct Way {
  std::string name;
  NginxServer::Listing listing;
};

struct Data {
  std::string name;
  std::string source;  // behind the server's uri
  std::string extension;
  uint64_t records_per_object;
};

class ManyObjectsTest : public ::testing::TestWithParam<std::tuple<Way, Data>> {};

TEST_P(ManyObjectsTest, NoMoreIsReadThanIsWantedAndFitsIntoTheLimits) {
  if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
  const auto& [way, data] = GetParam();
  const ManyObjects objects(data.extension, way.listing == NginxServer::Listing::kOff);
  const NginxServer server({.root = objects.path(), .listing = way.listing});
  constexpr SourceLimits kLimits{.reads_in_flight = 8, .bytes_in_flight = uint64_t{2} << 20};
  constexpr uint64_t kTaken = 60;
  constexpr uint64_t kWanted = 10;
  {
    RunningSource source("uri: '" + server.url() + data.source, kLimits);
    uint64_t last = 0;
    for (const SourceItem& item : source.Take(kTaken, kWanted)) {
      EXPECT_TRUE(item.record);
      last = std::max(last, item.place.file);
    }
    EXPECT_GT(last, uint64_t{kObjects / 2}) << "of all that are listed";
    EXPECT_LE(source.counters().peak_reads_in_flight, 8u);
    EXPECT_LE(source.counters().peak_bytes_in_flight, kLimits.bytes_in_flight);
    EXPECT_LE(source.peak_bytes(), uint64_t{1} << 20);
  }
  // The manifest or the pages; and up to eight shards are opened ahead as long as none has told its
  // size.
  const uint64_t ahead = kWindow + kWanted;
  EXPECT_LE(server.Requests().size(), 3 + (kTaken + ahead) / data.records_per_object + 8);
}

TEST_P(ManyObjectsTest, TheFirstBatchWaitsForFewOfThem) {
  if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
  const auto& [way, data] = GetParam();
  const ManyObjects objects(data.extension, way.listing == NginxServer::Listing::kOff);
  const NginxServer server({.root = objects.path(), .listing = way.listing});
  {
    const auto pipeline = Pipeline::Open(
        PipelineSpec::FromText("source { uri: '" + server.url() + data.source +
                               " } stage { batch { size: 4 } }"),
        {.threads = 1, .reads_in_flight = 8, .prefetch = 2, .memory_cap = uint64_t{8} << 20});
    ASSERT_TRUE(pipeline->Next());
    EXPECT_LE(pipeline->Stats().peak_bytes_in_flight, uint64_t{2} << 20);
  }
  // Two batches made ahead, with as many examples on the way.
  const uint64_t examples = 4 + kWindow + 4 * 4;
  EXPECT_LE(server.Requests().size(), 3 + examples / data.records_per_object + 8);
}

INSTANTIATE_TEST_SUITE_P(
    , ManyObjectsTest,
    ::testing::Combine(::testing::Values(Way{"Html", NginxServer::Listing::kHtml},
                                         Way{"Json", NginxServer::Listing::kJson},
                                         Way{"Manifest", NginxServer::Listing::kOff}),
                       ::testing::Values(Data{"Shards",
                                              "/many/a/*.tar' shuffle { window: " +
                                                  std::to_string(kWindow) + " }",
                                              ".tar", 2},
                                         Data{"Photos", "/many' shuffle { full {} }", ".jpg", 1})),
    [](const auto& test) {
      return std::get<Way>(test.param).name + std::get<Data>(test.param).name;
    });

}  // namespace
}  // namespace echopipe::testing
