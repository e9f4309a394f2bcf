// Heads of answers, as any server may send them.
//
// Lines: what was asked for (offset, length; 0 for a HEAD), then the head: status, Content-Length
// ("" for none), Content-Range, Content-Encoding, ETag, Last-Modified; last another ETag and
// Last-Modified to compare with.
//
// Parses: io/http/answer.cc

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <echopipe/io/http/answer.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::internal::Answer;
using echopipe::internal::AnswerHead;
using echopipe::internal::ContentRange;
using echopipe::internal::GoodAnswer;
using echopipe::internal::JudgeAnswer;
using echopipe::internal::JudgeDocument;
using echopipe::internal::ObjectVersion;
using echopipe::internal::ParseContentRange;
using echopipe::internal::TryLater;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

const std::string kWhere = "http://host/object";

std::string Print(const ContentRange& range) {
  std::string text = "bytes ";
  text +=
      range.span ? std::to_string(range.span->first) + "-" + std::to_string(range.span->last) : "*";
  return text + "/" + (range.size ? std::to_string(*range.size) : "*");
}

void CheckContentRange(const std::string& value) {
  const std::optional<ContentRange> range = ParseContentRange(value);
  if (!range) return;
  Require(range->span || range->size);
  if (range->span) {
    Require(range->span->first <= range->span->last);
    Require(!range->size || range->span->last < *range->size);
  }
  Require(ParseContentRange(Print(*range)) == range);
}

// The body is what was asked for, as far as the object has it; or all of it, if it begins there.
void CheckGood(const GoodAnswer& good, const AnswerHead& head, uint64_t offset, uint64_t length) {
  const uint64_t size = good.version.size;
  Require(good.first <= size && good.length <= size - good.first);
  Require(good.version.etag == head.etag);
  switch (head.status) {
    case 200:
      Require(good.first == 0 && good.length == size);
      Require(length == 0 || offset == 0 || offset >= size);
      return;
    case 206:
      Require(good.first == offset && good.length == std::min(length, size - offset));
      Require(!head.content_length || *head.content_length == good.length);
      return;
    default:
      Require(head.status == 416);
      Require(good.length == 0 && size <= offset);
  }
}

void CheckError(const Error& error, int status) {
  const bool is_missing = status == 404 || status == 410;
  Require(error.code() == (is_missing ? ErrorCode::kNotFound : ErrorCode::kIo));
  Require(error.details().where == kWhere);
}

void CheckAnswer(const AnswerHead& head, uint64_t offset, uint64_t length) {
  const Answer answer = JudgeAnswer(head, offset, length, kWhere);
  if (const auto* good = std::get_if<GoodAnswer>(&answer)) CheckGood(*good, head, offset, length);
  if (const auto* error = std::get_if<Error>(&answer)) CheckError(*error, head.status);
  if (const auto* later = std::get_if<TryLater>(&answer)) {
    Require(head.status == 408 || head.status == 425 || head.status == 429 || head.status >= 500);
    Require(later->throttled == (head.status == 429 || head.status == 503));
  }
  const auto refusal = JudgeDocument(head, kWhere);
  Require(refusal || head.status == 200);
}

void CheckVersions(const ObjectVersion& a, const ObjectVersion& b) {
  Require(a.IsSameAs(a) && b.IsSameAs(b));
  Require(a.IsSameAs(b) == b.IsSameAs(a));
  if (a.has_strong_etag() && b.has_strong_etag()) {
    Require(a.IsSameAs(b) == (a.etag == b.etag));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const uint64_t offset = input.TakeNumber();
  const uint64_t length = input.TakeNumber();
  AnswerHead head;
  head.status = static_cast<int>(input.TakeNumber() % 1000);
  const std::string_view content_length = input.TakeLine();
  if (!content_length.empty()) head.content_length = FuzzInput(content_length).TakeNumber();
  head.content_range = input.TakeLine();
  head.content_encoding = input.TakeLine();
  head.etag = input.TakeLine();
  head.last_modified = input.TakeLine();
  CheckContentRange(head.content_range);
  CheckAnswer(head, offset, length);
  const ObjectVersion version{.size = 1, .etag = head.etag, .last_modified = head.last_modified};
  const std::string other_tag(input.TakeLine());
  CheckVersions(version,
                {.size = 1, .etag = other_tag, .last_modified = std::string(input.TakeLine())});
  return 0;
}
