#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <list>
#include <stop_token>
#include <system_error>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/cli/demo_command.h>
#include <echopipe/cli/interrupt.h>
#include <echopipe/cli/job.h>
#include <echopipe/cli/numbers.h>
#include <echopipe/cli/report.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostImages = 1000;
constexpr const char* kSpec = R"(
    source { shuffle { full {} } epochs: 3 }
    stage { decode {} }
    stage { echo {} }
    stage { random_resized_crop { height: 224 width: 224 } }
    stage { random_flip {} }
    stage { normalize {} }
    stage { batch { size: 32 } }
)";
constexpr int kEchoStage = 1;
// R is 4: the consumer could take 400 photos a second, and the link brings 100.
constexpr double kFactor = 4;
constexpr uint64_t kPhotosPerSecond = 100;
constexpr std::chrono::milliseconds kConsumerTime(80);

struct Photos {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

// The first files of a folder; as the source, it passes over hidden ones.
Photos Measure(const std::string& folder) {
  std::error_code error;
  Photos photos;
  for (fs::recursive_directory_iterator it(folder, error), end;
       !error && it != end && photos.count < kMostImages; it.increment(error)) {
    const bool hidden = it->path().filename().native().starts_with('.');
    if (hidden || !it->is_regular_file(error)) continue;
    photos.bytes += it->file_size(error);
    ++photos.count;
  }
  if (error) throw Error({.code = ErrorCode::kIo, .what = error.message(), .where = folder});
  if (photos.bytes == 0) {
    throw Error({.code = ErrorCode::kEmpty,
                 .what = "no image here; one subfolder for each class is wanted",
                 .where = folder});
  }
  return photos;
}

// Without a rate of its own the link is a real one.
Job JobFor(const std::string& source, double factor, uint64_t bytes_per_second) {
  proto::PipelineSpec spec = PipelineSpec::FromText(kSpec, "demo").message();
  spec.mutable_source(0)->add_uri(source);
  spec.mutable_source(0)->set_take(kMostImages);
  spec.mutable_stage(kEchoStage)->mutable_echo()->set_factor(factor);
  return {.spec = PipelineSpec(spec),
          .link = {.bytes_per_second = bytes_per_second},
          .consumer_time = kConsumerTime};
}

// As measured: a machine that is slow for other reasons than the link has another story.
std::string Conclusion(const PipelineStats& without, const PipelineStats& with) {
  std::string gain = "The runs were too short to compare.";
  if (without.examples_per_s > 0 && with.examples_per_s > 0) {
    gain = "Using each decoded photo " + Decimal(kFactor, 0) + " times gave " +
           Decimal(with.examples_per_s / without.examples_per_s, 1) +
           " times the examples per second, at R = " + Decimal(with.echo_points.at(0).r, 1) +
           " (echoing is free up to e = R).";
  }
  return gain + "\nWithout echo: " + without.verdict + "\nWith echo: " + with.verdict;
}

}  // namespace

DemoCommand::DemoCommand(CLI::App& app)
    : command_(app.add_subcommand(
          "demo", "Runs one pipeline without and with echo over slowed storage, in a minute.")) {
  command_->add_option("DIR", folder_, "Photos, one subfolder for each class.")->required();
  command_
      ->add_option("--source", uri_,
                   "Read DIR from this server instead, over whatever link leads to it "
                   "(scripts/demo --network).")
      ->type_name("URI");
}

ExitCode DemoCommand::Run() {
  const Photos photos = Measure(folder_);
  const uint64_t rate = kPhotosPerSecond * photos.bytes / photos.count;
  std::cout << "Three epochs of " << WithCommas(photos.count) << " photos ";
  if (uri_.empty()) {
    std::cout << "over a link of " << Bytes(rate) << "/s (" << kPhotosPerSecond
              << " photos a second),\n";
  } else {
    std::cout << "from " << uri_ << ",\n";
  }
  std::cout << "for a consumer that takes " << kConsumerTime.count()
            << " ms for each batch of 32 (400 a second).\n"
            << std::flush;

  const Interrupt interrupt;
  Console console(false);
  std::list<JobResult> results;
  std::vector<Column> columns;
  for (const double factor : {1.0, kFactor}) {
    const std::string title = "e = " + Decimal(factor, 0);
    console.Line("running with " + title + (factor == 1 ? " (no echo)" : " (echo after decode)"));
    const Job job = uri_.empty() ? JobFor(folder_, factor, rate) : JobFor(uri_, factor, 0);
    results.push_back(RunJob(job, console, interrupt.token()));
    if (results.back().error) throw *results.back().error;
    columns.emplace_back(title, &results.back());
    if (results.back().end == JobResult::End::kInterrupted) break;
  }
  std::cout << "\n" << Table(columns);
  if (results.back().end == JobResult::End::kInterrupted) return kInterrupted;
  std::cout << "\n" << Conclusion(results.front().stats, results.back().stats) << "\n";
  return kOk;
}

}  // namespace echopipe::cli
