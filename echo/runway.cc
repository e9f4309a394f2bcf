#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/echo/runway.h>

namespace echopipe {
namespace {

void Require(bool condition, const char* where, const std::string& got, const char* wanted) {
  if (condition) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "out of range",
               .where = where,
               .got = got,
               .wanted = wanted});
}

double Seconds(Clock::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void RunwayOptions::Validate() const {
  Require(window >= 1, "window", std::to_string(window), "1 at least");
  Require(batch >= 1 && batch <= window, "batch.size", std::to_string(batch),
          "from 1 to the window");
  Require(!low_water || low_water->count() >= 0, "echo.adaptive.low_water_ms",
          std::to_string(low_water ? Seconds(*low_water) * 1e3 : 0), "0 at least");
}

Runway::Runway(const RunwayOptions& options) : options_(options), draws_per_batch_(options.batch) {
  options_.Validate();
  SetLowWater();
}

void Runway::NoteDraws(uint64_t draws, uint64_t ahead) {
  draws_ = draws;
  ahead_ = ahead;
  armed_ = armed_ || ahead >= options_.window;
}

void Runway::NoteConsumer(const Consumer& consumer) {
  const uint64_t batches = consumer.batches - consumer_.batches;
  if (batches > 0) {
    const uint64_t taken = draws_ - ahead_;
    steps_[step_count_++ % kSteps] = {.batches = batches,
                                      .draws = taken - taken_at_step_,
                                      .seconds_per_batch = Seconds(consumer.busy - consumer_.busy) /
                                                           static_cast<double>(batches)};
    taken_at_step_ = taken;
    EstimateBatch();
    SetLowWater();
  }
  consumer_ = consumer;
  armed_ = armed_ || (step_count_ > 0 && Seconds(consumer.waited) > WindowSeconds());
}

// Precondition: there was a step.
void Runway::EstimateBatch() {
  const size_t count = std::min(step_count_, kSteps);
  std::array<double, kSteps> seconds{};
  uint64_t batches = 0;
  uint64_t draws = 0;
  for (size_t i = 0; i < count; ++i) {
    seconds[i] = steps_[i].seconds_per_batch;
    batches += steps_[i].batches;
    draws += steps_[i].draws;
  }
  const size_t median = (count - 1) / 2;  // of two the first: a first step is often slow
  std::nth_element(seconds.data(), seconds.data() + median, seconds.data() + count);
  seconds_per_batch_ = seconds[median];
  // The draws may be those of one batch more, which is not to count as tombstones.
  draws_per_batch_ = std::max(options_.batch, (draws - std::min(draws, options_.batch)) / batches);
}

void Runway::SetLowWater() {
  const auto batch = static_cast<double>(draws_per_batch_);
  double wanted = 1.5 * batch;
  if (options_.low_water && step_count_ > 0) {
    constexpr double kLeast = 1e-9;  // a consumer that takes no time
    wanted = Seconds(*options_.low_water) / std::max(seconds_per_batch_, kLeast) * batch;
  }
  const double most = static_cast<double>(options_.window) - batch;
  low_water_ = static_cast<uint64_t>(std::ceil(std::max(std::min(wanted, most), batch)));
}

double Runway::WindowSeconds() const {
  return static_cast<double>(options_.window) / static_cast<double>(draws_per_batch_) *
         seconds_per_batch_;
}

std::optional<Clock::Duration> Runway::TimeToArm() const {
  if (armed_ || step_count_ == 0) return std::nullopt;
  const double seconds = std::max(WindowSeconds() - Seconds(consumer_.waited), 0.0);
  // Over it by as much as rounding may take away.
  return std::chrono::ceil<Clock::Duration>(std::chrono::duration<double>(seconds * (1 + 1e-9))) +
         std::chrono::microseconds(1);
}

}  // namespace echopipe
