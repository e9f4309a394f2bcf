#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <echopipe/base/error.h>

namespace echopipe::internal {

/// A text that was asked for whole.
struct HttpDocument {
  std::string body;
  std::string content_type;
  std::string path;  ///< of the uri that answered, percent-encoded
};

/// Asks for a text: under way as long as it exists.
///
/// End      Its callback runs once: when it ends, else when it is destroyed, which only want of
///          memory leads to.
/// Threads  One caller at a time.
class HttpPage {
 public:
  using Callback = std::function<void(Result<HttpDocument>)>;

  HttpPage(std::string uri, uint64_t most_bytes, Callback callback)
      : uri_(std::move(uri)), most_bytes_(most_bytes), callback_(std::move(callback)) {}
  ~HttpPage() {
    if (callback_) End(OutOfMemory());
  }
  HttpPage(const HttpPage&) = delete;
  HttpPage& operator=(const HttpPage&) = delete;

  const std::string& uri() const { return uri_; }
  uint64_t most_bytes() const { return most_bytes_; }

  /// Calls back.
  void End(Result<HttpDocument> result) { std::exchange(callback_, nullptr)(std::move(result)); }

 private:
  std::string uri_;
  uint64_t most_bytes_;
  Callback callback_;  // null once it has been called
};

}  // namespace echopipe::internal
