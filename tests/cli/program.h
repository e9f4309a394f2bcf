#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace echopipe::testing {

/// What a run of the echopipe program left behind.
struct ProgramRun {
  int exit_code = -1;  ///< 128 + its number if a signal ended it
  std::string out;
  std::string err;
};

/// The program, running.
class Program {
 public:
  /// `launcher` runs it: {"taskset", "-c", "0"}.
  explicit Program(std::vector<std::string> arguments, std::vector<std::string> launcher = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Signal(int signal) const;
  /// Blocks until it has ended.
  ProgramRun Wait();

 private:
  // Takes over what has come on either pipe; false once both are closed.
  bool Read();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  ProgramRun run_;
};

ProgramRun RunProgram(std::vector<std::string> arguments, std::vector<std::string> launcher = {});

}  // namespace echopipe::testing
