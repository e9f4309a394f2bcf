// The law of resume over a server that cuts connections: what a pipeline gives after a restore is
// what an undisturbed one gives of files.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/mutex.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/random_pipeline.h>

namespace echopipe::testing {
namespace {

using std::chrono::milliseconds;

RandomStream StreamOf(uint64_t name, uint64_t seed) {
  return RandomStream(HashToKey(std::array<uint64_t, 2>{name, seed}));
}

// ---- Both ways to list folders

void PutManifest(const RandomPipeline& the_case, FaultServer& server) {
  std::string manifest;
  for (const auto& [path, bytes] : the_case.objects) manifest += path + "\n";
  server.Put("/manifest.txt", manifest);
}

void PutPages(const RandomPipeline& the_case, FaultServer& server) {
  std::map<std::string, std::string> pages;
  for (const auto& [path, bytes] : the_case.objects) {
    for (size_t slash = path.find('/'); slash != std::string::npos;) {
      const size_t next = path.find('/', slash + 1);
      pages[path.substr(0, slash + 1)] +=
          "<a href=\"" + path.substr(slash + 1, next - slash) + "\">\n";
      slash = next;
    }
  }
  for (const auto& [path, page] : pages) server.Put("/" + path, page, "text/html");
}

/// A server of a case's objects that cuts answers off.
class CuttingServer {
 public:
  CuttingServer(const RandomPipeline& the_case, bool has_pages, uint64_t seed)
      : random_(StreamOf(0x637574, seed)) {
    for (const auto& [path, bytes] : the_case.objects) {
      server_.Put("/" + path, bytes);
      sizes_["/" + path] = bytes.size();
    }
    has_pages ? PutPages(the_case, server_) : PutManifest(the_case, server_);
    server_.Decide([this](const SeenRequest& request) { return FaultFor(request); });
  }

  std::string base() const { return server_.url() + "/"; }

  /// Of the requests that come with these credentials, the first for bytes of a record is cut off,
  /// and behind it one in eight. (Others may still come from a pipeline that has ended.)
  HttpCredentials CutNext() {
    MutexLock lock(mutex_);
    cuts_ = 0;
    return {.headers = {"X-Run: " + std::to_string(++run_)}};
  }
  /// Requests cut off since then.
  size_t cuts() const {
    MutexLock lock(mutex_);
    return cuts_;
  }
  /// Answers that did not come whole.
  size_t incomplete_answers() const {
    const std::vector<SeenRequest> requests = server_.requests();
    return static_cast<size_t>(
        std::count_if(requests.begin(), requests.end(), [](const SeenRequest& request) {
          return request.answered && request.status == 206 &&
                 request.body_bytes_sent < request.body_bytes;
        }));
  }

 private:
  Fault FaultFor(const SeenRequest& request) {
    const std::string range = request.range();  // "bytes=0-99"
    if (range.empty()) return {};
    const uint64_t begin = std::stoull(range.substr(6));
    const uint64_t end = std::min<uint64_t>(sizes_.at(request.path),
                                            std::stoull(range.substr(range.find('-') + 1)) + 1);
    MutexLock lock(mutex_);
    if (begin >= end || request.Header("x-run") != std::to_string(run_)) return {};
    if (cuts_ > 0 && !OneIn(random_, 8)) return {};
    ++cuts_;
    const uint64_t bytes = random_.Below(static_cast<uint32_t>(end - begin));
    return {.stop = OneIn(random_, 2) ? ResetInBody(bytes) : CloseInBody(bytes)};
  }

  std::map<std::string, uint64_t> sizes_;
  mutable Mutex mutex_;
  RandomStream random_ ECHOPIPE_GUARDED_BY(mutex_);
  size_t run_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t cuts_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  FaultServer server_;  // last: its threads use the rest
};

// ---- Runs

/// A hash of each step, and how it ended.
struct Run {
  std::map<uint64_t, std::string> hashes = {};
  std::string error = {};

  /// Steps [begin, end), and the error if it came by then.
  Run Between(uint64_t begin, uint64_t end) const {
    const auto rest = hashes.lower_bound(end);
    return {{hashes.lower_bound(begin), rest}, rest == hashes.end() ? error : ""};
  }
  bool operator==(const Run&) const = default;
};

void PrintTo(const Run& run, std::ostream* out) {
  for (const auto& [step, hash] : run.hashes) *out << step << " " << hash << "\n";
  *out << run.error;
}

constexpr uint64_t kMostSteps = 40;

/// Up to this step. Where checkpoints end, a run is over: what follows came about by a failure.
Run Deliver(Pipeline& pipeline, const std::string& base, uint64_t end = kMostSteps) {
  Run run;
  try {
    for (uint64_t step = pipeline.Checkpoint().steps(); step < end; ++step) {
      const std::optional<Batch> batch = pipeline.Next();
      if (!batch) break;
      run.hashes[step] = HashOf(*batch);
      pipeline.Checkpoint();
    }
  } catch (const Error& error) {
    run.error = error.what();
    for (size_t at = 0; (at = run.error.find(base)) != std::string::npos && !base.empty();) {
      run.error.erase(at, base.size());
    }
  }
  return run;
}

RuntimeOptions AnyOptions(RandomStream& random) {
  RuntimeOptions options{.threads = static_cast<int>(random.Between(1, 3)),
                         .reads_in_flight = static_cast<int>(random.Between(1, 20))};
  options.http.retry.first_wait = milliseconds(1);
  options.http.retry.longest_wait = milliseconds(10);
  return options;
}

Run RunLocally(const RandomPipeline& the_case, RandomStream& random) {
  const auto files = std::make_shared<FakeStorage>();
  for (const auto& [path, bytes] : the_case.objects) files->Put(path, bytes);
  RuntimeOptions options = AnyOptions(random);
  options.storage = files;
  const auto pipeline = Pipeline::Open(SpecWithFunctions(the_case.Text()), options, the_case.rank);
  return Deliver(*pipeline, "");
}

/// Restores up to a step of the whole run, with cuts, and compares. Gives what goes on from there.
std::unique_ptr<Pipeline> CheckRestore(const RandomPipeline& the_case, CuttingServer& server,
                                       RandomStream& random, const Pipeline& before, uint64_t end,
                                       const Run& whole) {
  const PipelineCheckpoint checkpoint = before.Checkpoint();
  SCOPED_TRACE("restored before step " + std::to_string(checkpoint.steps()));
  RuntimeOptions options = AnyOptions(random);
  options.http.credentials = [credentials = server.CutNext()](const std::string&) {
    return credentials;
  };
  auto restored = Pipeline::Restore(SpecWithFunctions(the_case.Text(server.base())), checkpoint,
                                    options, the_case.rank);
  EXPECT_EQ(Deliver(*restored, server.base(), end), whole.Between(checkpoint.steps(), end));
  EXPECT_GE(server.cuts(), 1u);
  return restored;
}

/// Two restores, the second from a checkpoint of the first. Gives their number, and that of answers
/// that did not come whole.
std::pair<size_t, size_t> CheckCase(uint64_t seed) {
  RandomStream random = StreamOf(0x68747470, seed);
  const RandomPipeline the_case = MakeRandomPipeline(random);
  SCOPED_TRACE(the_case.Text());
  const Run whole = RunLocally(the_case, random);
  if (whole.hashes.size() < 2) return {0, 0};
  const uint64_t last = whole.hashes.rbegin()->first;
  const auto first = static_cast<uint64_t>(random.Below(static_cast<uint32_t>(last)));
  const auto second = static_cast<uint64_t>(
      random.Between(static_cast<int64_t>(first) + 1, static_cast<int64_t>(last)));

  CuttingServer server(the_case, OneIn(random, 2), seed);
  std::unique_ptr<Pipeline> pipeline = Pipeline::Open(
      SpecWithFunctions(the_case.Text(server.base())), AnyOptions(random), the_case.rank);
  EXPECT_EQ(Deliver(*pipeline, server.base(), first), whole.Between(0, first));
  for (const uint64_t end : {second, kMostSteps}) {
    pipeline = CheckRestore(the_case, server, random, *pipeline, end, whole);
  }
  return {2, server.incomplete_answers()};
}

// Sanitizers are slow; the other builds try them all.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kCases = 60;
#else
constexpr uint64_t kCases = 300;
#endif

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// ECHOPIPE_RESUME_CASES and ECHOPIPE_RESUME_SEED choose how many cases, from which on.
TEST(HttpResumeTest, WhatFollowsARestoreIsWhatFilesWouldHaveGiven) {
  const uint64_t first = NumberFrom("ECHOPIPE_RESUME_SEED", 0);
  const uint64_t cases = NumberFrom("ECHOPIPE_RESUME_CASES", kCases);
  size_t restores = 0;
  size_t incomplete_answers = 0;
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE("ECHOPIPE_RESUME_CASES=1 ECHOPIPE_RESUME_SEED=" + std::to_string(seed));
    const auto [tried, incomplete] = CheckCase(seed);
    restores += tried;
    incomplete_answers += incomplete;
    if (::testing::Test::HasFailure()) return;
  }
  RecordProperty("restores", static_cast<int>(restores));
  RecordProperty("incomplete_answers", static_cast<int>(incomplete_answers));
  if (cases > 50) {
    EXPECT_GT(restores, cases);
    EXPECT_GT(incomplete_answers, restores / 2);
  }
}

}  // namespace
}  // namespace echopipe::testing
