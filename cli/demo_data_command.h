#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <echopipe/bench/demo_data.h>
#include <echopipe/cli/exit_code.h>

namespace echopipe::cli {

/// `echopipe demo-data`: makes a folder of photo-like JPEGs.
class DemoDataCommand {
 public:
  explicit DemoDataCommand(CLI::App& app);

  bool chosen() const { return command_->parsed(); }
  ExitCode Run();

 private:
  CLI::App* command_;
  std::string folder_;
  DemoDataOptions options_;
};

}  // namespace echopipe::cli
