#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <echopipe/cli/exit_code.h>

namespace echopipe::cli {

/// `echopipe demo`: one pipeline without and with echo, over slowed storage, side by side.
class DemoCommand {
 public:
  explicit DemoCommand(CLI::App& app);

  bool chosen() const { return command_->parsed(); }
  ExitCode Run();

 private:
  CLI::App* command_;
  std::string folder_;
  std::string uri_;  // where a server has it; empty: it is read here
};

}  // namespace echopipe::cli
