#include <algorithm>
#include <charconv>
#include <system_error>

#include <echopipe/tests/support/http_message.h>

namespace echopipe::testing {
namespace {

constexpr size_t kMaxHeadBytes = size_t{64} << 20;
constexpr std::string_view kLineEnd = "\r\n";

std::string Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// Nothing if a line is no header. `text` has no empty line.
std::optional<HttpHead> ParseHead(std::string_view text) {
  size_t end = std::min(text.find(kLineEnd), text.size());
  HttpHead head{.first_line = std::string(text.substr(0, end)), .headers = {}};
  while (end < text.size()) {
    text.remove_prefix(end + kLineEnd.size());
    end = std::min(text.find(kLineEnd), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    head.headers.emplace_back(LowerCase(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  return head;
}

}  // namespace

std::string FindHeader(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [name](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string() : found->second;
}

std::optional<HttpHead> HttpReader::ReadHead() {
  const std::optional<std::string> text = ReadUntil("\r\n\r\n");
  if (!text) return std::nullopt;
  return ParseHead(*text);
}

std::string HttpReader::Read(uint64_t bytes) {
  while (buffer_.size() < bytes && Receive()) continue;
  std::string read = buffer_.substr(0, bytes);
  buffer_.erase(0, read.size());
  return read;
}

std::string HttpReader::ReadChunks() {
  std::string body;
  while (const std::optional<std::string> line = ReadUntil(kLineEnd)) {
    uint64_t size = 0;
    const auto parsed = std::from_chars(line->data(), line->data() + line->size(), size, 16);
    if (parsed.ec != std::errc()) break;
    body += Read(size);
    Read(kLineEnd.size());
    if (size == 0) break;
  }
  return body;
}

std::string HttpReader::ReadToEnd() {
  while (Receive()) continue;
  return std::exchange(buffer_, {});
}

std::optional<std::string> HttpReader::ReadUntil(std::string_view text) {
  size_t searched = 0;
  while (true) {
    const size_t found = buffer_.find(text, searched);
    if (found != std::string::npos) {
      std::string read = buffer_.substr(0, found);
      buffer_.erase(0, found + text.size());
      return read;
    }
    searched = buffer_.size() - std::min(buffer_.size(), text.size() - 1);
    if (buffer_.size() > kMaxHeadBytes || !Receive()) return std::nullopt;
  }
}

bool HttpReader::Receive() {
  if (end_ == Socket::End::kOpen) end_ = socket_.Receive(&buffer_);
  return end_ == Socket::End::kOpen;
}

}  // namespace echopipe::testing
