#include <chrono>
#include <iostream>
#include <string>

#include <echopipe/cli/count_flag.h>
#include <echopipe/cli/interrupt.h>
#include <echopipe/cli/printable.h>
#include <echopipe/cli/report.h>
#include <echopipe/cli/run_command.h>
#include <echopipe/cli/spec_file.h>
#include <echopipe/cli/units.h>

namespace echopipe::cli {
namespace {

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

// Far above any use: a number beyond them is a slip.
constexpr uint64_t kMostBatches = 1'000'000'000'000;
constexpr uint64_t kMostRanks = 1'000'000;

void CheckRank(const Rank& rank) {
  if (rank.rank < rank.world) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "not a rank of this --world",
               .where = "--rank",
               .got = std::to_string(rank.rank),
               .wanted = "less than " + std::to_string(rank.world)});
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
    : command_(app.add_subcommand("run", kDescription)),
      spec_flags_(*command_),
      http_flags_(*command_) {
  command_->footer(kFooter);
  command_->add_option(
      "SPEC", spec_file_,
      "The file of a spec in protobuf's text format, or - for standard input; before the flags.");
  AddRankFlags();
  AddRuntimeFlags();
  AddConsumerFlags();
  AddLinkFlags();
  AddResumeFlags();
  AddDecisionFlags();
  AddOutputFlags();
}

void RunCommand::AddRuntimeFlags() {
  RuntimeOptions& runtime = job_.runtime;
  const std::string group = "Runtime (never changes which examples come out)";
  const auto add = [&](const char* flag, auto& value, const CountRange& range, const char* help) {
    return AddCountFlag(*command_, flag, value, range, help)->group(group);
  };
  add("--threads", runtime.threads, {0, 1024}, "0, the default: as many as there are CPUs.");
  add("--reads-in-flight", runtime.reads_in_flight, {1, 1024}, "Reads under way at once.")
      ->default_str(std::to_string(runtime.reads_in_flight));
  command_
      ->add_flag_function(
          "--as-ready", [&](int64_t) { runtime.order = RecordOrder::kAsReady; },
          "Records come as their reads end, not in their order: a read that takes long holds\n"
          "nothing up. Shards that are streamed come in order all the same.")
      ->group(group);
  add("--prefetch", runtime.prefetch, {2, 1024}, "Batches made ahead of the consumer.")
      ->default_str(std::to_string(runtime.prefetch));
  command_
      ->add_option_function<std::string>(
          "--memory-cap",
          [&](const std::string& text) { runtime.memory_cap = ParseBytes("--memory-cap", text); },
          "The most bytes held at once.\nExample: --memory-cap 512M")
      ->type_name("BYTES")
      ->group(group);
}

void RunCommand::AddRankFlags() {
  const std::string group = "Share of the data";
  AddCountFlag(*command_, "--rank", job_.rank.rank, {0, kMostRanks - 1},
               "This process's share, from 0.")
      ->group(group);
  AddCountFlag(*command_, "--world", job_.rank.world, {1, kMostRanks},
               "How many processes share the data.")
      ->group(group);
}

void RunCommand::AddConsumerFlags() {
  command_
      ->add_option_function<std::string>(
          "--consumer-ms",
          [this](const std::string& text) {
            job_.consumer_time = ParseMilliseconds("--consumer-ms", text);
          },
          "The time a trainer would take for each batch.\nExample: --consumer-ms 80")
      ->type_name("MS")
      ->group("Consumer");
  AddCountFlag(*command_, "--max-batches", job_.max_batches, {1, kMostBatches},
               "Stop after so many batches of this run, wherever it began.")
      ->group("Consumer");
}

void RunCommand::AddLinkFlags() {
  ShapeOptions& link = job_.link;
  const auto add = [this](const char* flag, auto set, const char* help, const char* type) {
    return command_->add_option_function<std::string>(flag, set, help)
        ->type_name(type)
        ->group("Storage as behind a slow link");
  };
  add(
      "--bandwidth",
      [&](const std::string& text) { link.bytes_per_second = ParseRate("--bandwidth", text); },
      "Bytes per second of all reads together.\nExample: --bandwidth 4M, --bandwidth 80Mbit",
      "RATE");
  CLI::Option* const latency = add(
      "--latency",
      [&](const std::string& text) { link.latency = ParseDuration("--latency", text); },
      "From a read's start to its first byte.\nExample: --latency 20ms", "TIME");
  add(
      "--jitter", [&](const std::string& text) { link.jitter = ParseDuration("--jitter", text); },
      "Each latency is up to this much shorter or longer.\nExample: --latency 20ms --jitter 5ms",
      "TIME")
      ->needs(latency);
}

CLI::Option* RunCommand::AddFileFlag(const std::string& flag, std::string& path,
                                     const std::string& help) {
  return command_->add_option(flag, path, help)
      ->type_name("FILE")
      ->check([](const std::string& text) { return text.empty() ? "no file is named" : ""; }, "");
}

void RunCommand::AddResumeFlags() {
  const std::string group = "Checkpoints";
  CLI::Option* const file =
      AddFileFlag("--checkpoint", job_.checkpoints.file,
                  "Keep a checkpoint in this file: after every so many steps, at the end, and when "
                  "interrupted.\nExample: --checkpoint run.ckpt --checkpoint-every 100")
          ->group(group);
  CLI::Option* const every =
      AddCountFlag(*command_, "--checkpoint-every", job_.checkpoints.every, {1, kMostBatches},
                   "Steps of the run from one checkpoint to the next.")
          ->group(group);
  file->needs(every);
  every->needs(file);
  CLI::Option* const resume =
      AddFileFlag("--resume", job_.resume,
                  "Go on from this checkpoint, with the same spec, data and rank: the batches are "
                  "those of a run that was never interrupted.")
          ->group(group);
  command_
      ->add_flag("--or-start", job_.or_start,
                 "Begin anew where the file to resume is not there yet; a damaged one stays an "
                 "error.")
      ->needs(resume)
      ->group(group);
}

void RunCommand::AddDecisionFlags() {
  const std::string group = "Adaptive echo";
  AddFileFlag("--decision-log", job_.runtime.decision_log,
              "Write down in this file what the adaptive echo decides; a run that is resumed goes "
              "on in it.")
      ->group(group);
  AddFileFlag("--replay", job_.runtime.replay_log,
              "Decide what this log says: the batches are those of the run that wrote it.")
      ->group(group);
}

void RunCommand::AddOutputFlags() {
  const auto add = [this](const char* flag, bool& value, const char* help) {
    command_->add_flag(flag, value, help)->group("Output");
  };
  add("--json", json_, "End the output with the figures as one line of JSON.");
  add("--hash", job_.hash, "Tell a hash of all that this run delivered, in order.");
  AddFileFlag("--step-hashes", job_.step_hashes,
              "Append a line \"step hash\" to this file for each batch delivered, before any "
              "checkpoint that covers it.")
      ->group("Output");
  AddFileFlag("--timeline", job_.timeline,
              "Write to this file, for each second of the run, a line of its figures as JSON; "
              "scripts/plot draws them.")
      ->group("Output");
  AddFileFlag("--trace", job_.runtime.trace,
              "Write to this file what is done when, on which thread, for Perfetto "
              "(https://ui.perfetto.dev) or chrome://tracing.")
      ->group("Output");
  add("-q,--quiet", quiet_,
      "No progress, no table and no verdict; what --json and --hash ask for is told.");
  add("--print-spec", print_spec_, "Print the spec and do not run it.");
}

PipelineSpec RunCommand::Spec() const {
  return spec_flags_.AddTo(spec_file_.empty() ? PipelineSpec() : ReadSpec(spec_file_));
}

void RunCommand::PrintEnd(const JobResult& result) const {
  const bool at_max_batches = result.end == JobResult::End::kMaxBatches;
  const bool interrupted = result.end == JobResult::End::kInterrupted;
  if (at_max_batches) {
    std::cout << "Stopped after " << result.stats.batches << " batches, as --max-batches says.\n";
  }
  if (interrupted) std::cout << "Interrupted.\n";
  if ((at_max_batches || interrupted) && result.checkpoints > 0) {
    std::cout << "To go on: --resume " << Printable(job_.checkpoints.file) << "\n";
  }
  if (!result.stats.verdict.empty()) std::cout << "\n" << result.stats.verdict << "\n";
}

ExitCode RunCommand::Run() {
  job_.spec = Spec();
  if (print_spec_) {
    std::cout << job_.spec.ToText();
    return kOk;
  }
  CheckRank(job_.rank);
  job_.runtime.http = http_flags_.options();
  const Interrupt interrupt;
  Console console(quiet_);
  const JobResult result = RunJob(job_, console, interrupt.token());
  if (!quiet_) {
    std::cout << Table({{"", &result}});
    PrintEnd(result);
  }
  // The JSON holds it too, and quiet that is all.
  if (job_.hash && !(quiet_ && json_)) std::cout << "hash " << result.hash << "\n";
  if (json_) std::cout << Json(result) << "\n";
  std::cout << std::flush;
  if (result.error) std::cerr << "echopipe: " << Printable(result.error->what()) << "\n";
  return ExitCodeFor(result);
}

}  // namespace echopipe::cli
