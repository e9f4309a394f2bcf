#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <echopipe/base/error.h>
#include <echopipe/cli/demo_command.h>
#include <echopipe/cli/demo_data_command.h>
#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/flag_names.h>
#include <echopipe/cli/index_command.h>
#include <echopipe/cli/inspect_command.h>
#include <echopipe/cli/printable.h>
#include <echopipe/cli/run_command.h>
#include <echopipe/cli/verify_command.h>

namespace echopipe::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0    all done\n"
    "  2    a wrong flag or an invalid spec\n"
    "  3    no data or no checkpoint there, or the pipeline failed\n"
    "  4    more bad examples than bad_examples allows, or for verify: any\n"
    "  130  interrupted; the figures so far were told";

int Fail(const std::exception& error, int code) {
  std::cerr << "echopipe: " << Printable(error.what()) << "\n";
  return code;
}

int Parse(CLI::App& app, std::vector<std::string> arguments) {
  try {
    app.parse(std::move(arguments));
    return kOk;
  } catch (const CLI::ExtrasError& error) {
    const std::string suggestion = Suggestion(app);
    return suggestion.empty() ? Fail(error, kUsage)
                              : Fail(CLI::Error("", suggestion, kUsage), kUsage);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return -1;
  } catch (const CLI::ParseError& error) {
    std::cerr << "See echopipe --help.\n";
    return Fail(error, kUsage);
  }
}

int Run(int argc, char** argv) {
  CLI::App app("Feeds a trainer from slow storage, echoing what has been read already.");
  app.name("echopipe");
  app.set_version_flag("--version", ECHOPIPE_VERSION);
  app.require_subcommand(1);
  RunCommand run(app);
  InspectCommand inspect(app);
  VerifyCommand verify(app);
  IndexCommand index(app);
  DemoDataCommand demo_data(app);
  DemoCommand demo(app);
  // Set last: a subcommand begins with the footer of the program.
  app.footer(kExitCodes);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->footer(command->get_footer() + "\n" + kExitCodes);
  }
  if (argc < 2) {
    std::cerr << app.help();
    return kUsage;
  }
  const int parsed = Parse(app, ReversedArguments(argc, argv));
  if (parsed != kOk) return std::max(parsed, 0);
  if (run.chosen()) return run.Run();
  if (inspect.chosen()) return inspect.Run();
  if (verify.chosen()) return verify.Run();
  if (index.chosen()) return index.Run();
  return demo_data.chosen() ? demo_data.Run() : demo.Run();
}

}  // namespace
}  // namespace echopipe::cli

int main(int argc, char** argv) {
  using namespace echopipe;
  try {
    const int code = cli::Run(argc, argv);
    if (!std::cout.flush()) {
      throw Error(
          {.code = ErrorCode::kIo, .what = "cannot be written", .where = "standard output"});
    }
    return code;
  } catch (const Error& error) {
    return cli::Fail(error,
                     error.code() == ErrorCode::kInvalidArgument ? cli::kUsage : cli::kFailed);
  } catch (const std::exception& error) {
    return cli::Fail(error, cli::kFailed);
  }
}
