#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace echopipe::cli {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP asks to stop instead of ending the program
/// at once; a second one ends it. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::atomic<bool> ended_{false};
  std::jthread watch_;
};

}  // namespace echopipe::cli
