#include <iostream>
#include <utility>

#include <echopipe/cli/demo_data_command.h>
#include <echopipe/cli/numbers.h>

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
  MakeDemoDataTold(folder_, options_, console);
  std::cout << folder_ << ": " << WithCommas(static_cast<uint64_t>(options_.images)) << " images\n";
  return kOk;
}

void MakeDemoDataTold(const std::string& folder, DemoDataOptions options, Console& console) {
  int told = 0;
  options.progress = [&](int done) {
    // Elsewhere than on a terminal each is a line.
    const int step = console.on_terminal() ? 1 : std::max(1, options.images / 4);
    if (done < told + step) return;
    told = done;
    console.Status("making " + folder + ": " + std::to_string(done) + " of " +
                   std::to_string(options.images) + " images");
  };
  MakeDemoData(folder, options);
  console.ClearStatus();
}

}  // namespace echopipe::cli
