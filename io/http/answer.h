#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <echopipe/base/clock.h>
#include <echopipe/base/error.h>

namespace echopipe::internal {

/// The value of a Content-Range header: "bytes 0-9/100", "bytes */100", "bytes 0-9/*".
struct ContentRange {
  struct Span {
    uint64_t first = 0;
    uint64_t last = 0;  ///< inclusive, >= first
    bool operator==(const Span&) const = default;
  };
  std::optional<Span> span = {};
  std::optional<uint64_t> size = {};  ///< of the whole object; > span->last
  bool operator==(const ContentRange&) const = default;
};

/// Nothing if it is not one. Source: RFC 9110, section 14.4.
std::optional<ContentRange> ParseContentRange(std::string_view value);

/// What tells one version of an object from another.
struct ObjectVersion {
  uint64_t size = 0;
  std::string etag = {};           ///< as the server gave it; "" if it gave none
  std::string last_modified = {};  ///< the same

  /// Two strong ETags decide alone; else the size and whatever both have.
  bool IsSameAs(const ObjectVersion& other) const;
  /// Fit for If-Match.
  bool has_strong_etag() const { return !etag.empty() && !etag.starts_with("W/"); }
};

/// The head of an answer, behind all redirects.
struct AnswerHead {
  int status = 0;
  std::optional<uint64_t> content_length = {};
  std::string content_range = {};
  std::string content_type = {};
  std::string content_encoding = {};
  std::string etag = {};
  std::string last_modified = {};
  std::string path = {};  ///< of the uri that answered, percent-encoded
  std::optional<Clock::Duration> retry_after = {};
};

/// The body is what was asked for.
struct GoodAnswer {
  ObjectVersion version;
  uint64_t first = 0;   ///< the object's byte that the body begins with
  uint64_t length = 0;  ///< of the body
};
/// It did not work out now.
struct TryLater {
  std::string why;
  bool throttled = false;  ///< the server asks for less
  std::optional<Clock::Duration> retry_after = {};
};
using Answer = std::variant<GoodAnswer, TryLater, Error>;

/// What the answer to a request for bytes [offset, offset + length) means; length 0 is a HEAD.
/// Errors carry `where`: kNotFound for 404 and 410, else kIo.
Answer JudgeAnswer(const AnswerHead& head, uint64_t offset, uint64_t length,
                   const std::string& where);

/// The same for one that asks for the whole, of whatever length: nothing if it is there.
std::optional<std::variant<TryLater, Error>> JudgeDocument(const AnswerHead& head,
                                                           const std::string& where);

}  // namespace echopipe::internal
