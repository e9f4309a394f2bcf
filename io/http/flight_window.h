#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <echopipe/base/clock.h>

namespace echopipe::internal {

/// The largest of the values of the last `span` to twice the `span`.
class RecentLargest {
 public:
  explicit RecentLargest(Clock::Duration span) : span_(span) {}

  void Add(Clock::Time now, double value);
  /// 0 if there has been none.
  double value() const { return std::max(current_, before_); }

 private:
  Clock::Duration span_;
  Clock::Time begin_;  // of the current bucket
  double current_ = 0;
  double before_ = 0;
};

/// How many requests and bytes one server may owe us at a time.
///
/// Requests  Additive increase, multiplicative decrease: the limit begins at 8; while it is used to
///           the full, each success raises it by one up to the threshold, beyond that by one for
///           as many successes as the limit is. Being throttled (429, 503, a timeout) halves it, at
///           most once for all requests that were under way by then, and puts the threshold to 9/10
///           of what it was; halved again before anything came back it keeps the threshold, so
///           that after a burst of refusals it is back over 9/10 within `most_requests` successes.
/// Pause     Retry-After holds back all requests until then.
/// Bytes     bandwidth x (2 x delay + 0.01 s), at most most_bytes and at least least_bytes, which
///           rises with the delay, to twice that at 20 ms: connections that have just begun are
///           slow there. The bandwidth is the best rate of a twentieth of a second in the last
///           seconds; the delay is the shortest time to a first byte so far (later ones hold the
///           time spent in our own queue). So a link stays full, and little waits in queues in
///           front of it, where connections that have just begun would starve. One request may
///           always be under way.
/// Sources   Chiu and Jain, "Analysis of the increase and decrease algorithms" (1989); the
///           product as BBR's (Cardwell et al., 2016).
/// Threads   One caller at a time; the times given never go back.
class FlightWindow {
 public:
  struct Options {
    int most_requests = 64;                      ///< >= 1
    uint64_t least_bytes = uint64_t{512} << 10;  ///< >= 1
    uint64_t most_bytes = uint64_t{128} << 20;   ///< >= least_bytes
  };
  /// What to tell of a request when it ends.
  struct Flight {
    uint64_t number = 0;
    Clock::Time begin = {};
    uint64_t expected = 0;  ///< bytes counted for it that have not come
    bool has_bytes = false;
  };

  explicit FlightWindow(const Options& options);

  /// Another request may start.
  bool HasRoom(Clock::Time now) const;
  /// Not before this time.
  Clock::Time paused_until() const { return paused_until_; }

  Flight Start(Clock::Time now, uint64_t bytes);
  /// The answer will have so many bytes instead.
  void Expect(Flight& flight, uint64_t bytes);
  void OnBytes(Clock::Time now, Flight& flight, uint64_t bytes);
  void OnSuccess(const Flight& flight);
  /// It failed in a way that says nothing of how much the server can take.
  void OnFailure(const Flight& flight);
  /// The server could not take as much.
  void OnThrottled(const Flight& flight);
  void PauseUntil(Clock::Time time);

  double limit() const { return limit_; }
  int requests() const { return requests_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t most_bytes_now() const;
  /// Bytes per second; 0 before the first success.
  double bandwidth() const { return bandwidth_.value(); }

 private:
  void End(const Flight& flight);

  Options options_;
  double limit_;
  double threshold_;
  bool succeeded_since_ = true;  // the last decrease
  uint64_t last_decrease_ = 0;   // flights from this number on began behind it
  Clock::Time paused_until_ = Clock::Time::min();
  int requests_ = 0;
  uint64_t bytes_ = 0;
  uint64_t started_ = 0;
  Clock::Time sample_begin_;
  uint64_t sampled_ = 0;  // bytes since then
  RecentLargest bandwidth_;
  std::optional<double> delay_s_;
};

}  // namespace echopipe::internal
