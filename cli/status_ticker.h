#pragma once

#include <functional>
#include <string>
#include <thread>

#include <echopipe/cli/console.h>

namespace echopipe::cli {

/// Tells a status every now and then, from a thread of its own until it is destroyed.
class StatusTicker {
 public:
  /// `console` and what `text` looks at must outlive this.
  StatusTicker(Console& console, std::function<std::string()> text);
  ~StatusTicker();
  StatusTicker(const StatusTicker&) = delete;
  StatusTicker& operator=(const StatusTicker&) = delete;

 private:
  Console& console_;
  std::function<std::string()> text_;
  std::jthread ticker_;
};

}  // namespace echopipe::cli
