#include <algorithm>
#include <cmath>
#include <cstdio>

#include <echopipe/pipeline/graph/verdict.h>

namespace echopipe::internal {
namespace {

// Beyond this, repeats cost more freshness than the time is worth (Choi et al. saw gains to 5 or
// so).
constexpr double kMaxAdvised = 8;

// Seconds for each example that leaves, by what limits it.
struct StepTime {
  double read = 0;
  double preprocess = 0;
  double consumer = 0;

  double longest() const { return std::max({read, preprocess, consumer}); }
};

// With uses[i] examples leaving for each item that passes stage i.
StepTime StepTimeOf(const std::vector<StageStats>& stages, const std::vector<double>& uses) {
  StepTime step{.read = stages.front().seconds_per_item / uses.front(),
                .consumer = stages.back().seconds_per_item};
  for (size_t i = 1; i + 1 < stages.size(); ++i) {
    step.preprocess += stages[i].seconds_per_item / uses[i];
  }
  return step;
}

// As StepTimeOf(), for a pipeline whose only echo point has factor e and stands behind stage
// `place`.
double WithEcho(const std::vector<StageStats>& stages, size_t place, double factor) {
  std::vector<double> uses(stages.size(), 1);
  std::fill_n(uses.begin(), place + 1, factor);
  return StepTimeOf(stages, uses).longest();
}

std::string Format(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string Milliseconds(double seconds) { return Format("%.3g ms", seconds * 1e3); }

// The stage that takes most of the time of its kind.
std::string SlowestPart(const std::vector<StageStats>& stages, const StepTime& step) {
  if (step.read >= step.longest()) return "read";
  const auto slowest = std::max_element(
      stages.begin() + 1, stages.end() - 1,
      [](const StageStats& a, const StageStats& b) { return a.busy_s < b.busy_s; });
  return slowest->name;
}

struct Advice {
  size_t place = 0;
  double factor = 1;
  double step_s = 0;
};

// The earliest place (the most randomness after it) whose gain is within a twentieth of the best.
Advice BestEcho(const std::vector<StageStats>& stages) {
  std::vector<Advice> places;
  for (size_t place = 0; place + 1 < stages.size(); ++place) {
    const double down = WithEcho(stages, place, 1e9);
    const double r = WithEcho(stages, place, 1) / std::max(down, 1e-9);
    const double factor = std::clamp(r, 1.0, kMaxAdvised);
    places.push_back({place, factor, WithEcho(stages, place, factor)});
  }
  const double best = std::ranges::min_element(places, {}, &Advice::step_s)->step_s;
  return *std::ranges::find_if(places, [&](const Advice& a) { return a.step_s <= best * 1.05; });
}

}  // namespace

std::string Verdict(const PipelineStats& stats, const std::vector<size_t>& echo_after) {
  const std::vector<StageStats>& stages = stats.stages;
  if (stats.batches < 2) return "Too few batches yet to tell what holds the pipeline up.";

  std::vector<double> uses(stages.size(), 1);
  for (size_t i = 0; i < stats.echo_points.size(); ++i) {
    const size_t end = i < echo_after.size() ? echo_after[i] : stages.size() - 1;
    for (size_t stage = 0; stage < end; ++stage)
      uses[stage] *= stats.echo_points[i].factor_effective;
  }
  const StepTime now = StepTimeOf(stages, uses);
  const std::string waits = Format("%.0f%%", stats.stall_share * 100);
  if (now.consumer >= 0.95 * now.longest()) {
    return "The consumer sets the pace (" + Milliseconds(now.consumer) + " per example; it waits " +
           waits + " of the time): echoing more would bring nothing.";
  }
  const std::string part = SlowestPart(stages, now);
  std::string verdict = part + " holds the consumer up, which waits " + waits + " of the time (" +
                        Milliseconds(now.longest()) + " per example against the consumer's " +
                        Milliseconds(now.consumer) + ")";
  const Advice advice = BestEcho(stages);
  const double gain = now.longest() / std::max(advice.step_s, 1e-9);
  if (gain < 1.05) return verdict + "; echoing elsewhere or more would bring little.";
  const std::string first = stages.size() > 2 ? stages[1].name : "batch";
  const std::string place =
      advice.place == 0 ? "before " + first : "after " + stages[advice.place].name;
  return verdict + ": echoing " + place + " by a factor of " + Format("%.1f", advice.factor) +
         " would bring about " + Format("%.1f", gain) + " times the examples per second.";
}

}  // namespace echopipe::internal
