#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <echopipe/cli/numbers.h>
#include <echopipe/cli/printable.h>
#include <echopipe/cli/verify_command.h>
#include <echopipe/pipeline/stats.h>

namespace echopipe::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kDescription = "Reads and decodes every record once and names the bad ones.";
constexpr const char* kFooter =
    "A line for each bad record, in the order of the data: its kind, its name, what is wrong. The\n"
    "exit code is 4 if there are any.\n\n"
    "  echopipe verify --source photos/\n"
    "  echopipe verify --source 'shards/train-{000..127}.tar' --json\n";

// Of the file, and within a shard of the record.
std::string NameOf(const BadExample& bad) {
  return bad.uri.ends_with(bad.key) ? bad.uri : bad.uri + ": " + bad.key;
}

// Without the name, where the error has it already.
std::string ReasonOf(const BadExample& bad) {
  const std::string what = bad.error.what();
  const std::string name = bad.uri + ": ";
  return what.starts_with(name) ? what.substr(name.size()) : what;
}

class Findings {
 public:
  explicit Findings(bool json) : json_(json) {}

  void Add(const BadExample& bad) {
    const std::string kind(ToString(bad.error.code()));
    ++kinds_[kind];
    if (json_) {
      bad_.push_back({{"uri", bad.uri},
                      {"key", bad.key},
                      {"stage", bad.stage},
                      {"kind", kind},
                      {"error", ReasonOf(bad)}});
    } else {
      std::cout << kind << "  " << Printable(NameOf(bad)) << ": " << Printable(ReasonOf(bad))
                << std::endl;
    }
  }

  void Print(const PassResult& result) const { json_ ? PrintJson(result) : PrintText(result); }

 private:
  void PrintText(const PassResult& result) const {
    const PipelineStats& stats = result.stats;
    if (result.end == PassResult::End::kInterrupted) std::cout << "Interrupted.\n";
    std::cout << WithCommas(stats.records) << " records, " << Bytes(stats.bytes_read) << ", "
              << (stats.bad_count == 0 ? "none" : WithCommas(stats.bad_count)) << " bad";
    std::string_view separator = ": ";
    for (const auto& [kind, count] : kinds_) {
      std::cout << std::exchange(separator, ", ") << kind << " " << WithCommas(count);
    }
    std::cout << "\n";
  }

  // Names of files need not be UTF-8, and may hold what a terminal takes for commands.
  void PrintJson(const PassResult& result) const {
    const ordered_json json = {{"records", result.stats.records},
                               {"bytes_read", result.stats.bytes_read},
                               {"seconds", result.stats.seconds},
                               {"complete", result.end == PassResult::End::kData},
                               {"bad_count", result.stats.bad_count},
                               {"kinds", kinds_},
                               {"bad", bad_}};
    std::cout << json.dump(-1, ' ', true, ordered_json::error_handler_t::replace) << "\n";
  }

  bool json_;
  std::map<std::string, uint64_t> kinds_;
  ordered_json bad_ = ordered_json::array();
};

ExitCode ExitCodeFor(const PassResult& result) {
  if (result.end == PassResult::End::kInterrupted) return kInterrupted;
  if (result.end == PassResult::End::kFailed) return kFailed;
  return result.stats.bad_count > 0 ? kTooManyBadExamples : kOk;
}

}  // namespace

VerifyCommand::VerifyCommand(CLI::App& app)
    : command_(app.add_subcommand("verify", kDescription)), pass_(*command_) {
  command_->footer(kFooter);
  command_->add_flag("--no-decode", no_decode_, "Read the records, whatever they hold.");
  command_->add_flag("--json", json_, "One JSON object at the end, instead of lines.")
      ->group("Output");
}

ExitCode VerifyCommand::Run() {
  Findings findings(json_);
  const PassResult result = pass_.Run(
      no_decode_ ? SourcePass::Depth::kRead : SourcePass::Depth::kDecode,
      {.look = [](const Example&) {}, .on_bad = [&](const BadExample& bad) { findings.Add(bad); }});
  findings.Print(result);
  if (result.error) std::cerr << "echopipe: " << Printable(result.error->what()) << "\n";
  return ExitCodeFor(result);
}

}  // namespace echopipe::cli
