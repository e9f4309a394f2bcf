#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <echopipe/tests/support/http_message.h>
#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {

struct PlainAnswer {
  std::string first_line = {};
  int status = 0;  ///< 0: no answer of HTTP
  HttpHeaders headers = {};
  std::string body = {};
  bool complete = false;  ///< the body is as long as was said

  std::string Header(std::string_view name) const { return FindHeader(headers, name); }
};

/// One connection to an HTTP server of this machine, without any cleverness.
class PlainClient {
 public:
  explicit PlainClient(uint16_t port) : PlainClient(ConnectToLoopback(port)) {}
  explicit PlainClient(Socket socket) : socket_(std::move(socket)) {}
  PlainClient(const PlainClient&) = delete;
  PlainClient& operator=(const PlainClient&) = delete;

  bool connected() const { return static_cast<bool>(socket_); }

  /// Sends a request, whose further headers are lines that end in "\r\n".
  void Send(std::string_view method, std::string_view target, std::string_view headers = {});
  /// Blocks for the answer to what was sent last.
  PlainAnswer Receive();
  PlainAnswer Get(std::string_view target, std::string_view headers = {});
  PlainAnswer Head(std::string_view target, std::string_view headers = {});

  /// For what is no proper answer.
  HttpReader& reader() { return reader_; }
  const Socket& socket() const { return socket_; }

 private:
  Socket socket_;
  HttpReader reader_{socket_};
  bool sent_head_ = false;
};

}  // namespace echopipe::testing
