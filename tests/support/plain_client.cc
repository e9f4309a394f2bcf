#include <cstdlib>
#include <optional>
#include <utility>

#include <echopipe/tests/support/plain_client.h>

namespace echopipe::testing {

void PlainClient::Send(std::string_view method, std::string_view target, std::string_view headers) {
  sent_head_ = method == "HEAD";
  std::string request(method);
  request.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\n");
  socket_.Send(request.append(headers).append("\r\n"));
}

PlainAnswer PlainClient::Receive() {
  std::optional<HttpHead> head = reader_.ReadHead();
  if (!head) return {};
  PlainAnswer answer{.first_line = head->first_line, .headers = std::move(head->headers)};
  if (answer.first_line.starts_with("HTTP/1.1 "))
    answer.status = std::atoi(answer.first_line.c_str() + 9);
  const std::string length = answer.Header("content-length");
  if (sent_head_ || answer.status == 204) {
    answer.complete = true;
  } else if (answer.Header("transfer-encoding") == "chunked") {
    answer.body = reader_.ReadChunks();
    answer.complete = reader_.end() == Socket::End::kOpen;
  } else if (!length.empty()) {
    answer.body = reader_.Read(std::strtoull(length.c_str(), nullptr, 10));
    answer.complete = std::to_string(answer.body.size()) == length;
  } else {
    answer.body = reader_.ReadToEnd();
    answer.complete = reader_.end() == Socket::End::kClosed;
  }
  return answer;
}

PlainAnswer PlainClient::Get(std::string_view target, std::string_view headers) {
  Send("GET", target, headers);
  return Receive();
}

PlainAnswer PlainClient::Head(std::string_view target, std::string_view headers) {
  Send("HEAD", target, headers);
  return Receive();
}

}  // namespace echopipe::testing
