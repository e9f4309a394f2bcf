#include <algorithm>
#include <cmath>
#include <cstdio>

#include <echopipe/pipeline/graph/verdict.h>

namespace echopipe::internal {
namespace {

// Uses of an item, over all echo points, beyond which none are advised: an echo can be worth less
// than a fresh example, and how much less only training tells.
constexpr double kMostUses = 8;

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

std::string Format(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string Milliseconds(double seconds) { return Format("%.3g ms", seconds * 1e3); }

// With at most one decimal: what a factor measured here is good for.
double Rounded(double factor) { return std::round(factor * 10) / 10; }

std::string Factor(double factor) { return Format("%.10g", factor); }

// The stage that takes most of the time of its kind.
std::string SlowestPart(const std::vector<StageStats>& stages, const StepTime& step) {
  if (step.read >= step.longest()) return "read";
  const auto slowest = std::max_element(
      stages.begin() + 1, stages.end() - 1,
      [](const StageStats& a, const StageStats& b) { return a.busy_s < b.busy_s; });
  return slowest->name;
}

// More uses of each item at one place.
struct Change {
  size_t place = 0;                       // the last stage in front of it
  const EchoPointStats* point = nullptr;  // raised; null: a new one
  double room = 1;                        // times as many uses, as far as time alone goes
  double times = 1;                       // as advised
  double step_s = 0;                      // then
};

class Advisor {
 public:
  Advisor(const PipelineStats& stats, const std::vector<size_t>& echo_after)
      : stages_(stats.stages), uses_(stages_.size(), 1) {
    for (size_t i = 0; i < stats.echo_points.size(); ++i) {
      const size_t behind = i < echo_after.size() ? echo_after[i] : stages_.size() - 1;
      places_.push_back(behind - 1);
      for (size_t j = 0; j < behind; ++j) uses_[j] *= stats.echo_points[i].factor_effective;
      // While its buffer fills, a point has not come to its factor yet.
      most_uses_ /= std::max(stats.echo_points[i].factor, stats.echo_points[i].factor_effective);
    }
    now_ = StepTimeOf(stages_, uses_);
    AddChanges(stats.echo_points, echo_after.size());
  }

  const StepTime& now() const { return now_; }

  /// Of the changes whose gain is within a twentieth of the best: a point of examples that is there
  /// already, else a new one as early as can be (the most randomness behind it), else a point of
  /// batches.
  const Change& Best() const {
    const double best = std::ranges::min_element(changes_, {}, &Change::step_s)->step_s;
    return *std::ranges::find_if(changes_,
                                 [&](const Change& c) { return c.step_s <= best * 1.05; });
  }

 private:
  void AddChanges(const std::vector<EchoPointStats>& points, size_t of_examples) {
    for (size_t i = 0; i < std::min(points.size(), of_examples); ++i) Add(places_[i], &points[i]);
    for (size_t place = 0; place + 1 < stages_.size(); ++place) {
      if (std::ranges::find(places_, place) == places_.end()) Add(place, nullptr);
    }
    for (size_t i = of_examples; i < points.size(); ++i) Add(places_[i], &points[i]);
  }

  void Add(size_t place, const EchoPointStats* point) {
    const double room = now_.longest() / std::max(StepWith(place, 1e9), 1e-9);
    const double times = std::max(1.0, std::min(room, most_uses_));
    changes_.push_back({place, point, room, times, StepWith(place, times)});
  }

  double StepWith(size_t place, double times) const {
    std::vector<double> uses = uses_;
    for (size_t i = 0; i <= place; ++i) uses[i] *= times;
    return StepTimeOf(stages_, uses).longest();
  }

  const std::vector<StageStats>& stages_;
  double most_uses_ = kMostUses;  // times as many as now
  std::vector<double> uses_;      // examples leaving for each item that passes a stage
  std::vector<size_t> places_;    // of the echo points
  StepTime now_;
  std::vector<Change> changes_;
};

std::string Describe(const Change& change, const std::vector<StageStats>& stages) {
  if (change.point != nullptr) {
    const double factor = change.point->factor;
    return "raise the echo " + change.point->position + " from " + Factor(factor) + " to " +
           Factor(Rounded(factor * change.times));
  }
  const std::string first = stages.size() > 2 ? stages[1].name : "batch";
  return "add an echo of factor " + Factor(Rounded(change.times)) + " " +
         (change.place == 0 ? "before " + first : "after " + stages[change.place].name);
}

std::string Advice(const Change& change, double gain, const std::vector<StageStats>& stages) {
  const bool capped = change.room > 1.05 * change.times;
  const std::string most =
      "more than " + Factor(kMostUses) + " uses of an item are not advised unmeasured";
  if (gain < 1.05) {
    return "; " + (capped ? most : "echoing elsewhere or more would bring little") + ".";
  }
  const double from = change.point == nullptr ? 1 : change.point->factor;
  return ": " + Describe(change, stages) + " for about " + Format("%.1f", gain) +
         " times the examples per second" +
         (capped ? " (time alone would allow " + Factor(Rounded(from * change.room)) + "; " + most +
                       ")"
                 : "") +
         ".";
}

// The factor of each part of the history that has enough draws to tell.
std::vector<double> FactorsOver(const AdaptiveStats& adaptive) {
  constexpr uint64_t kFewDraws = 20;
  std::vector<double> factors;
  for (const AdaptiveStats::Span& span : adaptive.history) {
    if (span.fresh + span.echoes < kFewDraws) continue;
    factors.push_back(static_cast<double>(span.fresh + span.echoes) /
                      static_cast<double>(std::max(span.fresh, uint64_t{1})));
  }
  return factors;
}

// Whether a fixed factor, or none, would have done.
std::string FixedAdvice(const AdaptiveStats& adaptive, double factor) {
  std::vector<double> factors = FactorsOver(adaptive);
  if (factors.size() < 4) return "the run was too short to tell whether a fixed factor would do";
  std::ranges::sort(factors);
  const double low = factors[factors.size() / 10];
  const double high = factors[factors.size() - 1 - factors.size() / 10];
  if (high <= 1.02 || Rounded(factor) <= 1) return "but for short stops, no echo at all would do";
  if (high <= 1.25 * low)
    return "a fixed factor of " + Factor(Rounded(factor)) + " would do as well";
  return "over time it was between " + Factor(Rounded(low)) + " and " + Factor(Rounded(high)) +
         ": no fixed factor would do as well";
}

std::string AdaptiveSentence(const PipelineStats& stats) {
  const AdaptiveStats& adaptive = *stats.adaptive;
  const auto point = std::ranges::find(stats.echo_points, true, &EchoPointStats::adaptive);
  const std::string name = "the adaptive echo " + point->position;
  if (adaptive.echoes == 0) {
    return name + " repeated nothing: what is in front of it keeps up, and no echo would do";
  }
  return name + " made " + Format("%.0f%%", adaptive.echo_share * 100) +
         " of its draws echoes, as a fixed factor of " + Format("%.3g", point->factor_effective) +
         " would, and bridged " + Format("%.3g s", adaptive.longest_bridged_s) +
         " at the longest; " + FixedAdvice(adaptive, point->factor_effective);
}

// What it could do, an adaptive echo has done: to raise its factor by hand is not advised.
std::string AdaptiveVerdict(const PipelineStats& stats, const StepTime& now,
                            const std::string& waits) {
  const std::string echo = AdaptiveSentence(stats);
  if (stats.stall_share < 0.05) {
    return "The consumer sets the pace (" + Milliseconds(now.consumer) + " per example; it waits " +
           waits + " of the time): " + echo + ".";
  }
  return SlowestPart(stats.stages, now) + " holds the consumer up, which waits " + waits +
         " of the time (" + Milliseconds(now.consumer) + " per example of its own): " + echo +
         ". A larger shuffle buffer or max_factor lets it bridge more.";
}

}  // namespace

std::string Verdict(const PipelineStats& stats, const std::vector<size_t>& echo_after) {
  if (stats.batches < 2 || stats.examples_per_s <= 0) {
    return "The run was too short to tell what holds the pipeline up.";
  }
  const Advisor advisor(stats, echo_after);
  const StepTime& now = advisor.now();
  const std::string waits = Format("%.0f%%", stats.stall_share * 100);
  if (stats.adaptive) return AdaptiveVerdict(stats, now, waits);
  if (now.consumer >= 0.95 * now.longest()) {
    return "The consumer sets the pace (" + Milliseconds(now.consumer) + " per example; it waits " +
           waits + " of the time): echoing more would bring nothing.";
  }
  const Change& change = advisor.Best();
  return SlowestPart(stats.stages, now) + " holds the consumer up, which waits " + waits +
         " of the time (" + Milliseconds(now.longest()) + " per example against the consumer's " +
         Milliseconds(now.consumer) + ")" +
         Advice(change, now.longest() / std::max(change.step_s, 1e-9), stats.stages);
}

std::string NetworkVerdict(const PipelineStats& stats) {
  const NetworkStats& network = stats.network;
  if (network.requests == 0) return "";
  std::string text = "The network gave " + Format("%.3g MB/s", network.bytes_per_s / 1e6) +
                     " by up to " + std::to_string(network.peak_requests_in_flight) +
                     (network.peak_requests_in_flight == 1 ? " request" : " requests") + " at once";
  if (network.retries > 0) {
    text += "; " + std::to_string(network.retries) + " of " + std::to_string(network.requests) +
            " were sent again, " + std::to_string(network.resumed) +
            " of these for the rest of a broken answer";
  }
  if (network.throttled_s > 0) {
    text += "; servers asked for less for " + Format("%.3g s", network.throttled_s);
  }
  return text + ".";
}

}  // namespace echopipe::internal
