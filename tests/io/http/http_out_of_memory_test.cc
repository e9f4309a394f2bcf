// Allocations that fail on the HTTP storage's own threads, one after the other.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <gmock/gmock.h>

#include <echopipe/io/http_storage.h>
#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/failing_new.h>
#include <echopipe/tests/support/fault_server.h>

namespace echopipe::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;

// ---- libcurl's memory, which does not come from operator new

std::atomic<int64_t> curl_allocations = 0;
std::atomic<int64_t> curl_fail_begin = kNever;
std::atomic<int64_t> curl_fail_end = kNever;

bool CurlFailsNow() {
  if (!counts) return false;
  const int64_t number = curl_allocations++;
  return curl_fail_begin <= number && number < curl_fail_end;
}

void* CurlMalloc(size_t size) { return CurlFailsNow() ? nullptr : std::malloc(size); }
void CurlFree(void* memory) { std::free(memory); }
void* CurlRealloc(void* memory, size_t size) {
  return CurlFailsNow() ? nullptr : std::realloc(memory, size);
}
char* CurlStrdup(const char* text) { return CurlFailsNow() ? nullptr : strdup(text); }
void* CurlCalloc(size_t count, size_t size) {
  return CurlFailsNow() ? nullptr : std::calloc(count, size);
}

// Before anybody else does; later calls keep these.
const CURLcode curl_is_ready = curl_global_init_mem(CURL_GLOBAL_DEFAULT, CurlMalloc, CurlFree,
                                                    CurlRealloc, CurlStrdup, CurlCalloc);

// ---- Reads of all kinds

std::string Bytes(size_t size, char first) {
  std::string bytes(size, first);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + i / 100 % 50);
  return bytes;
}

// ThreadSanitizer is slow; the other builds try them all.
#ifdef __SANITIZE_THREAD__
constexpr int64_t kStep = 7;
#else
constexpr int64_t kStep = 1;
#endif

struct Setting {
  const char* name;
  bool is_curls;  // libcurl's allocations fail; else those by operator new
  bool for_good;  // all fail from one on; else that one alone
};

class HttpOutOfMemory : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr int kReads = 9;
  static constexpr int kMissing = 6;
  static constexpr int kNonsense = 7;
  static constexpr int kCancelled = 8;

  HttpOutOfMemory() {
    counts = false;
    server_.Put("/a", a_);
    server_.Put("/b", b_);
    server_.Put("/list/manifest.txt", "x/1\nx/2\ny\n");
    server_.Put("/page/", "<a href=\"1\"><a href=\"2/\">", "text/html");
    server_.Decide([this](const SeenRequest& request) {
      const uint64_t number = requests_++;
      if (request.range().empty()) return number % 7 == 3 ? Status(503) : Fault();
      return number % 5 == 2 ? Fault{.stop = CloseInBody(20'000)} : Fault();
    });
  }
  ~HttpOutOfMemory() override { counts = true; }

  std::string uri(const std::string& name) const { return server_.url() + "/" + name; }

  void BeginFailing(int64_t failing) {
    allocations = 0;
    curl_allocations = 0;
    const int64_t end = GetParam().for_good ? kNever : failing + 1;
    (GetParam().is_curls ? curl_fail_end : fail_end) = end;
    (GetParam().is_curls ? curl_fail_begin : fail_begin) = failing;
  }
  static void EndFailing() { fail_begin = curl_fail_begin = kNever; }
  int64_t CountSoFar() const { return GetParam().is_curls ? curl_allocations : allocations; }

  Storage::Callback Callback(ReadLog& log, int read) {
    return [&log, read, callback = log.Callback(read)](Result<ReadResult> result) {
      const Uncounted uncounted;
      callback(std::move(result));
    };
  }

  void StartReads(Storage& storage, ReadLog& log) {
    const std::vector<ReadRequest> requests = {
        {.path = uri("a"), .offset = 0, .length = ~uint64_t{0}},
        {.path = uri("a"), .offset = 10, .length = 90},
        {.path = uri("a"), .offset = 100, .length = 50'000},
        {.path = uri("b"), .offset = 7, .length = 70'000},
        {.path = uri("b"), .offset = 0, .length = 0},
        {.path = uri("b"), .offset = 200'000, .length = 5},
        {.path = uri("missing"), .offset = 0, .length = 5},
        {.path = "http://[::1/", .offset = 0, .length = 5},
        {.path = uri("a"), .offset = 300'000, .length = 100'000}};
    for (int i = 0; i < kReads; ++i) {
      const Storage::ReadId id =
          storage.Read(requests[static_cast<size_t>(i)], pool_, Callback(log, i));
      if (i == kCancelled) storage.Cancel(id);
    }
  }

  // Its bytes, or that there was no memory.
  void ExpectRight(int read, const Result<ReadResult>& result) {
    if (!result.ok()) {
      static const std::map<int, ErrorCode> kOthers = {{kMissing, ErrorCode::kNotFound},
                                                       {kNonsense, ErrorCode::kInvalidArgument},
                                                       {kCancelled, ErrorCode::kStopped}};
      if (kOthers.contains(read) && result.error().code() == kOthers.at(read)) return;
      EXPECT_EQ(result.error().code(), ErrorCode::kResourceExhausted) << result.error().what();
      ++failures_;
      return;
    }
    const std::vector<std::string> wanted = {
        a_, a_.substr(10, 90),          a_.substr(100, 50'000), b_.substr(7, 70'000), "", "", "",
        "", a_.substr(300'000, 100'000)};
    EXPECT_TRUE(AsString(result) == wanted[static_cast<size_t>(read)]);
    EXPECT_NE(read, kMissing);
    EXPECT_NE(read, kNonsense);
  }

  void ExpectRightList(Storage& storage, const std::string& name) {
    const Result<std::vector<FolderEntry>> entries = storage.List(uri(name));
    if (entries.ok()) {
      EXPECT_EQ(entries.value().size(), 2u);
    } else {
      EXPECT_EQ(entries.error().code(), ErrorCode::kResourceExhausted) << entries.error().what();
      ++failures_;
    }
  }

  void Round(int64_t failing) {
    HttpOptions options;
    options.retry = {.first_wait = milliseconds(1), .longest_wait = milliseconds(5)};
    ReadLog log;
    BeginFailing(failing);
    std::shared_ptr<Storage> storage = MakeHttpStorage(options);
    StartReads(*storage, log);
    ExpectRightList(*storage, "list");
    ExpectRightList(*storage, "page");
    log.WaitFor(kReads);
    for (int i = 0; i < kReads; ++i) ExpectRight(i, log.result(i));
    const StorageStats stats = storage->Stats();
    EXPECT_EQ(stats.reads, uint64_t{kReads});
    EXPECT_LE(stats.requests_in_flight, 64u);
    if (!GetParam().for_good) {
      // It is there again for the next one.
      EndFailing();
      ReadLog next;
      storage->Read({.path = uri("b"), .length = 1000}, pool_, Callback(next, 0));
      next.WaitFor(1);
      EXPECT_TRUE(AsString(next.result(0)) == b_.substr(0, 1000)) << AsString(next.result(0));
    }
    storage = nullptr;
    EndFailing();
  }

  const std::string a_ = Bytes(600'000, '0');
  const std::string b_ = Bytes(100'000, 'A');
  int failures_ = 0;
  BufferPool pool_;
  std::atomic<uint64_t> requests_ = 0;
  FaultServer server_{[] { counts = false; }};
};

TEST_P(HttpOutOfMemory, EachReadStillCallsBackOnce) {
  ASSERT_EQ(curl_is_ready, CURLE_OK);
  Round(kNever);
  EXPECT_EQ(failures_, 0);
  const int64_t all = CountSoFar();
  RecordProperty("allocations", std::to_string(all));
  for (int64_t failing = 0; failing < all; failing += kStep) {
    SCOPED_TRACE("allocation " + std::to_string(failing) + " of " + std::to_string(all));
    Round(failing);
    if (HasFailure()) return;
  }
  RecordProperty("failures", failures_);
  EXPECT_GT(failures_, 100);
}

TEST_P(HttpOutOfMemory, TheEndNeedsNone) {
  server_.Decide([](const SeenRequest&) { return Fault{.stop = StallInBody(10'000)}; });
  for (int64_t failing = 0; failing < 20; ++failing) {
    SCOPED_TRACE("allocation " + std::to_string(failing));
    ReadLog log;
    std::shared_ptr<Storage> storage = MakeHttpStorage({});
    StartReads(*storage, log);
    server_.WaitForStalled(1);
    BeginFailing(failing);
    storage = nullptr;
    EndFailing();
    ASSERT_EQ(log.calls(), kReads);
    for (int i = 0; i < kReads; ++i) {
      if (log.result(i).ok() || log.result(i).error().code() != ErrorCode::kStopped) {
        ExpectRight(i, log.result(i));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, HttpOutOfMemory,
                         ::testing::Values(Setting{"Ours", false, false},
                                           Setting{"OursForGood", false, true},
                                           Setting{"Curls", true, false},
                                           Setting{"CurlsForGood", true, true}),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace echopipe::testing
