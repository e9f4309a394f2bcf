#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {

/// Names and values, in order.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The value of the first header of this name (in lower case), "" if there is none.
std::string FindHeader(const HttpHeaders& headers, std::string_view name);

/// The head of a request or an answer.
struct HttpHead {
  std::string first_line;
  HttpHeaders headers;  ///< names in lower case
};

/// Takes HTTP messages off a socket, which must outlive it.
class HttpReader {
 public:
  explicit HttpReader(const Socket& socket) : socket_(socket) {}

  /// Nothing if the other side ends before a whole head, or sends something else.
  std::optional<HttpHead> ReadHead();
  /// These read less if the other side ends.
  std::string Read(uint64_t bytes);
  std::string ReadChunks();
  std::string ReadToEnd();

  /// How the other side had ended when last read from.
  Socket::End end() const { return end_; }
  /// True if more bytes, or the end, have come already.
  bool HasMore() const { return !buffer_.empty() || socket_.HasMore(); }

 private:
  // The bytes up to this text, which is taken off too; nothing if it does not come.
  std::optional<std::string> ReadUntil(std::string_view text);
  // False once the other side has ended.
  bool Receive();

  const Socket& socket_;
  std::string buffer_;  // received, not yet read
  Socket::End end_ = Socket::End::kOpen;
};

}  // namespace echopipe::testing
