#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <echopipe/io/http_storage.h>

namespace echopipe::cli {

/// The flags that say how servers are talked to.
class HttpFlags {
 public:
  /// Adds the flags to `command`, which must not be used after this has gone.
  explicit HttpFlags(CLI::App& command);
  HttpFlags(const HttpFlags&) = delete;
  HttpFlags& operator=(const HttpFlags&) = delete;

  /// Throws kInvalidArgument for a token file that cannot be read now.
  HttpOptions options() const;

 private:
  HttpOptions options_;
  std::vector<std::string> headers_;
  std::string token_file_;
};

}  // namespace echopipe::cli
