#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/http_storage.h>
#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/nginx_server.h>

namespace echopipe::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Waits that a test need not notice.
HttpOptions Quick() {
  HttpOptions options;
  options.retry = {
      .first_wait = milliseconds(1), .longest_wait = milliseconds(20), .budget = seconds(30)};
  return options;
}

// Whose every part tells where it is.
std::string Bytes(size_t size) {
  std::string bytes;
  while (bytes.size() < size) bytes += std::to_string(bytes.size()) + ",";
  bytes.resize(size);
  return bytes;
}

class HttpStorageTest : public ::testing::Test {
 protected:
  std::shared_ptr<Storage> Make(HttpOptions options = Quick()) { return MakeHttpStorage(options); }

  Result<ReadResult> Read(Storage& storage, const std::string& path, uint64_t offset = 0,
                          uint64_t length = ~uint64_t{0}) {
    ReadLog log;
    storage.Read({.path = path, .offset = offset, .length = length}, pool_, log.Callback(0));
    log.WaitFor(1);
    return log.result(0);
  }

  std::string uri(const std::string& name = "a") const { return server_.url() + "/" + name; }

  // The ranges that were asked for, in order.
  std::vector<std::string> Ranges() const {
    std::vector<std::string> ranges;
    for (const SeenRequest& request : server_.requests()) ranges.push_back(request.range());
    return ranges;
  }

  BufferPool pool_;
  FaultServer server_;
};

// ---- Nothing is lost and nothing comes twice

struct Mishap {
  std::string name;
  Fault fault;
};

class HttpMishapTest : public HttpStorageTest, public ::testing::WithParamInterface<Mishap> {};

// Each of these happens to three requests in a row; the read has all its bytes in the end.
TEST_P(HttpMishapTest, IsOvercomeAndTheReadIsWhole) {
  const std::string bytes = Bytes(300'000);
  server_.Put("/a", bytes);
  server_.OnPath("/a", GetParam().fault, 3);
  HttpOptions options = Quick();
  const Fault& fault = GetParam().fault;
  const bool stalls = fault.stop.how == Fault::Stop::How::kStall || fault.pace.bytes > 0;
  if (stalls) options.stall_timeout = milliseconds(200);
  const auto storage = Make(options);
  const Result<ReadResult> result = Read(*storage, uri(), 1000, 250'000);
  ASSERT_TRUE(result.ok()) << result.error().what();
  EXPECT_EQ(AsString(result), bytes.substr(1000, 250'000));
  EXPECT_EQ(result.value().object_size, bytes.size());
  // On a busy machine other answers may take as long as those that stall.
  EXPECT_GE(server_.requests().size(), 4u);
  EXPECT_EQ(storage->Stats().retries, server_.requests().size() - 1);
  EXPECT_TRUE(stalls || storage->Stats().retries == 3);
}

// What has come is not asked for again: the ranges of the attempts join without overlap.
TEST_F(HttpStorageTest, ACutTransferGoesOnWhereItWasCut) {
  const std::string bytes = Bytes(300'000);
  server_.Put("/a", bytes);
  for (size_t i = 0; i < 5; ++i) server_.OnRequest(i, {.stop = ResetInBody(20'000 + 7 * i)});
  server_.OnRequest(5, {.stop = CloseInBody(13'333)});
  const auto storage = Make();
  EXPECT_EQ(AsString(Read(*storage, uri(), 5, 250'000)), bytes.substr(5, 250'000));
  uint64_t sent = 0;
  for (const SeenRequest& request : server_.requests()) sent += request.body_bytes_sent;
  // What a reset has thrown away on the way is all that was sent twice.
  EXPECT_LE(sent, 250'000u + 5 * 20'100u);
  uint64_t next = 5;
  for (const std::string& range : Ranges()) {
    EXPECT_GE(std::stoull(range.substr(6)), next) << range;
    next = std::stoull(range.substr(6));
    EXPECT_THAT(range, ::testing::EndsWith("-250004"));
  }
  EXPECT_EQ(storage->Stats().bytes_read, 250'000u);
  EXPECT_GE(storage->Stats().resumed, 1u);
}

INSTANTIATE_TEST_SUITE_P(
    , HttpMishapTest,
    ::testing::Values(Mishap{"CloseBeforeAnAnswer", {.stop = CloseInHead()}},
                      Mishap{"ResetBeforeAnAnswer", {.stop = ResetInHead()}},
                      Mishap{"CloseInTheStatusLine", {.stop = CloseInHead(5)}},
                      Mishap{"CloseBehindTheStatusLine", {.stop = CloseInHead(30)}},
                      Mishap{"CloseInTheHead", {.stop = CloseInHead(100)}},
                      Mishap{"CloseInTheBody", {.stop = CloseInBody(50'000)}},
                      Mishap{"CloseBeforeTheBody", {.stop = CloseInBody(0)}},
                      Mishap{"ResetInTheBody", {.stop = ResetInBody(10'000)}},
                      Mishap{"StallBeforeAnAnswer", {.stop = StallInHead()}},
                      Mishap{"StallInTheBody", {.stop = StallInBody(50'000)}},
                      Mishap{"SlowTrickle", {.pace = {.bytes = 1, .tick = milliseconds(100)}}},
                      Mishap{"Status429", Status(429)}, Mishap{"Status500", Status(500)},
                      Mishap{"Status502", Status(502)}, Mishap{"Status503", Status(503)},
                      Mishap{"Status504", Status(504)}, Mishap{"Status408", Status(408)},
                      Mishap{"Status503WithRetryAfter", Status(503, "1")}),
    [](const auto& test) { return test.param.name; });

// ---- Answers that cannot be used

struct Refusal {
  std::string name;
  Fault fault;
  std::string message;  // part of it
};

class HttpRefusalTest : public HttpStorageTest, public ::testing::WithParamInterface<Refusal> {};

TEST_P(HttpRefusalTest, FailsAtOnceAndNamesTheObjectAndTheReason) {
  server_.Put("/a", Bytes(300'000));
  server_.OnPath("/a", GetParam().fault);
  const auto storage = Make();
  const Result<ReadResult> result = Read(*storage, uri(), 1000, 10'000);
  EXPECT_THAT(result, FailsWith(ErrorCode::kIo, uri()));
  EXPECT_THAT(result, FailsWith(ErrorCode::kIo, GetParam().message));
  EXPECT_EQ(server_.requests().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    , HttpRefusalTest,
    ::testing::Values(
        Refusal{"AWholeObjectForARange", {.form = Fault::Form::kWholeObject}, "ignores Range"},
        Refusal{"Multipart", {.form = Fault::Form::kMultipart}, "multipart/byteranges"},
        Refusal{"BytesBefore", {.begin_shift = -1}, "other bytes than it was asked for"},
        Refusal{"BytesBehind", {.begin_shift = 1, .end_shift = 1}, "other bytes"},
        Refusal{"LessThanAskedFor", {.end_shift = -1}, "other bytes"},
        Refusal{"MoreThanAskedFor", {.end_shift = 1}, "other bytes"},
        Refusal{"NoContentRange", {.content_range = ""}, "which bytes"},
        Refusal{"NonsenseContentRange", {.content_range = "bytes x"}, "bytes x"},
        Refusal{"UnknownSize", {.content_range = "bytes 1000-10999/*"}, "object's size"},
        Refusal{"LengthTooShort", {.content_length_error = -5}, "contradict"},
        Refusal{"LengthTooLong", {.content_length_error = 5}, "contradict"},
        Refusal{"Compressed", {.more_headers = {{"Content-Encoding", "gzip"}}}, "compressed"},
        Refusal{"Status403", Status(403), "refuses access"},
        Refusal{"Status401", Status(401), "refuses access"},
        Refusal{"Status400", Status(400), "HTTP status 400"},
        Refusal{"NotHttp", {.raw = "SSH-2.0-OpenSSH_9.2\r\n\r\n"}, "not HTTP"}),
    [](const auto& test) { return test.param.name; });

// With a wrong Content-Range no check of lengths helps: the bytes are what is wrong.
TEST_F(HttpStorageTest, AChunkedAnswerLongerThanItSaidIsAnError) {
  server_.Put("/a", Bytes(1000));
  server_.OnPath(
      "/a",
      {.length = Fault::Length::kChunked, .end_shift = 5, .content_range = "bytes 10-19/1000"});
  const auto storage = Make();
  EXPECT_THAT(Read(*storage, uri(), 10, 10), AnyOf(FailsWith(ErrorCode::kIo, "more than it said")));
}

TEST_F(HttpStorageTest, AChunkedAnswerThatEndsEarlyIsGoneOnWith) {
  const std::string bytes = Bytes(1000);
  server_.Put("/a", bytes);
  server_.OnPath("/a", {.length = Fault::Length::kNone, .stop = CloseInBody(300)}, 1);
  const auto storage = Make();
  EXPECT_EQ(AsString(Read(*storage, uri())), bytes);
  EXPECT_EQ(server_.requests().back().range().substr(0, 9), "bytes=300");
}

TEST_F(HttpStorageTest, AServerWithoutRangesServesWhatIsReadFromTheBeginning) {
  const std::string bytes = Bytes(300'000);
  server_.Put("/a", bytes);
  server_.OnPath("/a", {.form = Fault::Form::kWholeObject, .stop = CloseInBody(120'000)}, 1);
  server_.OnPath("/a", {.form = Fault::Form::kWholeObject});
  const auto storage = Make();
  EXPECT_EQ(AsString(Read(*storage, uri(), 0, 256 << 10)), bytes.substr(0, 256 << 10));
  EXPECT_EQ(AsString(Read(*storage, uri(), 0, 10)), bytes.substr(0, 10));
}

TEST_F(HttpStorageTest, RedirectsAreFollowed) {
  server_.Put("/b", "0123456789");
  server_.OnPath("/a", Redirect(uri("b")));
  const auto storage = Make();
  EXPECT_EQ(AsString(Read(*storage, uri(), 2, 3)), "234");
}

TEST_F(HttpStorageTest, ALoopOfRedirectsIsAnError) {
  server_.OnPath("/a", Redirect(uri("b")));
  server_.OnPath("/b", Redirect(uri("a")));
  const auto storage = Make();
  EXPECT_THAT(Read(*storage, uri()), FailsWith(ErrorCode::kIo, "redirects in a circle"));
  EXPECT_LE(server_.requests().size(), 6u);
}

TEST_F(HttpStorageTest, ARedirectToAnotherSchemeIsNotFollowed) {
  const TempFolder folder;
  server_.OnPath("/a", Redirect("file://" + folder.Write("secret", "secret")));
  const auto storage = Make();
  EXPECT_THAT(Read(*storage, uri()), FailsWith(ErrorCode::kIo, uri()));
}

TEST_F(HttpStorageTest, AHugeHeadIsAnErrorAndNotKept) {
  server_.Put("/a", "x");
  server_.OnPath("/a", {.more_headers = {{"X-Huge", std::string(4'000'000, 'h')}}});
  HttpOptions options = Quick();
  options.retry.budget = milliseconds(50);
  const auto storage = Make(options);
  EXPECT_FALSE(Read(*storage, uri()).ok());
}

// ---- Objects that change

struct Change {
  std::string name;
  Fault before;
  Fault after;
  std::string new_bytes;  // Put in between; "" leaves the object
};

class HttpChangeTest : public HttpStorageTest, public ::testing::WithParamInterface<Change> {};

TEST_P(HttpChangeTest, IsAnErrorThatNamesTheObjectAndNeverMixedData) {
  server_.Put("/a", Bytes(1000));
  server_.OnPath("/a", GetParam().before, 1);
  server_.OnPath("/a", GetParam().after);
  const auto storage = Make();
  ASSERT_TRUE(Read(*storage, uri(), 0, 500).ok());
  if (!GetParam().new_bytes.empty()) server_.Put("/a", GetParam().new_bytes);
  const Result<ReadResult> second = Read(*storage, uri(), 500, 500);
  EXPECT_THAT(second, FailsWith(ErrorCode::kIo, "changed while it was read"));
  EXPECT_THAT(second, FailsWith(ErrorCode::kIo, uri()));
}

INSTANTIATE_TEST_SUITE_P(
    , HttpChangeTest,
    ::testing::Values(Change{"StrongTagByIfMatch", {}, {}, Bytes(2000).substr(1000)},
                      Change{"StrongTagOfAServerThatKnowsNoIfMatch",
                             {},
                             {.ignores_conditions = true},
                             Bytes(2000).substr(1000)},
                      Change{"SizeAlone",
                             {.etag = "", .last_modified = ""},
                             {.etag = "", .last_modified = ""},
                             Bytes(1001)},
                      Change{"LastModifiedBehindWeakTags",
                             {.etag = "W/\"x\"", .last_modified = "Mon, 01 Jan 2024 00:00:00 GMT"},
                             {.etag = "W/\"x\"", .last_modified = "Mon, 01 Jan 2024 00:00:01 GMT"},
                             ""},
                      Change{"LastModifiedWithoutTags",
                             {.etag = "", .last_modified = "Mon, 01 Jan 2024 00:00:00 GMT"},
                             {.etag = "", .last_modified = "Mon, 01 Jan 2024 00:00:01 GMT"},
                             ""}),
    [](const auto& test) { return test.param.name; });

TEST_F(HttpStorageTest, AnObjectThatChangesBehindACutIsNotMixed) {
  server_.Put("/a", std::string(100'000, 'o'));
  server_.OnRequest(0, {.stop = StallInBody(50'000)});
  HttpOptions options = Quick();
  options.stall_timeout = milliseconds(200);
  const auto storage = Make(options);
  ReadLog log;
  storage->Read({.path = uri(), .length = 100'000}, pool_, log.Callback(0));
  server_.WaitForStalled(1);
  server_.Put("/a", std::string(100'000, 'n'));
  log.WaitFor(1);
  EXPECT_THAT(log.result(0), FailsWith(ErrorCode::kIo, "changed"));
}

TEST_F(HttpStorageTest, AWeakTagIsNotSentAsACondition) {
  server_.Put("/a", Bytes(1000));
  server_.OnPath("/a", {.etag = "W/\"x\""});
  const auto storage = Make();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Read(*storage, uri(), 0, 500).ok());
  for (const SeenRequest& request : server_.requests()) EXPECT_EQ(request.Header("if-match"), "");
}

// ---- Dead and busy servers

TEST_F(HttpStorageTest, AnObjectThatFailsForGoodFailsWithWhatWasTried) {
  server_.Put("/a", "x");
  HttpOptions options = Quick();
  options.retry.budget = milliseconds(200);
  const auto storage = Make(options);
  ASSERT_TRUE(Read(*storage, uri()).ok());
  server_.OnPath("/a", Status(500));
  const Result<ReadResult> result = Read(*storage, uri());
  EXPECT_THAT(result, FailsWith(ErrorCode::kIo, uri()));
  EXPECT_THAT(result, FailsWith(ErrorCode::kIo, "HTTP status 500; given up after "));
  EXPECT_THAT(result, FailsWith(ErrorCode::kIo, " attempts in "));
  EXPECT_GE(server_.requests().size(), 3u);
}

TEST_F(HttpStorageTest, NobodyAtThePortFailsWithinTheBudget) {
  std::string gone;
  {
    const FaultServer other;
    gone = other.url() + "/a";
  }
  HttpOptions options = Quick();
  options.retry.budget = milliseconds(100);
  const auto storage = Make(options);
  EXPECT_THAT(Read(*storage, gone), FailsWith(ErrorCode::kUnavailable, gone));
  EXPECT_THAT(storage->Size(gone), FailsWith(ErrorCode::kUnavailable, "given up after"));
  EXPECT_THAT(storage->List(gone), FailsWith(ErrorCode::kUnavailable, "given up after"));
}

struct Trouble {
  std::string name;
  Fault fault;
  ErrorCode alone;  // where nothing else is asked for
};

class HttpGoneTest : public HttpStorageTest, public ::testing::WithParamInterface<Trouble> {
 protected:
  HttpGoneTest() {
    server_.Put("/a", "x");
    server_.Put("/b", "y");
    server_.OnPath("/a", GetParam().fault);
    options_.retry.budget = milliseconds(500);
    options_.stall_timeout = milliseconds(100);
  }
  HttpOptions options_ = Quick();
};

TEST_P(HttpGoneTest, AServerThatAnswersNothingIsUnavailable) {
  const auto storage = Make(options_);
  ASSERT_TRUE(Read(*storage, uri("b")).ok());
  EXPECT_THAT(Read(*storage, uri("a")), FailsWith(GetParam().alone, "given up after"));
}

TEST_P(HttpGoneTest, OneThatAnswersOthersIsNot) {
  const auto storage = Make(options_);
  ReadLog log;
  storage->Read({.path = uri("a"), .length = 1}, pool_, log.Callback(0));
  while (log.calls() == 0) ASSERT_TRUE(Read(*storage, uri("b")).ok());
  EXPECT_THAT(log.result(0), FailsWith(ErrorCode::kIo, "given up after"));
}

INSTANTIATE_TEST_SUITE_P(
    , HttpGoneTest,
    ::testing::Values(Trouble{"Reset", {.stop = ResetInHead()}, ErrorCode::kUnavailable},
                      Trouble{"Silence", {.stop = StallInHead()}, ErrorCode::kUnavailable},
                      Trouble{"Status429", Status(429), ErrorCode::kUnavailable},
                      Trouble{"Status503", Status(503), ErrorCode::kUnavailable},
                      Trouble{"Status500", Status(500), ErrorCode::kIo}),
    [](const auto& test) { return test.param.name; });

TEST_F(HttpStorageTest, ARetryAfterBeyondTheBudgetFailsAtOnceAndSaysSo) {
  server_.OnPath("/a", Status(503, "3600"));
  const auto storage = Make();
  EXPECT_THAT(
      Read(*storage, uri()),
      FailsWith(ErrorCode::kUnavailable,
                "HTTP status 503; given up after 1 attempt in 0.0 s, asked to wait for 3600.0 s"));
  EXPECT_EQ(server_.requests().size(), 1u);
}

// Every request of the first 200 but those of 20 reads that are tried again is refused.
TEST_F(HttpStorageTest, ABurstOfRefusalsLosesNothing) {
  server_.Put("/a", Bytes(100'000));
  std::atomic<int> refused = 0;
  server_.Decide([&](const SeenRequest&) { return refused++ < 200 ? Status(503) : Fault(); });
  const auto storage = Make();
  ReadLog log;
  for (int i = 0; i < 100; ++i) {
    // Not neighbours, which would be merged.
    storage->Read({.path = uri(), .offset = uint64_t(i) * 7, .length = 50'000}, pool_,
                  log.Callback(i));
  }
  log.WaitFor(100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(AsString(log.result(i)), Bytes(100'000).substr(size_t(i) * 7, 50'000));
  }
  EXPECT_EQ(server_.requests().size(), 300u);
  EXPECT_GT(storage->Stats().throttled_s, 0);
}

TEST_F(HttpStorageTest, AReadPastItsDeadlineFailsAndOthersGoOn) {
  server_.Put("/a", "slow");
  server_.Put("/b", "quick");
  server_.OnPath("/a", {.stop = StallInHead()});
  HttpOptions options = Quick();
  options.deadline = milliseconds(300);
  const auto storage = Make(options);
  ReadLog log;
  storage->Read({.path = uri("a"), .length = 10}, pool_, log.Callback(0));
  EXPECT_EQ(AsString(Read(*storage, uri("b"))), "quick");
  log.WaitFor(1);
  EXPECT_THAT(log.result(0), FailsWith(ErrorCode::kIo, "took longer than 0.3 s"));
  EXPECT_EQ(AsString(Read(*storage, uri("b"))), "quick");
}

TEST_F(HttpStorageTest, ACancelledReadLeavesItsConnectionAndCallsBack) {
  server_.Put("/a", Bytes(1000));
  server_.OnPath("/a", {.stop = StallInBody(10)});
  const auto storage = Make();
  ReadLog log;
  const Storage::ReadId id = storage->Read({.path = uri(), .length = 1000}, pool_, log.Callback(0));
  server_.WaitForStalled(1);
  storage->Cancel(id);
  log.WaitFor(1);
  EXPECT_THAT(log.result(0), FailsWith(ErrorCode::kStopped, uri()));
  server_.WaitForOpenConnections(0);
}

TEST_F(HttpStorageTest, CancellingOnePartOfAMergedRequestLeavesTheOthers) {
  const std::string bytes = Bytes(1000);
  server_.Put("/a", bytes);
  server_.Put("/b", bytes);
  server_.OnPath("/b", {.stop = StallInHead()}, 8);  // all places at first
  server_.OnPath("/a", {.stop = StallInBody(150)}, 1);
  const auto storage = Make();
  ReadLog others;
  for (int i = 0; i < 8; ++i)
    storage->Read({.path = uri("b"), .offset = uint64_t(i), .length = 500}, pool_,
                  others.Callback(i));
  server_.WaitForStalled(8);
  ReadLog log;
  std::vector<Storage::ReadId> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(storage->Read({.path = uri(), .offset = uint64_t(i) * 100, .length = 100}, pool_,
                                log.Callback(i)));
  }
  server_.Resume();
  others.WaitFor(8);
  server_.WaitForStalled(1);
  storage->Cancel(ids[1]);
  log.WaitFor(2);  // the first had come
  server_.Resume();
  log.WaitFor(3);
  EXPECT_EQ(AsString(log.result(0)), bytes.substr(0, 100));
  EXPECT_THAT(log.result(1), FailsWith(ErrorCode::kStopped, uri()));
  EXPECT_EQ(AsString(log.result(2)), bytes.substr(200, 100));
  EXPECT_EQ(server_.requests().size(), 9u);
}

TEST_F(HttpStorageTest, DestructionDoesNotWaitForAServerThatIsSilent) {
  server_.Put("/a", "x");
  server_.OnPath("/a", {.stop = StallInHead()});
  ReadLog log;
  {
    const auto storage = Make();
    storage->Read({.path = uri(), .length = 1}, pool_, log.Callback(0));
    server_.WaitForStalled(1);
  }
  EXPECT_THAT(log.result(0), FailsWith(ErrorCode::kStopped, uri()));
}

// ---- How requests are made

TEST_F(HttpStorageTest, ConnectionsAreKept) {
  server_.Put("/a", Bytes(10'000));
  const auto storage = Make();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Read(*storage, uri(), uint64_t(i), 100).ok());
  EXPECT_EQ(server_.connections(), 1u);
}

TEST_F(HttpStorageTest, AConnectionThatHasGoneStaleCostsNoRead) {
  server_.Put("/a", Bytes(10'000));
  const auto storage = Make();
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(Read(*storage, uri(), i, 100).ok());
    server_.WaitForAnswers(i + 1);  // else it is not idle yet
    server_.CloseIdleConnections();
    server_.WaitForOpenConnections(0);
  }
}

TEST_F(HttpStorageTest, ALargeReadIsSplitAndNoByteIsAskedForTwice) {
  const std::string bytes = Bytes(20'000'000);
  server_.Put("/a", bytes);
  const auto storage = Make();
  EXPECT_TRUE(AsString(Read(*storage, uri(), 123)) == bytes.substr(123));
  uint64_t sent = 0;
  for (const SeenRequest& request : server_.requests()) sent += request.body_bytes_sent;
  EXPECT_EQ(sent, bytes.size() - 123);
  EXPECT_GE(server_.requests().size(), 5u);
}

TEST_F(HttpStorageTest, AnObjectOf50GigabytesIsReadByRange) {
  constexpr uint64_t kSize = uint64_t{50} << 30;
  server_.PutSparse("/a", kSize);
  const auto storage = Make();
  for (const uint64_t offset : {uint64_t{0}, kSize / 2 + 17, kSize - 1000}) {
    const Result<ReadResult> result = Read(*storage, uri(), offset, 1000);
    ASSERT_TRUE(result.ok()) << result.error().what();
    EXPECT_EQ(result.value().object_size, kSize);
    EXPECT_EQ(AsString(result), SparseBytes(offset, 1000));
  }
  EXPECT_EQ(storage->Size(uri()).value(), kSize);
  EXPECT_LE(pool_.peak_bytes_in_use(), 16'384u);
  uint64_t sent = 0;
  for (const SeenRequest& request : server_.requests()) sent += request.body_bytes_sent;
  EXPECT_EQ(sent, 3000u);
}

TEST_F(HttpStorageTest, TokensAndHeadersComeFromTheCallbackEachTime) {
  server_.Put("/a", "x");
  server_.OnPath("/a", Status(503), 1);
  std::atomic<int> calls = 0;
  HttpOptions options = Quick();
  options.credentials = [&](const std::string& asked) {
    EXPECT_EQ(asked, uri());
    return HttpCredentials{.bearer_token = "token" + std::to_string(calls++),
                           .headers = {"X-Project: echo"}};
  };
  const auto storage = Make(options);
  ASSERT_TRUE(Read(*storage, uri()).ok());
  const std::vector<SeenRequest> requests = server_.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].Header("authorization"), "Bearer token0");
  EXPECT_EQ(requests[1].Header("authorization"), "Bearer token1");
  EXPECT_EQ(requests[1].Header("x-project"), "echo");
}

TEST_F(HttpStorageTest, ATokenIsNotGivenToAnotherHost) {
  server_.Put("/b", "x");
  server_.OnPath("/a", Redirect("http://localhost:" + std::to_string(server_.port()) + "/b"));
  HttpOptions options = Quick();
  options.credentials = [](const std::string&) {
    return HttpCredentials{.bearer_token = "secret"};
  };
  const auto storage = Make(options);
  ASSERT_TRUE(Read(*storage, uri()).ok());
  EXPECT_EQ(server_.requests().at(0).Header("authorization"), "Bearer secret");
  EXPECT_EQ(server_.requests().at(1).Header("authorization"), "");
}

TEST_F(HttpStorageTest, ATokenOfTwoLinesIsRefused) {
  HttpOptions options = Quick();
  options.credentials = [](const std::string&) {
    return HttpCredentials{.bearer_token = "a\r\nEvil: z"};
  };
  const auto storage = Make(options);
  EXPECT_THAT(Read(*storage, uri()), FailsWith(ErrorCode::kInvalidArgument, "not a token"));
  EXPECT_EQ(server_.requests().size(), 0u);
}

// What is asked for later does not get a budget of its own.
TEST_F(HttpStorageTest, AllRequestsOfADeadServerHaveOneBudget) {
  server_.Put("/a", "x");
  HttpOptions options = Quick();
  options.retry.budget = milliseconds(300);
  const auto storage = Make(options);
  ASSERT_TRUE(Read(*storage, uri()).ok());
  server_.OnPath("/a", {.stop = CloseInHead()});
  ASSERT_FALSE(Read(*storage, uri()).ok());
  const size_t before = server_.requests().size();
  EXPECT_THAT(Read(*storage, uri()),
              FailsWith(ErrorCode::kUnavailable, "given up after 1 attempt"));
  EXPECT_EQ(server_.requests().size(), before + 1);
}

TEST_F(HttpStorageTest, ManySizesAndListingsAreAskedForAtOnce) {
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i) {
    server_.Put("/o" + std::to_string(i), std::string(static_cast<size_t>(i), 'x'));
    paths.push_back(uri("o" + std::to_string(i)));
  }
  paths.push_back(uri("none"));
  server_.OnRequest(0, {.stop = StallInHead()});
  const auto storage = Make();
  std::jthread resume([&] {
    server_.WaitForAnswers(20);  // behind the one that stalls
    server_.Resume();
  });
  const auto sizes = storage->Sizes(paths);
  ASSERT_EQ(sizes.size(), paths.size());
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(sizes[i].value(), i);
  EXPECT_THAT(sizes[40], FailsWith(ErrorCode::kNotFound, uri("none")));
}

TEST_F(HttpStorageTest, AHeaderOfTwoLinesIsRefused) {
  HttpOptions options = Quick();
  options.credentials = [](const std::string&) {
    return HttpCredentials{.headers = {"X: y\r\nEvil: z"}};
  };
  const auto storage = Make(options);
  EXPECT_THAT(Read(*storage, uri()), FailsWith(ErrorCode::kInvalidArgument, "not a header"));
  EXPECT_EQ(server_.requests().size(), 0u);
}

TEST_F(HttpStorageTest, AProxyIsUsedIfOneIsGivenAndNoneFromTheEnvironment) {
  server_.Put("/a", "by proxy");
  HttpOptions options = Quick();
  options.proxy = server_.url();
  EXPECT_EQ(AsString(Read(*Make(options), "http://host.invalid/a")), "by proxy");
  EXPECT_THAT(server_.requests().at(0).target, "http://host.invalid/a");
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  EXPECT_EQ(AsString(Read(*Make(), uri())), "by proxy");
  unsetenv("http_proxy");
}

TEST_F(HttpStorageTest, NonsenseOptionsAreRefusedByName) {
  const auto error_of = [](const std::function<void(HttpOptions&)>& change) {
    HttpOptions options;
    change(options);
    return std::string(ErrorOf([&] { MakeHttpStorage(options); }).what());
  };
  EXPECT_THAT(error_of([](HttpOptions& o) { o.most_requests = 0; }), HasSubstr("most_requests"));
  EXPECT_THAT(error_of([](HttpOptions& o) { o.stall_timeout = seconds(0); }),
              HasSubstr("stall_timeout"));
  EXPECT_THAT(error_of([](HttpOptions& o) { o.retry.budget = seconds(-1); }),
              HasSubstr("retry.budget"));
  EXPECT_THAT(error_of([](HttpOptions& o) { o.retry.longest_wait = milliseconds(1); }),
              HasSubstr("retry.longest_wait"));
  EXPECT_THAT(error_of([](HttpOptions& o) { o.ca_file = "/no/such/ca.pem"; }),
              HasSubstr("/no/such/ca.pem"));
}

// ---- TLS

class HttpsTest : public HttpStorageTest {
 protected:
  void SetUp() override {
    if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
    folder_.Write("a", "0123456789");
  }

  Result<ReadResult> ReadBehind(NginxServer::Tls tls, bool trusts_authority,
                                bool verify_tls = true) {
    const NginxServer server({.root = folder_.path(), .tls = tls});
    HttpOptions options = Quick();
    if (trusts_authority) options.ca_file = server.ca_file();
    options.verify_tls = verify_tls;
    return Read(*Make(options), server.url() + "/a", 2, 3);
  }

  TempFolder folder_;
};

TEST_F(HttpsTest, ACertificateOfATrustedAuthorityIsTaken) {
  EXPECT_EQ(AsString(ReadBehind(NginxServer::Tls::kOn, true)), "234");
}

TEST_F(HttpsTest, AllOthersAreRefusedAtOnce) {
  for (const auto tls : {NginxServer::Tls::kExpired, NginxServer::Tls::kOtherHost}) {
    EXPECT_THAT(ReadBehind(tls, true), AllOf(FailsWith(ErrorCode::kIo, "certificate"),
                                             Not(FailsWith(ErrorCode::kIo, "given up"))));
  }
  EXPECT_THAT(ReadBehind(NginxServer::Tls::kExpired, true), FailsWith(ErrorCode::kIo, "expired"));
  EXPECT_THAT(ReadBehind(NginxServer::Tls::kOn, false), FailsWith(ErrorCode::kIo, "certificate"));
}

TEST_F(HttpsTest, WithoutVerificationAllAreTaken) {
  EXPECT_EQ(AsString(ReadBehind(NginxServer::Tls::kExpired, false, false)), "234");
}

// ---- Whatever a path says

TEST_F(HttpStorageTest, MakeStorageReadsFilesAndServers) {
  const TempFolder folder;
  const std::string file = folder.Write("f", "file");
  server_.Put("/a", "object");
  const auto storage = MakeStorage(2, Quick());
  EXPECT_EQ(AsString(Read(*storage, file)), "file");
  EXPECT_EQ(AsString(Read(*storage, uri())), "object");
  EXPECT_EQ(storage->Size(file).value(), 4u);
  EXPECT_EQ(storage->Size(uri()).value(), 6u);
  EXPECT_EQ(storage->List(folder.path()).value().size(), 1u);
  EXPECT_EQ(storage->Stats().bytes_read, 10u);
  EXPECT_EQ(storage->Stats().reads, 2u);
}

TEST_F(HttpStorageTest, MakeStorageCancelsWhereTheReadIs) {
  server_.Put("/a", "object");
  server_.OnPath("/a", {.stop = StallInHead()});
  const auto storage = MakeStorage(1, Quick());
  ReadLog log;
  storage->Cancel(7);
  const Storage::ReadId id = storage->Read({.path = uri(), .length = 1}, pool_, log.Callback(0));
  server_.WaitForStalled(1);
  storage->Cancel(id);
  log.WaitFor(1);
  EXPECT_THAT(log.result(0), FailsWith(ErrorCode::kStopped, uri()));
}

}  // namespace
}  // namespace echopipe::testing
