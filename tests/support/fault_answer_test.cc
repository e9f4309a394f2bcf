// What a FaultServer answers, apart from time and connections.

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/tests/support/fault_answer.h>

namespace echopipe::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const ServedObject kObject{.bytes = std::make_shared<const std::string>("0123456789"),
                           .size = 10,
                           .etag = "\"v1\"",
                           .last_modified = "Tue, 14 Nov 2023 22:13:20 GMT",
                           .content_type = "image/jpeg"};

FaultAnswer Get(const HttpHeaders& headers = {}, const Fault& fault = {}) {
  return MakeAnswer("GET", headers, &kObject, fault);
}

std::string Body(const FaultAnswer& answer) { return answer.body.Piece(0, answer.body.size()); }

TEST(FaultAnswerTest, AnObjectComesWithWhatIsKnownOfIt) {
  const FaultAnswer answer = Get();
  EXPECT_EQ(answer.head,
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: image/jpeg\r\n"
            "Content-Length: 10\r\n"
            "Accept-Ranges: bytes\r\n"
            "ETag: \"v1\"\r\n"
            "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
            "\r\n");
  EXPECT_EQ(Body(answer), "0123456789");
  EXPECT_FALSE(answer.closes);
}

TEST(FaultAnswerTest, HeadHasTheSameHeadAndNoBody) {
  const HttpHeaders range = {{"range", "bytes=2-4"}};
  const FaultAnswer answer = MakeAnswer("HEAD", range, &kObject, {});
  EXPECT_EQ(answer.head, Get(range).head);
  EXPECT_EQ(answer.body.size(), 0u);
  EXPECT_EQ(MakeAnswer("HEAD", {}, &kObject, {.length = Fault::Length::kChunked}).length,
            Fault::Length::kStated);
}

TEST(FaultAnswerTest, AMissingObjectIs404) {
  EXPECT_EQ(MakeAnswer("GET", {}, nullptr, {}).status, 404);
}

TEST(FaultAnswerTest, TheConnectionIsClosedWhenTheClientAsksForIt) {
  const FaultAnswer answer = Get({{"connection", "close"}});
  EXPECT_TRUE(answer.closes);
  EXPECT_THAT(answer.head, HasSubstr("\r\nConnection: close\r\n"));
}

struct RangeCase {
  std::string range;
  int status = 0;
  std::string content_range;  // "" for none
  std::string body;
};

class RangeTest : public ::testing::TestWithParam<RangeCase> {};

TEST_P(RangeTest, ARangeIsServedCutOrRefused) {
  const FaultAnswer answer = Get({{"range", GetParam().range}});
  EXPECT_EQ(answer.status, GetParam().status);
  if (GetParam().content_range.empty()) {
    EXPECT_THAT(answer.head, Not(HasSubstr("Content-Range")));
  } else {
    EXPECT_THAT(answer.head,
                HasSubstr("\r\nContent-Range: bytes " + GetParam().content_range + "\r\n"));
  }
  EXPECT_EQ(Body(answer), GetParam().body);
  EXPECT_THAT(answer.head,
              HasSubstr("\r\nContent-Length: " + std::to_string(GetParam().body.size()) + "\r\n"));
}

INSTANTIATE_TEST_SUITE_P(, RangeTest,
                         ::testing::Values(RangeCase{"bytes=0-0", 206, "0-0/10", "0"},
                                           RangeCase{"bytes=2-4", 206, "2-4/10", "234"},
                                           RangeCase{"bytes=2-", 206, "2-9/10", "23456789"},
                                           RangeCase{"bytes=8-20", 206, "8-9/10", "89"},
                                           RangeCase{"bytes=-3", 206, "7-9/10", "789"},
                                           RangeCase{"bytes=-30", 206, "0-9/10", "0123456789"},
                                           RangeCase{"bytes=10-", 416, "*/10", "416\n"},
                                           RangeCase{"bytes=12-20", 416, "*/10", "416\n"},
                                           RangeCase{"bytes=-0", 416, "*/10", "416\n"},
                                           RangeCase{"bytes=4-2", 200, "", "0123456789"},
                                           RangeCase{"bytes=2-4,6-7", 200, "", "0123456789"},
                                           RangeCase{"bytes=a-4", 200, "", "0123456789"},
                                           RangeCase{"bytes=-", 200, "", "0123456789"},
                                           RangeCase{"bytes=2-4x", 200, "", "0123456789"},
                                           RangeCase{"items=2-4", 200, "", "0123456789"}));

struct ConditionCase {
  HttpHeaders headers;
  int status = 0;
};

class ConditionTest : public ::testing::TestWithParam<ConditionCase> {};

TEST_P(ConditionTest, AConditionDecidesTheStatus) {
  HttpHeaders headers = GetParam().headers;
  headers.emplace_back("range", "bytes=2-4");
  EXPECT_EQ(Get(headers).status, GetParam().status);
}

TEST_P(ConditionTest, IgnoredConditionsAreAsIfNotThere) {
  HttpHeaders headers = GetParam().headers;
  headers.emplace_back("range", "bytes=2-4");
  EXPECT_EQ(Get(headers, {.ignores_conditions = true}).status, 206);
}

INSTANTIATE_TEST_SUITE_P(
    , ConditionTest,
    ::testing::Values(
        ConditionCase{{{"if-match", "\"v1\""}}, 206}, ConditionCase{{{"if-match", "*"}}, 206},
        ConditionCase{{{"if-match", "\"v0\", \"v1\""}}, 206},
        ConditionCase{{{"if-match", "\"v0\""}}, 412},
        ConditionCase{{{"if-match", "W/\"v1\""}}, 412},
        ConditionCase{{{"if-unmodified-since", "Tue, 14 Nov 2023 22:13:20 GMT"}}, 206},
        ConditionCase{{{"if-unmodified-since", "Tue, 14 Nov 2023 22:13:19 GMT"}}, 412},
        ConditionCase{{{"if-unmodified-since", "yesterday"}}, 206},
        ConditionCase{{{"if-range", "\"v1\""}}, 206},
        ConditionCase{{{"if-range", "Tue, 14 Nov 2023 22:13:20 GMT"}}, 206},
        ConditionCase{{{"if-range", "\"v0\""}}, 200}));

const HttpHeaders kRange = {{"range", "bytes=2-4"}};

TEST(AnswerFaultTest, AStatusTakesTheObjectsPlace) {
  const FaultAnswer answer = Get(kRange, {.status = 503, .retry_after = "7"});
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.head, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer.head, HasSubstr("\r\nRetry-After: 7\r\n"));
  EXPECT_THAT(answer.head, Not(HasSubstr("ETag")));
  EXPECT_EQ(Body(answer), "no such luck\n");
  EXPECT_THAT(Get({}, Status(429)).head, Not(HasSubstr("Retry-After")));
  EXPECT_EQ(Body(Get({}, {.status = 403, .status_body = "<Error/>"})), "<Error/>");
}

TEST(AnswerFaultTest, ARedirectNamesItsPlace) {
  const FaultAnswer answer = Get({}, Redirect("/b", 307));
  EXPECT_EQ(answer.status, 307);
  EXPECT_THAT(answer.head, HasSubstr("\r\nLocation: /b\r\n"));
}

TEST(AnswerFaultTest, ARangeCanBeIgnored) {
  const FaultAnswer answer = Get(kRange, {.form = Fault::Form::kWholeObject});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, Not(HasSubstr("-Range")));
  EXPECT_EQ(Body(answer), "0123456789");
}

TEST(AnswerFaultTest, ARangeCanComeAsMultipart) {
  const FaultAnswer answer = Get(kRange, {.form = Fault::Form::kMultipart});
  EXPECT_EQ(answer.status, 206);
  EXPECT_THAT(answer.head,
              HasSubstr("\r\nContent-Type: multipart/byteranges; boundary=THIS_STRING_SEPARATES"));
  EXPECT_THAT(answer.head, Not(HasSubstr("Content-Range")));
  EXPECT_EQ(Body(answer),
            "--THIS_STRING_SEPARATES\r\nContent-Type: image/jpeg\r\n"
            "Content-Range: bytes 2-4/10\r\n\r\n234\r\n--THIS_STRING_SEPARATES--\r\n");
}

TEST(AnswerFaultTest, ARangeCanBeMovedWithinTheObject) {
  const FaultAnswer longer = Get(kRange, {.end_shift = 2});
  EXPECT_THAT(longer.head, HasSubstr("\r\nContent-Range: bytes 2-6/10\r\n"));
  EXPECT_EQ(Body(longer), "23456");
  const FaultAnswer early = Get(kRange, {.begin_shift = -20, .end_shift = -2});
  EXPECT_THAT(early.head, HasSubstr("\r\nContent-Range: bytes 0-2/10\r\n"));
  EXPECT_EQ(Body(early), "012");
  EXPECT_EQ(Body(Get({}, {.end_shift = 2})), "0123456789");
}

TEST(AnswerFaultTest, HeadersCanLie) {
  const FaultAnswer answer = Get(kRange, {.content_range = "bytes 3-5/11",
                                          .etag = "W/\"v1\"",
                                          .last_modified = "never",
                                          .content_length_error = -1,
                                          .more_headers = {{"X-A", "1"}, {"X-A", "2"}}});
  EXPECT_THAT(answer.head, HasSubstr("\r\nContent-Length: 2\r\nContent-Range: bytes 3-5/11\r\n"));
  EXPECT_THAT(answer.head, HasSubstr("\r\nETag: W/\"v1\"\r\nLast-Modified: never\r\n"));
  EXPECT_THAT(answer.head, HasSubstr("\r\nX-A: 1\r\nX-A: 2\r\n\r\n"));
  EXPECT_EQ(Body(answer), "234");
}

TEST(AnswerFaultTest, HeadersCanBeMissing) {
  const FaultAnswer answer = Get(kRange, {.content_range = "", .etag = "", .last_modified = ""});
  EXPECT_EQ(answer.head,
            "HTTP/1.1 206 Partial Content\r\nContent-Type: image/jpeg\r\nContent-Length: 3\r\n"
            "Accept-Ranges: bytes\r\n\r\n");
}

TEST(AnswerFaultTest, TheLengthCanBeUnsaid) {
  const FaultAnswer chunked = Get({}, {.length = Fault::Length::kChunked});
  EXPECT_THAT(chunked.head, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(chunked.head, Not(HasSubstr("Content-Length")));
  EXPECT_FALSE(chunked.closes);
  const FaultAnswer none = Get({}, {.length = Fault::Length::kNone});
  EXPECT_THAT(none.head, Not(HasSubstr("Content-Length")));
  EXPECT_TRUE(none.closes);
}

TEST(AnswerFaultTest, RawBytesAreTheWholeAnswer) {
  const FaultAnswer answer = Get({}, {.raw = "SSH-2.0"});
  EXPECT_EQ(answer.head, "SSH-2.0");
  EXPECT_EQ(answer.body.size(), 0u);
  EXPECT_TRUE(answer.closes);
}

TEST(AnswerBodyTest, PiecesOfAnySizeMakeUpTheWhole) {
  const AnswerBody body{.before = "<<<", .object = kObject, .begin = 2, .end = 6, .after = ">>"};
  ASSERT_EQ(body.size(), 9u);
  for (uint64_t offset = 0; offset <= 9; ++offset)
    for (uint64_t length = 0; offset + length <= 9; ++length)
      EXPECT_EQ(body.Piece(offset, length), std::string("<<<2345>>").substr(offset, length));
}

TEST(SparseBytesTest, BytesAreAFunctionOfTheirPlace) {
  constexpr uint64_t kFar = uint64_t{50} << 30;
  const std::string bytes = SparseBytes(kFar, 1000);
  EXPECT_EQ(SparseBytes(kFar + 10, 20), bytes.substr(10, 20));
  ServedObject object{.size = kFar + 1000};
  std::string copy(20, '\0');
  object.Copy(kFar + 10, copy);
  EXPECT_EQ(copy, bytes.substr(10, 20));
}

TEST(SparseBytesTest, NoTwoPlacesLookAlike) {
  constexpr uint64_t kBlock = 8;
  std::set<std::string> blocks;
  for (const uint64_t base : {uint64_t{0}, uint64_t{1} << 32, uint64_t{50} << 30})
    for (uint64_t i = 0; i < 10'000; ++i) blocks.insert(SparseBytes(base + i, kBlock));
  EXPECT_EQ(blocks.size(), 30'000u);
}

TEST(HttpDateTest, DatesAreThoseOfHttp) {
  EXPECT_EQ(HttpDate(1'700'000'000), "Tue, 14 Nov 2023 22:13:20 GMT");
}

}  // namespace
}  // namespace echopipe::testing
