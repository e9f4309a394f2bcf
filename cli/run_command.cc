#include <cerrno>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>

#include <echopipe/cli/interrupt.h>
#include <echopipe/cli/report.h>
#include <echopipe/cli/run_command.h>
#include <echopipe/cli/units.h>

namespace echopipe::cli {
namespace {

PipelineSpec ReadSpec(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    const std::error_code error(errno != 0 ? errno : EIO, std::generic_category());
    // A wrong argument, whatever the file's own trouble.
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "cannot read the spec: " + error.message(),
                 .where = path});
  }
  return PipelineSpec::FromText(text, path);
}

ExitCode ExitCodeFor(const JobResult& result) {
  switch (result.end) {
    case JobResult::End::kInterrupted:
      return kInterrupted;
    case JobResult::End::kFailed:
      return result.too_many_bad_examples ? kTooManyBadExamples : kFailed;
    default:
      return kOk;
  }
}

void PrintEnd(const JobResult& result) {
  if (result.end == JobResult::End::kMaxBatches) {
    std::cout << "Stopped after " << result.stats.batches << " batches, as --max-batches says.\n";
  }
  if (result.end == JobResult::End::kInterrupted) std::cout << "Interrupted.\n";
  if (!result.stats.verdict.empty()) std::cout << "\n" << result.stats.verdict << "\n";
  if (!result.hash.empty()) std::cout << "hash " << result.hash << "\n";
}

constexpr const char* kDescription = "Runs a pipeline and tells its figures.";
constexpr const char* kFooter =
    "The pipeline is that of the spec file, of the flags, or of both: a flag takes the place of "
    "the\n"
    "spec's field, and the stages given come after the spec's. A single number stands for a "
    "stage's\n"
    "first number.\n\n"
    "  echopipe run --source photos/ --shuffle full --decode --echo 3 \\\n"
    "    --random-resized-crop 'height: 224 width: 224' --normalize --batch 32\n";

}  // namespace

RunCommand::RunCommand(CLI::App& app)
    : command_(app.add_subcommand("run", kDescription)), spec_flags_(*command_) {
  command_->footer(kFooter);
  command_->add_option("SPEC", spec_file_, "A spec in protobuf's text format; before the flags.");
  AddRuntimeFlags();
  AddConsumerFlags();
  AddLinkFlags();
  AddOutputFlags();
}

void RunCommand::AddRuntimeFlags() {
  RuntimeOptions& runtime = job_.runtime;
  const std::string group = "Runtime (never changes what comes out)";
  command_->add_option("--threads", runtime.threads, "Default: as many as there are CPUs.")
      ->group(group);
  command_->add_option("--reads-in-flight", runtime.reads_in_flight, "Reads under way at once.")
      ->capture_default_str()
      ->group(group);
  command_->add_option("--prefetch", runtime.prefetch, "Batches made ahead of the consumer.")
      ->capture_default_str()
      ->group(group);
  command_
      ->add_option_function<std::string>(
          "--memory-cap",
          [&](const std::string& text) { runtime.memory_cap = ParseBytes("--memory-cap", text); },
          "The most bytes held at once.\nExample: --memory-cap 512M")
      ->type_name("BYTES")
      ->group(group);
  command_->add_option("--rank", job_.rank.rank, "This process's share of the data, from 0.")
      ->group(group);
  command_->add_option("--world", job_.rank.world, "How many processes share the data.")
      ->group(group);
}

void RunCommand::AddConsumerFlags() {
  command_
      ->add_option_function<double>(
          "--consumer-ms",
          [this](double ms) {
            job_.consumer_time = std::chrono::duration_cast<Clock::Duration>(
                std::chrono::duration<double, std::milli>(ms));
          },
          "The time a trainer would take for each batch.\nExample: --consumer-ms 80")
      ->check(CLI::Range(0.0, 3.6e6).description(""))
      ->type_name("MS")
      ->group("Consumer");
  command_->add_option("--max-batches", job_.max_batches, "Stop after so many batches.")
      ->check(CLI::PositiveNumber)
      ->group("Consumer");
}

void RunCommand::AddLinkFlags() {
  ShapeOptions& link = job_.link;
  const auto add = [this](const char* flag, auto set, const char* help, const char* type) {
    command_->add_option_function<std::string>(flag, set, help)
        ->type_name(type)
        ->group("Storage as behind a slow link");
  };
  add(
      "--bandwidth",
      [&](const std::string& text) { link.bytes_per_second = ParseRate("--bandwidth", text); },
      "Bytes per second of all reads together.\nExample: --bandwidth 4M, --bandwidth 80Mbit",
      "RATE");
  add(
      "--latency",
      [&](const std::string& text) { link.latency = ParseDuration("--latency", text); },
      "From a read's start to its first byte.\nExample: --latency 20ms", "TIME");
  add(
      "--jitter", [&](const std::string& text) { link.jitter = ParseDuration("--jitter", text); },
      "Each latency is up to this much shorter or longer.\nExample: --jitter 5ms", "TIME");
}

void RunCommand::AddOutputFlags() {
  const auto add = [this](const char* flag, bool& value, const char* help) {
    command_->add_flag(flag, value, help)->group("Output");
  };
  add("--json", json_, "End the output with the figures as one line of JSON.");
  add("--hash", job_.hash, "Tell a hash of all that was delivered, in order.");
  add("-q,--quiet", quiet_, "No progress and no table.");
  add("--print-spec", print_spec_, "Print the spec and do not run it.");
}

PipelineSpec RunCommand::Spec() const {
  return spec_flags_.AddTo(spec_file_.empty() ? PipelineSpec() : ReadSpec(spec_file_));
}

ExitCode RunCommand::Run() {
  job_.spec = Spec();
  if (print_spec_) {
    std::cout << job_.spec.ToText();
    return kOk;
  }
  const Interrupt interrupt;
  Console console(quiet_);
  const JobResult result = RunJob(job_, console, interrupt.token());
  if (!quiet_) {
    std::cout << Table({{"", &result}});
    PrintEnd(result);
  }
  if (json_) std::cout << Json(result) << "\n";
  std::cout << std::flush;
  if (result.error) std::cerr << "echopipe: " << result.error->what() << "\n";
  return ExitCodeFor(result);
}

}  // namespace echopipe::cli
