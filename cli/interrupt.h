#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace echopipe::cli {

/// While it lives, SIGINT and SIGTERM ask to stop instead of ending the program at once; a second
/// one ends it. Make it before any thread is started: these inherit the blocked signals.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  void Watch();

  std::stop_source source_;
  std::atomic<bool> ended_{false};
  std::jthread watch_;
};

}  // namespace echopipe::cli
