#pragma once

#include <cstdint>

#include <CLI/CLI.hpp>

#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/source_pass.h>

namespace echopipe::cli {

/// `echopipe inspect`: tells what a source holds, or how a pipeline would run.
class InspectCommand {
 public:
  /// Adds the subcommand to `app`, which must not be used after this has gone.
  explicit InspectCommand(CLI::App& app);

  bool chosen() const { return command_->parsed(); }
  ExitCode Run();

 private:
  CLI::App* command_;
  SourcePass pass_;
  uint64_t first_ = 3;
  bool plan_ = false;
  bool json_ = false;
};

}  // namespace echopipe::cli
