#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace echopipe::testing {

/// The full path of a program on PATH or in /usr/sbin; "" if it is missing.
std::string FindProgram(std::string_view name);

/// A program that serves a test; it is ended at the end of the scope, or with the thread that
/// started it, should the test die.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> words;                  ///< the program's full path, its arguments
    std::vector<std::string> environment = {};       ///< "NAME=value", all that it gets
    std::string output = "/dev/null";                ///< a file for what it says
    std::optional<int> inherited_fd = std::nullopt;  ///< kept open under its number
    std::chrono::milliseconds grace{5000};           ///< from being asked to end to being made to
  };

  explicit ChildProcess(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  /// Blocks until it has ended by itself; its exit code, or 128 + the signal's number.
  int Wait();
  /// Ends it politely; after the grace by force, and its own children too.
  void Stop();

 private:
  // Whether it has ended; then its status has been taken.
  bool Reap(int options);

  const std::chrono::milliseconds grace_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace echopipe::testing
