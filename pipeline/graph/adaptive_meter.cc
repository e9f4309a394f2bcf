#include <algorithm>

#include <echopipe/pipeline/graph/adaptive_meter.h>
#include <echopipe/pipeline/graph/meter.h>

namespace echopipe::internal {
namespace {

constexpr size_t kMostSpans = 64;

}  // namespace

void AdaptiveMeter::Add(Decision decision, Clock::Time now) {
  MutexLock lock(mutex_);
  AdaptiveStats::Span& span = SpanOf(now);
  if (decision == Decision::kFresh) {
    ++stats_.fresh;
    ++span.fresh;
    last_fresh_ = now;
    return;
  }
  ++stats_.echoes;
  ++span.echoes;
  // A restored run may begin with an echo.
  const Clock::Time since = stats_.fresh > 0 ? last_fresh_ : opened_;
  stats_.longest_bridged_s = std::max(stats_.longest_bridged_s, Seconds(now - since));
}

void AdaptiveMeter::NotePool(uint64_t residents, uint64_t uses_left) {
  MutexLock lock(mutex_);
  stats_.residents = residents;
  stats_.uses_left = uses_left;
}

AdaptiveStats::Span& AdaptiveMeter::SpanOf(Clock::Time now) {
  auto index = static_cast<size_t>((now - opened_) / span_);
  for (; index >= kMostSpans; index /= 2) MergeSpans();
  if (index >= stats_.history.size()) stats_.history.resize(index + 1);
  return stats_.history[index];
}

void AdaptiveMeter::MergeSpans() {
  std::vector<AdaptiveStats::Span>& spans = stats_.history;
  for (size_t i = 0; i < spans.size(); ++i) {
    const AdaptiveStats::Span from = spans[i];
    if (i % 2 == 0) spans[i / 2] = {};
    spans[i / 2].fresh += from.fresh;
    spans[i / 2].echoes += from.echoes;
  }
  spans.resize((spans.size() + 1) / 2);
  span_ *= 2;
}

AdaptiveStats AdaptiveMeter::Stats() const {
  MutexLock lock(mutex_);
  AdaptiveStats stats = stats_;
  stats.span_s = Seconds(span_);
  const auto draws = static_cast<double>(stats.fresh + stats.echoes);
  if (draws > 0) stats.echo_share = static_cast<double>(stats.echoes) / draws;
  return stats;
}

}  // namespace echopipe::internal
