#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/io/http/uri.h>

namespace echopipe::internal {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Bytes of "http://" or "https://"; 0 if it begins with neither.
size_t SchemeLength(std::string_view path) {
  const std::string begin = Lower(path.substr(0, 8));
  if (begin == "https://") return 8;
  return begin.starts_with("http://") ? 7 : 0;
}

// Letters, digits, "-", "." and "_", or an IPv6 address in brackets.
bool IsHost(std::string_view host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::string_view others = bracketed ? ":." : "-._";
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

[[noreturn]] void ThrowBadUri(const std::string& uri, std::string what) {
  throw Error({.code = ErrorCode::kInvalidArgument, .what = std::move(what), .where = uri});
}

bool IsUnreserved(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

bool IsHttpUri(std::string_view path) { return SchemeLength(path) > 0; }

HttpUri HttpUri::Parse(const std::string& uri) {
  const size_t scheme = SchemeLength(uri);
  const size_t slash = std::min(uri.find('/', scheme), uri.size());
  const std::string authority = Lower(std::string_view(uri).substr(scheme, slash - scheme));
  if (scheme == 0) ThrowBadUri(uri, "it begins with neither http:// nor https://");
  if (authority.find('@') != std::string::npos) {
    ThrowBadUri(Lower(uri.substr(0, scheme)) + "...",
                "user and password in a uri would be shown in messages; use a header or a token");
  }
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.find(':', bracket == std::string::npos ? 0 : bracket);
  const std::string_view host = std::string_view(authority).substr(0, colon);
  if (!IsHost(host)) ThrowBadUri(uri, "it names no host");
  if (colon != std::string::npos && !IsPort(std::string_view(authority).substr(colon + 1))) {
    ThrowBadUri(uri, "its port is no number of 1 to 65535");
  }
  if (uri.find('\0') != std::string::npos) {
    ThrowBadUri(uri.substr(0, uri.find('\0')), "the name goes on behind a zero byte");
  }
  return {.server = Lower(std::string_view(uri).substr(0, scheme)) + authority,
          .path = slash == uri.size() ? "/" : uri.substr(slash)};
}

std::string HttpUri::Encoded() const { return server + PercentEncode(path); }

std::string PercentEncode(std::string_view plain) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : plain) {
    if (IsUnreserved(c)) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::optional<std::string> PercentDecode(std::string_view encoded) {
  std::string plain;
  for (size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != '%') {
      plain += encoded[i];
      continue;
    }
    const std::string_view digits = encoded.substr(i + 1, 2);
    uint8_t byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

}  // namespace echopipe::internal
