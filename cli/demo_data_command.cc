#include <algorithm>
#include <iostream>
#include <string>

#include <echopipe/cli/console.h>
#include <echopipe/cli/demo_data_command.h>

namespace echopipe::cli {

DemoDataCommand::DemoDataCommand(CLI::App& app)
    : command_(app.add_subcommand("demo-data", "Makes a folder of photo-like JPEGs to try on.")) {
  command_->add_option("DIR", folder_, "Is made; what is there already is kept.")->required();
  command_->add_option("--images", options_.images, "How many.")->capture_default_str();
  command_->add_option("--seed", options_.seed, "Other seeds give other pictures.")
      ->capture_default_str();
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
  std::cout << folder_ << ": " << options_.images << " images\n";
  return kOk;
}

}  // namespace echopipe::cli
