// Servers that fail in the midst of a run.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RuntimeOptions Quick() {
  RuntimeOptions options{.threads = 2, .reads_in_flight = 8};
  options.http.retry = {.first_wait = milliseconds(1), .longest_wait = milliseconds(10)};
  return options;
}

/// What a run delivered: how often each key, and how it ended.
struct Outcome {
  std::map<std::string, int> keys = {};
  std::optional<Error> error = {};
  std::vector<BadExample> bad = {};
};

Outcome RunToItsEnd(const PipelineSpec& spec, const RuntimeOptions& options) {
  Outcome outcome;
  std::unique_ptr<Pipeline> pipeline;
  try {
    pipeline = Pipeline::Open(spec, options);
    while (const std::optional<Batch> batch = pipeline->Next()) {
      for (size_t i = 0; i < batch->size(); ++i) ++outcome.keys[batch->provenance(i).key];
    }
  } catch (const Error& error) {
    outcome.error = error;
  }
  if (pipeline) outcome.bad = pipeline->Stats().bad_examples;
  return outcome;
}

/// 60 images behind a server, as files of five classes and as five shards of twelve.
class HttpFaultsTest : public ::testing::Test {
 protected:
  HttpFaultsTest() {
    std::map<int64_t, TarBuilder> shards;
    std::string manifest;
    for (const auto& [key, bytes] : MakeImages(60, 5)) {
      server_->Put("/photos/" + key, bytes);
      files_.Write("photos/" + key, bytes);
      manifest += "photos/" + key + "\n";
      const std::string label = std::to_string(LabelIn(key));
      shards[LabelIn(key)]
          .AddFile(key, bytes)
          .AddFile(key.substr(0, key.size() - 4) + ".cls", label);
    }
    for (auto& [number, shard] : shards) {
      const std::string name = "shards/" + std::to_string(number) + ".tar";
      server_->Put("/" + name, shard.AddEnd().bytes());
      files_.Write(name, shard.bytes());
      manifest += name + "\n";
    }
    server_->Put("/manifest.txt", manifest);
  }

  enum class Data { kFolder, kShards };

  PipelineSpec Spec(Data data, const std::string& base, const std::string& more = "") const {
    const std::string source = data == Data::kFolder ? "photos' shuffle { full {} }"
                                                     : "shards/*.tar' shuffle { window: 20 }";
    return PipelineSpec::FromText("source { uri: '" + base + "/" + source +
                                  " epochs: 3 } stage { decode {} } "
                                  "stage { echo { factor: 1.5 shuffle_buffer: 20 } } "
                                  "stage { random_resized_crop { height: 8 width: 8 } } "
                                  "stage { batch { size: 7 } } " +
                                  more);
  }
  PipelineSpec Spec(Data data, const char* policy) const {
    return Spec(data, server_->url(), std::string("bad_examples { policy: ") + policy + " }");
  }

  std::atomic<uint64_t> requests_ = 0;  // outlives the server's threads
  std::unique_ptr<FaultServer> server_ = std::make_unique<FaultServer>();
  TempFolder files_;  // the same
};

// ---- What is gone

TEST_F(HttpFaultsTest, UnderFailAFileThatIsGoneEndsTheRunWithItsName) {
  const std::string gone = "/photos/class-2/image-007.jpg";
  server_->Remove(gone);
  const Outcome outcome = RunToItsEnd(Spec(Data::kFolder, "FAIL"), Quick());
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kNotFound);
  EXPECT_THAT(outcome.error->what(), HasSubstr(server_->url() + gone));
}

TEST_F(HttpFaultsTest, UnderFailAShardThatIsGoneEndsTheRunWithItsName) {
  server_->Remove("/shards/3.tar");
  const Outcome outcome = RunToItsEnd(Spec(Data::kShards, "FAIL"), Quick());
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kNotFound);
  EXPECT_THAT(outcome.error->what(), HasSubstr(server_->url() + "/shards/3.tar"));
}

TEST_F(HttpFaultsTest, UnderSkipAFileThatIsGoneIsAllThatIsLost) {
  server_->Remove("/photos/class-2/image-007.jpg");
  const Outcome outcome = RunToItsEnd(Spec(Data::kFolder, "SKIP"), Quick());
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.keys.size(), 59u);
  EXPECT_FALSE(outcome.keys.contains("class-2/image-007.jpg"));
  ASSERT_EQ(outcome.bad.size(), 1u);
  EXPECT_EQ(outcome.bad[0].uri, server_->url() + "/photos/class-2/image-007.jpg");
  EXPECT_EQ(outcome.bad[0].error.code(), ErrorCode::kNotFound);
}

TEST_F(HttpFaultsTest, UnderSkipAShardThatIsGoneIsAllThatIsLost) {
  server_->Remove("/shards/3.tar");
  const Outcome outcome = RunToItsEnd(Spec(Data::kShards, "SKIP"), Quick());
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.keys.size(), 48u);
  for (const auto& [key, uses] : outcome.keys) EXPECT_NE(LabelIn(key), 3) << key;
  ASSERT_EQ(outcome.bad.size(), 1u);
  EXPECT_EQ(outcome.bad[0].uri, server_->url() + "/shards/3.tar");
}

// An answer that another attempt would not change is no server that is gone.
TEST_F(HttpFaultsTest, UnderSkipAFileThatIsRefusedIsAllThatIsLost) {
  server_->OnPath("/photos/class-0/image-000.jpg", Status(403));
  const Outcome outcome = RunToItsEnd(Spec(Data::kFolder, "SKIP"), Quick());
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.keys.size(), 59u);
}

// ---- What changes

struct Change {
  std::string name;
  std::string source;
  std::string object;        // which one changes
  uint64_t requests_before;  // for it
  bool cuts;                 // the last of these
  int records_before;        // that are in what has come by then
};

/// Records of one letter each, in files and in shards; the new version of one has another letter.
class HttpChangeTest : public ::testing::TestWithParam<Change> {
 protected:
  static constexpr int kSamples = 40;

  HttpChangeTest() {
    std::string manifest;
    for (const char* path : {"shards/a.tar", "shards/b.tar", "photos/c/a.jpg", "photos/c/b.jpg"}) {
      Put(std::string("/") + path, 'o');
      manifest += std::string(path) + "\n";
    }
    server_.Put("/manifest.txt", manifest);
    server_.Decide([this](const SeenRequest& request) { return OnRequest(request); });
  }

  void Put(const std::string& path, char letter) {
    TarBuilder tar;
    for (int i = 0; i < kSamples; ++i) {
      const std::string key = path.substr(8, 1) + std::to_string(i);
      tar.AddFile(key + ".jpg", std::string(100'000, letter)).AddFile(key + ".cls", "1");
    }
    server_.Put(path, path.ends_with(".tar") ? tar.AddEnd().bytes() : std::string(400'000, letter));
  }

  Fault OnRequest(const SeenRequest& request) {
    if (request.path != GetParam().object || request.range().empty()) return {};
    const uint64_t before = requests_++;
    if (before == GetParam().requests_before) Put(request.path, 'n');
    const bool is_last = before + 1 == GetParam().requests_before;
    return is_last && GetParam().cuts ? Fault{.stop = CloseInBody(150'000)} : Fault();
  }

  /// The keys of records of the old version; others fail the test.
  std::set<std::string> KeysOf(Pipeline& pipeline) {
    std::set<std::string> keys;
    while (const std::optional<Batch> batch = pipeline.Next()) {
      for (size_t i = 0; i < batch->size(); ++i) {
        const auto bytes = batch->bytes_features()[0].values[i].bytes();
        EXPECT_EQ(std::ranges::count(bytes, 'o'), std::ssize(bytes));
        keys.insert(batch->provenance(i).key);
      }
    }
    return keys;
  }

  std::unique_ptr<Pipeline> Open(const std::string& policy) {
    RuntimeOptions options = Quick();
    options.http.most_requests = 1;  // so they come in one order
    return Pipeline::Open(
        PipelineSpec::FromText("source { uri: '" + server_.url() + GetParam().source +
                               "' } stage { batch { size: 1 } } bad_examples { policy: " + policy +
                               " }"),
        options);
  }

  std::atomic<uint64_t> requests_ = 0;
  FaultServer server_;
};

TEST_P(HttpChangeTest, UnderFailEndsTheRunWithTheNameOfWhatChanged) {
  try {
    KeysOf(*Open("FAIL"));
    FAIL() << "it came to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr(server_.url() + GetParam().object));
    EXPECT_THAT(error.what(), HasSubstr("changed while it was read"));
  }
}

TEST_P(HttpChangeTest, UnderSkipLosesItsRestAndMixesNothing) {
  const std::unique_ptr<Pipeline> pipeline = Open("SKIP");
  const std::set<std::string> keys = KeysOf(*pipeline);
  const std::vector<BadExample> bad = pipeline->Stats().bad_examples;
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].uri, server_.url() + GetParam().object);
  if (GetParam().object.ends_with(".tar")) {
    const auto has = [&](char shard, int i) { return keys.contains(shard + std::to_string(i)); };
    for (int i = 0; i < kSamples; ++i) {
      EXPECT_TRUE(has('b', i));
      EXPECT_TRUE(has('a', i) || i >= GetParam().records_before) << i;
      EXPECT_TRUE(!has('a', i) || i == 0 || has('a', i - 1)) << i;
    }
    EXPECT_FALSE(has('a', kSamples - 1));
  } else {
    EXPECT_THAT(keys, ElementsAre("c/b.jpg"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , HttpChangeTest,
    ::testing::Values(Change{"AShardInItsFirstPiece", "/shards/*.tar", "/shards/a.tar", 1, false,
                             0},
                      Change{"AShardInALaterPiece", "/shards/*.tar", "/shards/a.tar", 8, false, 10},
                      Change{"AShardBehindACut", "/shards/*.tar", "/shards/a.tar", 8, true, 10},
                      Change{"AFileBetweenItsReads", "/photos", "/photos/c/a.jpg", 1, false, 0},
                      Change{"AFileBehindACut", "/photos", "/photos/c/a.jpg", 1, true, 0}),
    [](const auto& test) { return test.param.name; });

// ---- A server that is gone

class HttpGoneTest : public HttpFaultsTest, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Policies, HttpGoneTest, ::testing::Values("FAIL", "SKIP"),
                         [](const auto& test) { return std::string(test.param); });

// Whatever has been read ahead, there is more to come.
PipelineSpec WithoutEnd(const PipelineSpec& spec) {
  proto::PipelineSpec message = spec.message();
  message.mutable_source(0)->set_epochs(0);
  return PipelineSpec(message);
}

TEST_P(HttpGoneTest, EndsTheRunWithWhatWasTried) {
  RuntimeOptions options = Quick();
  options.http.retry.budget = milliseconds(200);
  for (const Data data : {Data::kFolder, Data::kShards}) {
    const PipelineSpec spec = WithoutEnd(Spec(data, GetParam()));
    const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options);
    ASSERT_TRUE(pipeline->Next());
    server_->Decide([](const SeenRequest&) { return Fault{.stop = ResetInHead()}; });
    try {
      while (pipeline->Next()) continue;
      FAIL() << "it came to its end";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.what(), HasSubstr(server_->url()));
      EXPECT_THAT(error.what(), HasSubstr("given up after "));
      EXPECT_THAT(error.what(), HasSubstr(" attempts in "));
    }
    EXPECT_EQ(pipeline->Stats().bad_count, 0u);
    server_->Decide(nullptr);
  }
}

// All that is left of it is a port at which nobody listens.
TEST_P(HttpGoneTest, WithoutAListenerTheSameHolds) {
  RuntimeOptions options = Quick();
  options.http.retry.budget = milliseconds(200);
  const std::string url = server_->url();
  const std::unique_ptr<Pipeline> pipeline =
      Pipeline::Open(WithoutEnd(Spec(Data::kFolder, GetParam())), options);
  ASSERT_TRUE(pipeline->Next());
  server_ = nullptr;
  try {
    while (pipeline->Next()) continue;
    FAIL() << "it came to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr(url));
    EXPECT_THAT(error.what(), HasSubstr("given up after "));
  }
}

// ---- Nothing is lost and nothing comes twice

struct Storm {
  std::string name;
  std::function<Fault(uint64_t number)> fault;  // of the how-manieth request
  bool stalls = false;
};

class HttpStormTest : public HttpFaultsTest, public ::testing::WithParamInterface<Storm> {
 protected:
  std::string HashOf(const PipelineSpec& spec) {
    RuntimeOptions options = Quick();
    if (GetParam().stalls) options.http.stall_timeout = milliseconds(200);
    const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options);
    BatchHash hash;
    for (const Batch& batch : *pipeline) hash.Add(batch);
    return hash.Hex();
  }
};

TEST_P(HttpStormTest, TheBatchesAreThoseOfFiles) {
  server_->Decide([this](const SeenRequest&) { return GetParam().fault(requests_++); });
  for (const Data data : {Data::kFolder, Data::kShards}) {
    EXPECT_EQ(HashOf(Spec(data, server_->url())), HashOf(Spec(data, files_.path().string())));
  }
}

bool EveryThird(uint64_t number) { return number % 3 == 1; }

INSTANTIATE_TEST_SUITE_P(
    , HttpStormTest,
    ::testing::Values(
        Storm{"Cuts",
              [](uint64_t n) {
                return EveryThird(n) ? Fault{.stop = CloseInBody(n * 97 % 1500)} : Fault();
              }},
        Storm{"Resets",
              [](uint64_t n) {
                return EveryThird(n) ? Fault{.stop = ResetInBody(n * 97 % 1500)} : Fault();
              }},
        Storm{"CutsInTheHead",
              [](uint64_t n) {
                return EveryThird(n) ? Fault{.stop = ResetInHead(n % 200)} : Fault();
              }},
        Storm{"StaleConnections", [](uint64_t) { return Fault{.stop = CloseAfterBody()}; }},
        Storm{"Refusals", [](uint64_t n) { return n % 60 < 30 ? Status(503) : Fault(); }},
        Storm{"Stalls",
              [](uint64_t n) { return n % 80 == 7 ? Fault{.stop = StallInBody(500)} : Fault(); },
              true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace echopipe::testing
