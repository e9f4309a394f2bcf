#include <algorithm>
#include <chrono>

#include <echopipe/io/http/retries.h>

namespace echopipe::internal {
namespace {

// 2^30 times any sensible first wait is beyond the longest.
constexpr int kMostDoublings = 30;

Clock::Duration LongestWait(const RetryOptions& options, int failures) {
  const double doubled = static_cast<double>(options.first_wait.count()) *
                         static_cast<double>(1 << std::min(failures, kMostDoublings));
  const double longest = static_cast<double>(options.longest_wait.count());
  return Clock::Duration(static_cast<int64_t>(std::min(doubled, longest)));
}

}  // namespace

void Retries::OnProgress() { failures_ = 0; }

std::optional<Clock::Time> Retries::OnFailure(const RetryOptions& options, Clock::Time began,
                                              Clock::Time now,
                                              std::optional<Clock::Duration> retry_after,
                                              RandomStream& random) {
  if (failures_ == 0) {
    first_failure_ = now;
    budget_begin_ = began;
  }
  const Clock::Duration longest = LongestWait(options, failures_++);
  const Clock::Time end = budget_begin_ + options.budget;
  if (now >= end) return std::nullopt;
  if (retry_after && *retry_after > end - now) return std::nullopt;
  const auto jittered = Clock::Duration(
      static_cast<int64_t>(random.Uniform() * static_cast<double>(longest.count())));
  return std::min(now + std::max(jittered, retry_after.value_or(Clock::Duration(0))), end);
}

}  // namespace echopipe::internal
