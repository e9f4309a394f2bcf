// Uris of specs and names on servers' pages: the whole input is both a plain and an encoded one.
//
// Parses: io/http/uri.cc

#include <optional>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::internal::HttpUri;
using echopipe::internal::IsHttpUri;
using echopipe::internal::PercentDecode;
using echopipe::internal::PercentEncode;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

// Nothing that would end a request's line, a path or a header.
bool IsOnTheWayOut(const std::string& text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~' || c == '?' || c == '#' || c == '"' || c == '\\') return false;
  }
  return true;
}

void CheckPercents(const std::string& text) {
  const std::string encoded = PercentEncode(text);
  Require(IsOnTheWayOut(encoded));
  Require(PercentDecode(encoded) == text);
  if (const std::optional<std::string> decoded = PercentDecode(text)) {
    Require(decoded->size() <= text.size());
    Require(PercentDecode(PercentEncode(*decoded)) == *decoded);
  } else {
    Require(text.find('%') != std::string::npos);
  }
}

void CheckUri(const std::string& text) {
  try {
    const HttpUri uri = HttpUri::Parse(text);
    Require(IsHttpUri(text));
    Require(uri.server.starts_with("http://") || uri.server.starts_with("https://"));
    Require(uri.server.find('@') == std::string::npos);
    Require(uri.path.starts_with("/") && uri.path.find('\0') == std::string::npos);
    Require(IsOnTheWayOut(uri.Encoded()));
    const HttpUri again = HttpUri::Parse(uri.server + uri.path);
    Require(again.server == uri.server && again.path == uri.path);
    // The server's end is where its path begins.
    Require(uri.Encoded().starts_with(uri.server + "/"));
    Require(uri.server.find_first_of("/?#", uri.server.find("//") + 2) == std::string::npos);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kInvalidArgument);
    // A password would be shown in it.
    const size_t slash = text.find('/', text.find("//") + 2);
    const size_t at = text.find('@');
    if (IsHttpUri(text) && at < slash && at > 8) {
      Require(std::string(error.what()).find('@') == std::string::npos);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzInput(data, size).TakeRest());
  CheckPercents(text);
  CheckUri(text);
  return 0;
}
