#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <echopipe/tests/support/http_message.h>

namespace echopipe::testing {

/// What is wrong with one answer of a FaultServer: all that is set. By default nothing.
struct Fault {
  /// The connection ends, or waits, in the midst of an answer.
  struct Stop {
    enum class Where { kNowhere, kInHead, kInBody };
    enum class How { kClose, kReset, kStall };

    Where where = Where::kNowhere;
    How how = How::kClose;
    uint64_t after_bytes = 0;  ///< of the head or the body; at its end if it is shorter
  };
  /// The body goes out in pieces, `tick` apart. 0 bytes: as fast as it can.
  struct Pace {
    uint64_t bytes = 0;
    std::chrono::nanoseconds tick{};
  };
  enum class Form {
    kAsAsked,
    kWholeObject,  ///< 200 with the whole object: ranges are not known here
    kMultipart,    ///< 206 as multipart/byteranges with one part
  };
  enum class Length {
    kStated,   ///< Content-Length
    kChunked,  ///< Transfer-Encoding: chunked
    kNone,     ///< the body ends where the connection is closed
  };

  /// An answer with this status in the place of the object.
  std::optional<int> status = std::nullopt;
  std::string status_body = "no such luck\n";
  std::string retry_after = {};  ///< the header's value; "" leaves it out, also below
  std::string location = {};

  Form form = Form::kAsAsked;
  Length length = Length::kStated;
  /// Moves the ends of the range that is sent, within the object. Content-Range tells the truth,
  /// unless content_range is set too.
  int64_t begin_shift = 0;
  int64_t end_shift = 0;
  /// Headers that lie, in the place of the true ones; "" leaves them out.
  std::optional<std::string> content_range = std::nullopt;
  std::optional<std::string> etag = std::nullopt;
  std::optional<std::string> last_modified = std::nullopt;
  int64_t content_length_error = 0;  ///< added to the true length
  /// If-Match and the like are not known here.
  bool ignores_conditions = false;
  HttpHeaders more_headers = {};

  /// These bytes in the place of a whole answer; then the connection is closed.
  std::string raw = {};

  Pace pace = {};
  Stop stop = {};
};

// In the head, after 0 bytes, means before any answer.
inline Fault::Stop CloseInHead(uint64_t after_bytes = 0) {
  return {Fault::Stop::Where::kInHead, Fault::Stop::How::kClose, after_bytes};
}
inline Fault::Stop ResetInHead(uint64_t after_bytes = 0) {
  return {Fault::Stop::Where::kInHead, Fault::Stop::How::kReset, after_bytes};
}
/// Stalls hold until the client leaves, the server ends or FaultServer::Resume().
inline Fault::Stop StallInHead(uint64_t after_bytes = 0) {
  return {Fault::Stop::Where::kInHead, Fault::Stop::How::kStall, after_bytes};
}
inline Fault::Stop CloseInBody(uint64_t after_bytes) {
  return {Fault::Stop::Where::kInBody, Fault::Stop::How::kClose, after_bytes};
}
inline Fault::Stop ResetInBody(uint64_t after_bytes) {
  return {Fault::Stop::Where::kInBody, Fault::Stop::How::kReset, after_bytes};
}
inline Fault::Stop StallInBody(uint64_t after_bytes) {
  return {Fault::Stop::Where::kInBody, Fault::Stop::How::kStall, after_bytes};
}
/// The answer is whole, then the connection is closed without a word: a kept one turns out stale.
inline Fault::Stop CloseAfterBody() { return CloseInBody(~uint64_t{0}); }

inline Fault Status(int status, std::string retry_after = {}) {
  return {.status = status, .retry_after = std::move(retry_after)};
}
inline Fault Redirect(std::string location, int status = 302) {
  return {.status = status, .location = std::move(location)};
}

}  // namespace echopipe::testing
