#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/io/http/answer.h>
#include <echopipe/io/http/object_versions.h>

namespace echopipe::testing {
namespace {

using namespace internal;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(ContentRangeTest, TellsSpanAndSize) {
  EXPECT_THAT(ParseContentRange("bytes 0-9/100"),
              Optional(ContentRange{.span = ContentRange::Span{0, 9}, .size = 100}));
  EXPECT_THAT(ParseContentRange("bytes 5-5/*"),
              Optional(ContentRange{.span = ContentRange::Span{5, 5}}));
  EXPECT_THAT(ParseContentRange("bytes */0"), Optional(ContentRange{.size = 0}));
}

TEST(ContentRangeTest, WhatIsNoneIsNone) {
  for (const char* text :
       {"", "bytes", "bytes ", "bytes */*", "bytes 0-9", "bytes 0-9/", "bytes 9-0/100",
        "bytes 0-100/100", "bytes -9/100", "bytes 0-/100", "items 0-9/100", "bytes 0-9/100 ",
        "bytes  0-9/100", "bytes +0-9/100", "bytes 0-9/-1", "bytes 0-18446744073709551615/*",
        "bytes 0-99999999999999999999/100", "bytes 0-9/1e3", "bytes 0x0-9/100"}) {
    EXPECT_EQ(ParseContentRange(text), std::nullopt) << text;
  }
}

AnswerHead Partial(const std::string& range, std::optional<uint64_t> length = std::nullopt) {
  AnswerHead head;
  head.status = 206;
  head.content_range = range;
  head.content_length = length;
  return head;
}

AnswerHead WithStatus(int status) {
  AnswerHead head;
  head.status = status;
  return head;
}

std::string ErrorOf(const Answer& answer) {
  return std::holds_alternative<Error>(answer) ? std::get<Error>(answer).what() : "no error";
}

TEST(JudgeAnswerTest, ARangeIsGoodAndTellsTheObjectsSize) {
  const Answer answer = JudgeAnswer(Partial("bytes 10-19/100", 10), 10, 10, "u");
  const GoodAnswer& good = std::get<GoodAnswer>(answer);
  EXPECT_EQ(good.first, 10u);
  EXPECT_EQ(good.length, 10u);
  EXPECT_EQ(good.version.size, 100u);
}

TEST(JudgeAnswerTest, ARangeMayEndWithTheObjectButNotBefore) {
  EXPECT_EQ(std::get<GoodAnswer>(JudgeAnswer(Partial("bytes 90-99/100"), 90, 50, "u")).length, 10u);
  EXPECT_THAT(ErrorOf(JudgeAnswer(Partial("bytes 90-98/100"), 90, 50, "u")),
              HasSubstr("u: the server sends other bytes"));
}

TEST(JudgeAnswerTest, OtherBytesThanAskedForAreAnError) {
  for (const char* range :
       {"bytes 11-19/100", "bytes 0-9/100", "bytes 10-20/100", "bytes 10-18/100"}) {
    EXPECT_THAT(ErrorOf(JudgeAnswer(Partial(range), 10, 10, "u")), HasSubstr(range));
  }
  EXPECT_THAT(ErrorOf(JudgeAnswer(Partial("bytes 10-19/*"), 10, 10, "u")), HasSubstr("size"));
  EXPECT_THAT(ErrorOf(JudgeAnswer(Partial("nonsense"), 10, 10, "u")), HasSubstr("nonsense"));
  EXPECT_THAT(ErrorOf(JudgeAnswer(Partial(""), 10, 10, "u")), HasSubstr("which bytes"));
  EXPECT_THAT(ErrorOf(JudgeAnswer(Partial("bytes 10-19/100", 11), 10, 10, "u")),
              HasSubstr("contradict"));
}

TEST(JudgeAnswerTest, AWholeObjectWillDoOnlyForItsBeginning) {
  AnswerHead head = WithStatus(200);
  head.content_length = 100;
  EXPECT_EQ(std::get<GoodAnswer>(JudgeAnswer(head, 0, 10, "u")).version.size, 100u);
  EXPECT_EQ(std::get<GoodAnswer>(JudgeAnswer(head, 0, 0, "u")).version.size, 100u);
  EXPECT_EQ(std::get<GoodAnswer>(JudgeAnswer(head, 100, 10, "u")).version.size, 100u);
  EXPECT_THAT(ErrorOf(JudgeAnswer(head, 10, 10, "u")), HasSubstr("ignores Range"));
  head.content_length.reset();
  EXPECT_THAT(ErrorOf(JudgeAnswer(head, 0, 10, "u")), HasSubstr("size"));
}

TEST(JudgeAnswerTest, ARangeBehindTheEndIsEmpty) {
  AnswerHead head = WithStatus(416);
  head.content_range = "bytes */100";
  const Answer answer = JudgeAnswer(head, 100, 10, "u");
  EXPECT_EQ(std::get<GoodAnswer>(answer).length, 0u);
  EXPECT_EQ(std::get<GoodAnswer>(answer).version.size, 100u);
  EXPECT_THAT(ErrorOf(JudgeAnswer(head, 99, 10, "u")), HasSubstr("not there"));
  head.content_range = "";
  EXPECT_THAT(ErrorOf(JudgeAnswer(head, 100, 10, "u")), HasSubstr("not there"));
}

TEST(JudgeAnswerTest, SomeStatusesAreToBeTriedLaterAndTwoAskForLess) {
  for (const int status : {408, 425, 429, 500, 502, 503, 504}) {
    AnswerHead head = WithStatus(status);
    head.retry_after = std::chrono::seconds(3);
    const Answer answer = JudgeAnswer(head, 0, 10, "u");
    ASSERT_TRUE(std::holds_alternative<TryLater>(answer)) << status;
    EXPECT_EQ(std::get<TryLater>(answer).throttled, status == 429 || status == 503);
    EXPECT_EQ(std::get<TryLater>(answer).retry_after, std::chrono::seconds(3));
    EXPECT_THAT(std::get<TryLater>(answer).why, HasSubstr(std::to_string(status)));
  }
}

TEST(JudgeAnswerTest, OtherStatusesAreErrorsAndSayWhich) {
  for (const int status :
       {100, 201, 204, 301, 304, 400, 401, 403, 404, 405, 410, 412, 501, 505, 999, 0}) {
    const Answer answer = JudgeAnswer(WithStatus(status), 0, 10, "u");
    ASSERT_TRUE(std::holds_alternative<Error>(answer)) << status;
    const bool is_missing = status == 404 || status == 410;
    EXPECT_EQ(std::get<Error>(answer).code(), is_missing ? ErrorCode::kNotFound : ErrorCode::kIo);
    EXPECT_TRUE(JudgeDocument(WithStatus(status), "u").has_value());
  }
  EXPECT_FALSE(JudgeDocument(WithStatus(200), "u").has_value());
}

TEST(JudgeAnswerTest, CompressedBytesAreRefused) {
  AnswerHead head = Partial("bytes 0-9/100");
  head.content_encoding = "gzip";
  EXPECT_THAT(ErrorOf(JudgeAnswer(head, 0, 10, "u")), HasSubstr("compressed"));
  head.content_encoding = "identity";
  EXPECT_EQ(ErrorOf(JudgeAnswer(head, 0, 10, "u")), "no error");
}

TEST(ObjectVersionTest, StrongTagsDecideElseSizeTimeAndWeakTags) {
  const ObjectVersion strong{.size = 10, .etag = "\"a\"", .last_modified = "now"};
  EXPECT_TRUE(strong.IsSameAs(strong));
  EXPECT_TRUE(strong.IsSameAs({.size = 10, .etag = "\"a\"", .last_modified = "later"}));
  EXPECT_FALSE(strong.IsSameAs({.size = 10, .etag = "\"b\"", .last_modified = "now"}));
  EXPECT_FALSE(strong.IsSameAs({.size = 11, .etag = "\"a\"", .last_modified = "now"}));
  EXPECT_TRUE(strong.IsSameAs({.size = 10, .etag = "W/\"a\"", .last_modified = "now"}));
  EXPECT_FALSE(strong.IsSameAs({.size = 10, .etag = "W/\"a\"", .last_modified = "later"}));
  const ObjectVersion weak{.size = 10, .etag = "W/\"a\""};
  EXPECT_FALSE(weak.IsSameAs({.size = 10, .etag = "W/\"b\""}));
  EXPECT_TRUE(weak.IsSameAs({.size = 10}));
  EXPECT_FALSE(ObjectVersion{.size = 10}.IsSameAs({.size = 11}));
}

TEST(ObjectVersionsTest, KeepsTheOnesUsedLast) {
  ObjectVersions versions(3);
  for (const char* path : {"a", "b", "c"}) versions.Set(path, {.size = 1, .etag = path});
  EXPECT_EQ(versions.Find("a")->etag, "a");  // used again
  versions.Set("d", {.size = 1, .etag = "d"});
  EXPECT_EQ(versions.Find("b"), nullptr);
  EXPECT_EQ(versions.Find("a")->etag, "a");
  versions.Set("a", {.size = 2, .etag = "new"});
  EXPECT_EQ(versions.Find("a")->etag, "new");
  EXPECT_EQ(versions.Find("c")->etag, "c");
  EXPECT_EQ(versions.Find("e"), nullptr);
}

}  // namespace
}  // namespace echopipe::testing
