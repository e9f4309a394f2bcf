#include <algorithm>
#include <chrono>
#include <utility>

#include <echopipe/io/http/flight_window.h>

namespace echopipe::internal {
namespace {

using std::chrono::seconds;

constexpr double kFirstLimit = 8;
constexpr double kQueueSeconds = 0.01;
constexpr double kLong = 0.02;  // a delay, in seconds
constexpr Clock::Duration kSample = std::chrono::milliseconds(50);

double SecondsOf(Clock::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void RecentLargest::Add(Clock::Time now, double value) {
  if (now - begin_ >= span_) {
    before_ = now - begin_ < 2 * span_ ? current_ : 0;
    current_ = 0;
    begin_ = now;
  }
  current_ = std::max(current_, value);
}

FlightWindow::FlightWindow(const Options& options)
    : options_(options),
      limit_(std::min<double>(kFirstLimit, options.most_requests)),
      threshold_(options.most_requests),
      bandwidth_(seconds(5)) {}

bool FlightWindow::HasRoom(Clock::Time now) const {
  if (now < paused_until_) return false;
  if (requests_ == 0) return true;
  return requests_ + 1 <= limit_ && bytes_ < most_bytes_now();
}

uint64_t FlightWindow::most_bytes_now() const {
  const double delay = delay_s_.value_or(0);
  const double least =
      static_cast<double>(options_.least_bytes) * (1 + std::min(delay / kLong, 1.0));
  const double wanted = bandwidth_.value() * (2 * delay + kQueueSeconds);
  return std::min(options_.most_bytes, static_cast<uint64_t>(std::max(least, wanted)));
}

FlightWindow::Flight FlightWindow::Start(Clock::Time now, uint64_t bytes) {
  ++requests_;
  bytes_ += bytes;
  return {.number = ++started_, .begin = now, .expected = bytes};
}

void FlightWindow::Expect(Flight& flight, uint64_t bytes) {
  bytes_ = bytes_ - flight.expected + bytes;
  flight.expected = bytes;
}

void FlightWindow::OnBytes(Clock::Time now, Flight& flight, uint64_t bytes) {
  if (!std::exchange(flight.has_bytes, true)) {
    const double delay = SecondsOf(now - flight.begin);
    delay_s_ = std::min(delay_s_.value_or(delay), delay);
  }
  const uint64_t known = std::min(bytes, flight.expected);
  flight.expected -= known;
  bytes_ -= known;
  sampled_ += bytes;
  const Clock::Duration sample = now - sample_begin_;
  if (sample < kSample) return;
  bandwidth_.Add(now, static_cast<double>(sampled_) / SecondsOf(sample));
  sample_begin_ = now;
  sampled_ = 0;
}

void FlightWindow::End(const Flight& flight) {
  --requests_;
  bytes_ -= flight.expected;
}

void FlightWindow::OnSuccess(const Flight& flight) {
  const bool was_full = requests_ + 1 > limit_;
  End(flight);
  if (flight.number <= last_decrease_) return;  // of before: it says nothing of the limit now
  succeeded_since_ = true;
  if (!was_full) return;
  limit_ += limit_ < threshold_ ? 1 : 1 / limit_;
  limit_ = std::min<double>(limit_, options_.most_requests);
}

void FlightWindow::OnFailure(const Flight& flight) { End(flight); }

void FlightWindow::OnThrottled(const Flight& flight) {
  End(flight);
  if (flight.number <= last_decrease_) return;
  last_decrease_ = started_;
  if (std::exchange(succeeded_since_, false)) threshold_ = std::max(1.0, 0.9 * limit_);
  limit_ = std::max(1.0, limit_ / 2);
}

void FlightWindow::PauseUntil(Clock::Time time) { paused_until_ = std::max(paused_until_, time); }

}  // namespace echopipe::internal
