#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace echopipe::internal {

/// True for "http://..." and "https://...", in any case.
bool IsHttpUri(std::string_view path);

/// A path of the HTTP storage, taken apart. The names in it are plain bytes: they are encoded on
/// the way out, and a "%20" in them is a percent sign, a two and a zero.
struct HttpUri {
  std::string server;  ///< "https://host:port", in lower case
  std::string path;    ///< plain, begins with "/"

  /// Throws kInvalidArgument: no host, a port that is none, user and password in it, a zero byte.
  static HttpUri Parse(const std::string& uri);
  /// What goes to the server.
  std::string Encoded() const;
};

/// "a b" -> "a%20b"; "/" and RFC 3986's unreserved characters stay.
std::string PercentEncode(std::string_view plain);
/// Nothing if a "%" is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecode(std::string_view encoded);

}  // namespace echopipe::internal
