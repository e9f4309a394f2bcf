#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include <echopipe/cli/numbers.h>
#include <echopipe/cli/progress.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

// " of 3", or nothing if that is not known.
std::string EpochsOf(const proto::PipelineSpec& spec) {
  const proto::Source& source = spec.source(0);
  if (spec.steps_per_epoch() > 0 || (source.has_epochs() && source.epochs() == 0)) return "";
  return " of " + std::to_string(source.has_epochs() ? source.epochs() : 1);
}

void CallEvery(std::chrono::milliseconds period, std::stop_token stop, auto call) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    never.wait_for(lock, stop, period, [] { return false; });
    if (!stop.stop_requested()) call();
  }
}

}  // namespace

Progress::Progress(const Pipeline& pipeline, const PipelineSpec& spec, Console& console)
    : pipeline_(pipeline), console_(console), epochs_(EpochsOf(spec.message())) {
  const std::chrono::milliseconds period(console.on_terminal() ? 200 : 5000);
  ticker_ = std::jthread([this, period](const std::stop_token& stop) {
    CallEvery(period, stop, [this] { console_.Status(Text()); });
  });
}

Progress::~Progress() {
  ticker_.request_stop();
  ticker_.join();
  console_.ClearStatus();
}

std::string Progress::Text() const {
  const PipelineStats stats = pipeline_.Stats();
  std::string text = WithCommas(stats.examples) + " examples, ";
  if (stats.examples_per_s > 0) {
    text += Rate(stats.examples_per_s) + " examples/s, stall " + Percent(stats.stall_share) + ", ";
  }
  return text + "epoch " + std::to_string(epoch_ + 1) + epochs_ + ", step " + WithCommas(step_);
}

}  // namespace echopipe::cli
