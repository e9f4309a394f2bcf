#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include <echopipe/cli/console.h>
#include <echopipe/cli/count_flag.h>
#include <echopipe/cli/demo_data_command.h>
#include <echopipe/cli/printable.h>

namespace echopipe::cli {
namespace {

constexpr const char* kFolderHelp =
    "Is made, or completed if it is demo data with these flags and the run was interrupted. If it "
    "holds anything else, also demo data with other flags, it is left alone and that is an error.";

}  // namespace

DemoDataCommand::DemoDataCommand(CLI::App& app)
    : command_(app.add_subcommand("demo-data", "Makes a folder of photo-like JPEGs to try on.")) {
  command_->add_option("DIR", folder_, kFolderHelp)->required();
  AddCountFlag(*command_, "--images", options_.images, {1, 1'000'000}, "How many.")
      ->default_str(std::to_string(options_.images));
  AddCountFlag(*command_, "--seed", options_.seed, {0, UINT64_MAX},
               "Other seeds give other pictures.")
      ->default_str(std::to_string(options_.seed));
}

ExitCode DemoDataCommand::Run() {
  Console console(false);
  // Elsewhere than on a terminal each status is a line.
  const int step = console.on_terminal() ? 1 : std::max(1, options_.images / 4);
  int told = 0;
  options_.progress = [&](int done) {
    if (done < told + step) return;
    told = done;
    console.Status("making " + folder_ + ": " + std::to_string(done) + " of " +
                   std::to_string(options_.images) + " images");
  };
  MakeDemoData(folder_, options_);
  console.ClearStatus();
  std::cout << Printable(folder_) << ": " << options_.images << " images\n";
  return kOk;
}

}  // namespace echopipe::cli
