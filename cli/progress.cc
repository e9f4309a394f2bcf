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

}  // namespace

Progress::Progress(const Pipeline& pipeline, const PipelineSpec& spec, Console& console)
    : pipeline_(pipeline),
      epochs_(EpochsOf(spec.message())),
      ticker_(console, [this] { return Text(); }) {}

std::string Progress::Text() const {
  const PipelineStats stats = pipeline_.Stats();
  std::string text = WithCommas(stats.examples) + " examples, ";
  if (stats.examples_per_s > 0) {
    text += Rate(stats.examples_per_s) + " examples/s, stall " + Percent(stats.stall_share) + ", ";
  }
  return text + "epoch " + std::to_string(epoch_ + 1) + epochs_ + ", step " + WithCommas(step_);
}

}  // namespace echopipe::cli
