#pragma once

#include <CLI/CLI.hpp>

#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/source_pass.h>

namespace echopipe::cli {

/// `echopipe verify`: reads and decodes every record once and names the bad ones.
class VerifyCommand {
 public:
  /// Adds the subcommand to `app`, which must not be used after this has gone.
  explicit VerifyCommand(CLI::App& app);

  bool chosen() const { return command_->parsed(); }
  ExitCode Run();

 private:
  CLI::App* command_;
  SourcePass pass_;
  bool no_decode_ = false;
  bool json_ = false;
};

}  // namespace echopipe::cli
