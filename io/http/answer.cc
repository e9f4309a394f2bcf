#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <echopipe/io/http/answer.h>

namespace echopipe::internal {
namespace {

std::optional<uint64_t> TakeNumber(std::string_view* text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

bool TakeText(std::string_view* text, std::string_view wanted) {
  if (!text->starts_with(wanted)) return false;
  text->remove_prefix(wanted.size());
  return true;
}

std::optional<ContentRange::Span> TakeSpan(std::string_view* text) {
  const std::optional<uint64_t> first = TakeNumber(text);
  if (!first || !TakeText(text, "-")) return std::nullopt;
  const std::optional<uint64_t> last = TakeNumber(text);
  if (!last || *last < *first || *last == std::numeric_limits<uint64_t>::max()) {
    return std::nullopt;
  }
  return ContentRange::Span{.first = *first, .last = *last};
}

Error IoError(std::string what, const std::string& where, std::string got = {},
              std::string wanted = {}) {
  return Error({.code = ErrorCode::kIo,
                .what = std::move(what),
                .where = where,
                .got = std::move(got),
                .wanted = std::move(wanted)});
}

std::string StatusText(int status) { return "HTTP status " + std::to_string(status); }

// What neither range nor document can do with.
std::optional<std::variant<TryLater, Error>> Refusal(const AnswerHead& head,
                                                     const std::string& where) {
  const int status = head.status;
  if (status == 429 || status == 503) {
    return TryLater{.why = StatusText(status), .throttled = true, .retry_after = head.retry_after};
  }
  if (status == 408 || status == 425 || status == 500 || status == 502 || status == 504) {
    return TryLater{.why = StatusText(status), .retry_after = head.retry_after};
  }
  if (status == 404 || status == 410) {
    return Error({.code = ErrorCode::kNotFound,
                  .what = "nothing is there (" + StatusText(status) + ")",
                  .where = where});
  }
  if (status == 401 || status == 403) {
    return IoError("the server refuses access: " + StatusText(status), where);
  }
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return IoError("the server sends it compressed", where, head.content_encoding);
  }
  return std::nullopt;
}

ObjectVersion VersionOf(const AnswerHead& head, uint64_t size) {
  return {.size = size, .etag = head.etag, .last_modified = head.last_modified};
}

Answer JudgePartial(const AnswerHead& head, uint64_t offset, uint64_t length,
                    const std::string& where) {
  const std::optional<ContentRange> range = ParseContentRange(head.content_range);
  const std::string got = head.content_range.empty() ? head.content_type : head.content_range;
  if (!range || !range->span) {
    return IoError("the server does not say which bytes it sends", where, got);
  }
  if (!range->size) return IoError("the server does not tell the object's size", where, got);
  const uint64_t due = std::min(length, *range->size - range->span->first);
  const uint64_t sent = range->span->last - range->span->first + 1;
  if (range->span->first != offset || sent != due) {
    return IoError("the server sends other bytes than it was asked for", where, got,
                   std::to_string(due) + " bytes from " + std::to_string(offset));
  }
  if (head.content_length && *head.content_length != sent) {
    return IoError("Content-Length and Content-Range contradict each other", where,
                   std::to_string(*head.content_length) + " and " + got);
  }
  return GoodAnswer{.version = VersionOf(head, *range->size), .first = offset, .length = sent};
}

// A whole object in the place of a range.
Answer JudgeWhole(const AnswerHead& head, uint64_t offset, const std::string& where) {
  if (!head.content_length) {
    return IoError("the server does not tell the object's size", where);
  }
  // What it sends in front of the range would have to be read in vain.
  if (offset > 0 && offset < *head.content_length) {
    return IoError("the server cannot send parts of objects (it ignores Range)", where);
  }
  return GoodAnswer{.version = VersionOf(head, *head.content_length),
                    .length = *head.content_length};
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view value) {
  ContentRange range;
  if (!TakeText(&value, "bytes ")) return std::nullopt;
  if (!TakeText(&value, "*")) {
    range.span = TakeSpan(&value);
    if (!range.span) return std::nullopt;
  }
  if (!TakeText(&value, "/")) return std::nullopt;
  if (!TakeText(&value, "*")) {
    range.size = TakeNumber(&value);
    if (!range.size) return std::nullopt;
  }
  const bool fits = !range.span || !range.size || range.span->last < *range.size;
  const bool says_something = range.span || range.size;
  return value.empty() && fits && says_something ? std::optional(range) : std::nullopt;
}

bool ObjectVersion::IsSameAs(const ObjectVersion& other) const {
  if (size != other.size) return false;
  if (has_strong_etag() && other.has_strong_etag()) return etag == other.etag;
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  // A server that begins or ceases to mark its ETag as weak has the same object.
  const bool both_weak = !has_strong_etag() && !other.has_strong_etag();
  return !differ(last_modified, other.last_modified) && !(both_weak && differ(etag, other.etag));
}

Answer JudgeAnswer(const AnswerHead& head, uint64_t offset, uint64_t length,
                   const std::string& where) {
  if (std::optional<std::variant<TryLater, Error>> refusal = Refusal(head, where)) {
    return std::visit([](auto& reason) -> Answer { return std::move(reason); }, *refusal);
  }
  switch (head.status) {
    case 200:
      return JudgeWhole(head, length == 0 ? 0 : offset, where);
    case 206:
      return JudgePartial(head, offset, length, where);
    case 412:
      return IoError("the object changed while it was read", where);
    case 416: {
      const std::optional<ContentRange> range = ParseContentRange(head.content_range);
      if (!range || !range->size || *range->size > offset) {
        return IoError("the server says that the range is not there", where, head.content_range);
      }
      return GoodAnswer{.version = VersionOf(head, *range->size), .first = *range->size};
    }
    default:
      return IoError("the server's answer cannot be used", where, StatusText(head.status));
  }
}

std::optional<std::variant<TryLater, Error>> JudgeDocument(const AnswerHead& head,
                                                           const std::string& where) {
  if (auto refusal = Refusal(head, where)) return refusal;
  if (head.status == 200) return std::nullopt;
  return IoError("the server's answer cannot be used", where, StatusText(head.status));
}

}  // namespace echopipe::internal
