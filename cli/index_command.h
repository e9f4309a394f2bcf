#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/spec_flags.h>

namespace echopipe::cli {

/// `echopipe index`: makes the indexes that a full shuffle of shards needs.
class IndexCommand {
 public:
  /// Adds the subcommand to `app`, which must not be used after this has gone.
  explicit IndexCommand(CLI::App& app);

  bool chosen() const { return command_->parsed(); }
  ExitCode Run();

 private:
  PipelineSpec GivenSpec() const;

  CLI::App* command_;
  std::vector<std::string> uris_;
  std::string spec_file_;
  SpecFlags spec_flags_;
  int threads_ = 0;
  bool quiet_ = false;
};

}  // namespace echopipe::cli
