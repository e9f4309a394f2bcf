#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/http_flags.h>
#include <echopipe/cli/job.h>
#include <echopipe/cli/spec_flags.h>

namespace echopipe::cli {

/// `echopipe run`: runs a pipeline and tells its figures.
class RunCommand {
 public:
  /// Adds the subcommand to `app`, which must not be used after this has gone.
  explicit RunCommand(CLI::App& app);

  bool chosen() const { return command_->parsed(); }
  ExitCode Run();

 private:
  void AddRankFlags();
  void AddRuntimeFlags();
  void AddConsumerFlags();
  void AddLinkFlags();
  void AddResumeFlags();
  void AddDecisionFlags();
  void AddOutputFlags();
  CLI::Option* AddFileFlag(const std::string& flag, std::string& path, const std::string& help);
  PipelineSpec Spec() const;
  void PrintEnd(const JobResult& result) const;

  CLI::App* command_;
  std::string spec_file_;
  SpecFlags spec_flags_;
  HttpFlags http_flags_;
  Job job_;
  bool print_spec_ = false;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace echopipe::cli
