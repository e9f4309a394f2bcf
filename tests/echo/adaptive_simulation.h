#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/base/random.h>
#include <echopipe/echo/adaptive_buffer.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/echo/decisions.h>
#include <echopipe/echo/runway.h>

namespace echopipe::testing {

/// A pipeline with an adaptive echo point, of parts that take some time:
///
///     upstream -> [window] -> echo point -> [window: work, in parallel] -> batch -> consumer
struct Scenario {
  /// Upstream stands still for so long before it makes this item.
  struct Stop {
    uint64_t item = 0;
    Clock::Duration length{};
  };

  AdaptiveOptions options = {.max_factor = 8, .shuffle_buffer = 256, .spacing = 64, .seed = 1};
  uint64_t batch = 64;
  uint64_t window = 256;
  uint64_t upstream_window = 64;
  std::optional<Clock::Duration> low_water = std::nullopt;
  uint64_t items = 20'000;
  Clock::Duration example_time = std::chrono::milliseconds(1);  ///< the consumer's
  double r = 1;                ///< upstream's time for an item, over example_time
  double jitter = 0;           ///< of each item's time: up to so much of it more or less, uniformly
  double consumer_jitter = 0;  ///< the same of each batch's
  std::vector<Stop> stops = {};  ///< by item
  Clock::Duration work{};        ///< on each draw
  uint64_t threads = 4;          ///< that work
  double filtered = 0;           ///< draws that become tombstones there
  uint64_t seed = 1;             ///< of all that is random in this
};

/// What came of it.
struct Outcome {
  struct Draw {
    uint64_t item = 0;
    uint32_t use = 0;
    Clock::Duration at{};
  };
  struct Batch {
    Clock::Duration taken{};   ///< by the consumer, at this time
    Clock::Duration waited{};  ///< inside Next(), for it
    uint64_t examples = 0;
  };

  std::vector<Draw> draws;
  std::vector<Batch> batches;

  /// Of the draws from one on.
  uint64_t Fresh(size_t from = 0) const {
    return static_cast<uint64_t>(std::count_if(draws.begin() + static_cast<std::ptrdiff_t>(from),
                                               draws.end(),
                                               [](const Draw& draw) { return draw.use == 0; }));
  }
  /// Of the batches taken from then on.
  Clock::Duration Waited(Clock::Duration from, Clock::Duration to = Clock::Duration::max()) const {
    Clock::Duration waited{};
    for (const Batch& batch : batches) {
      if (batch.taken >= from && batch.taken <= to) waited += batch.waited;
    }
    return waited;
  }
  Clock::Duration End() const { return batches.back().taken; }
};

/// Plays a scenario on a clock of its own.
class AdaptiveSimulation {
 public:
  explicit AdaptiveSimulation(const Scenario& scenario)
      : scenario_(scenario),
        random_({.low = scenario.seed, .high = 0xada}),
        runway_(
            {.window = scenario.window, .batch = scenario.batch, .low_water = scenario.low_water}),
        buffer_(scenario.options),
        decisions_(std::make_unique<LiveDecisions>(runway_)),
        thread_free_(scenario.threads) {}

  /// Goes on from a state of the echo point; upstream, from the first item not in it.
  void GoOnFrom(const AdaptiveState& state) {
    std::vector<std::shared_ptr<const uint64_t>> items;
    for (const auto* residents : {&state.drawable, &state.blocked}) {
      for (const AdaptiveState::Resident& resident : *residents) {
        items.push_back(std::make_shared<uint64_t>(resident.item));
      }
    }
    buffer_ = AdaptiveBuffer<uint64_t>(scenario_.options, state, std::move(items));
    made_ = state.admitted;
    passed_on_ = state.draws;
  }
  /// Does as these say, and not as the runway does.
  void Follow(std::unique_ptr<Decisions> decisions) { decisions_ = std::move(decisions); }
  /// Writes down what is decided.
  void Record(DecisionLogWriter* log) { log_ = log; }

  /// Until the consumer has been told of the end, or nothing moves any more.
  const Outcome& Run() {
    MakeItem();
    Call();
    Advance();
    while (!events_.empty() && !told_end_) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      Handle(event);
      Advance();
    }
    return outcome_;
  }

  const Outcome& outcome() const { return outcome_; }
  const AdaptiveBuffer<uint64_t>& buffer() const { return buffer_; }
  const Runway& runway() const { return runway_; }
  bool told_end() const { return told_end_; }

 private:
  struct Event {
    enum Kind { kItemMade, kWorked, kCall, kPatienceEnds };
    Clock::Duration time{};
    uint64_t order = 0;
    Kind kind = kItemMade;
    uint64_t draw = 0;
    bool operator<(const Event& other) const {  // the first is the greatest
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };

  void At(Clock::Duration time, Event::Kind kind, uint64_t draw = 0) {
    events_.push({time, order_++, kind, draw});
  }
  void Handle(const Event& event) {
    if (event.kind == Event::kItemMade) ItemMade();
    if (event.kind == Event::kWorked) Worked(event.draw);
    if (event.kind == Event::kCall) Call();
  }
  Clock::Duration Jittered(double seconds, double jitter) {
    if (jitter > 0) seconds *= random_.Uniform(1 - jitter, 1 + jitter);
    return std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
  }
  double ExampleSeconds() const {
    return std::chrono::duration<double>(scenario_.example_time).count();
  }

  // ---- upstream

  void MakeItem() {
    if (making_ || made_ == scenario_.items || waiting_ == scenario_.upstream_window) return;
    making_ = true;
    Clock::Duration begin = now_;
    for (; next_stop_ < scenario_.stops.size() && scenario_.stops[next_stop_].item <= made_;
         ++next_stop_) {
      begin += scenario_.stops[next_stop_].length;
    }
    At(begin + Jittered(ExampleSeconds() * scenario_.r, scenario_.jitter), Event::kItemMade);
  }
  void ItemMade() {
    making_ = false;
    ++made_;
    ++waiting_;
  }

  // ---- echo point

  void Advance() {
    NoteConsumer();
    while (ahead_ < scenario_.window && !ended_) {
      const Decisions::Step step = decisions_->Next({.fresh_waits = waiting_ > 0,
                                                     .upstream_ended = made_ == scenario_.items,
                                                     .can_echo = buffer_.CanEcho()});
      if (step == Decisions::Step::kWait) break;
      if (step == Decisions::Step::kEnd) {
        ended_ = true;
        PassOn();
      } else {
        Draw(step);
      }
    }
    MakeItem();
    const std::optional<Clock::Duration> patience = runway_.TimeToArm();
    if (calling_since_ && patience) At(now_ + *patience, Event::kPatienceEnds);
  }
  void Draw(Decisions::Step step) {
    const bool echo = step == Decisions::Step::kEcho;
    if (log_ != nullptr) log_->Add(echo ? Decision::kEcho : Decision::kFresh);
    if (!echo) --waiting_;
    const Use<uint64_t> use =
        echo ? buffer_.Echo()
             : buffer_.Admit(std::make_shared<uint64_t>(buffer_.order().admitted()));
    outcome_.draws.push_back({.item = *use.item, .use = use.use, .at = now_});
    ++ahead_;
    NoteDraws();
    BeginWork(use.draw);
  }
  void NoteDraws() { runway_.NoteDraws(outcome_.draws.size(), ahead_); }
  void NoteConsumer() {
    Runway::Consumer consumer = consumer_;
    if (calling_since_ && !outcome_.batches.empty()) consumer.waited += now_ - *calling_since_;
    runway_.NoteConsumer(consumer);
  }

  // ---- work and batch

  // Whichever thread is free first takes the draw.
  void BeginWork(uint64_t draw) {
    worked_.push_back(false);
    if (scenario_.work.count() == 0) return Worked(draw);
    Clock::Duration& free = *std::ranges::min_element(thread_free_);
    free = std::max(free, now_) + scenario_.work;
    At(free, Event::kWorked, draw);
  }
  void Worked(uint64_t draw) {
    worked_[draw - passed_on_] = true;
    PassOn();
  }
  void PassOn() {
    for (; !worked_.empty() && worked_.front(); worked_.pop_front()) {
      ++passed_on_;
      if (scenario_.filtered > 0 && random_.Bernoulli(scenario_.filtered)) {
        --ahead_;
      } else if (++partial_ == scenario_.batch) {
        ready_.push_back(std::exchange(partial_, 0));
      }
    }
    if (ended_ && worked_.empty() && partial_ > 0) ready_.push_back(std::exchange(partial_, 0));
    NoteDraws();
    Give();
  }

  // ---- consumer

  void Call() {
    if (!outcome_.batches.empty()) {
      consumer_.batches = outcome_.batches.size();
      consumer_.busy += now_ - outcome_.batches.back().taken;
    }
    calling_since_ = now_;
    Give();
  }
  void Give() {
    if (!calling_since_) return;
    if (ready_.empty()) {
      told_end_ = ended_ && worked_.empty();
      return;
    }
    const uint64_t examples = ready_.front();
    ready_.pop_front();
    const Clock::Duration waited = now_ - *std::exchange(calling_since_, std::nullopt);
    if (!outcome_.batches.empty()) consumer_.waited += waited;
    outcome_.batches.push_back({.taken = now_, .waited = waited, .examples = examples});
    ahead_ -= examples;
    NoteDraws();
    At(now_ + Jittered(ExampleSeconds() * static_cast<double>(examples), scenario_.consumer_jitter),
       Event::kCall);
  }

  const Scenario scenario_;
  RandomStream random_;
  Runway runway_;
  AdaptiveBuffer<uint64_t> buffer_;
  std::unique_ptr<Decisions> decisions_;
  DecisionLogWriter* log_ = nullptr;
  Outcome outcome_;

  std::priority_queue<Event> events_;
  uint64_t order_ = 0;
  Clock::Duration now_{};

  uint64_t made_ = 0;
  uint64_t waiting_ = 0;
  bool making_ = false;
  size_t next_stop_ = 0;

  uint64_t ahead_ = 0;  // draws, not yet taken
  bool ended_ = false;

  std::vector<Clock::Duration> thread_free_;
  std::deque<bool> worked_;  // from draw passed_on_ on
  uint64_t passed_on_ = 0;
  uint64_t partial_ = 0;
  std::deque<uint64_t> ready_;

  std::optional<Clock::Duration> calling_since_ = std::nullopt;
  Runway::Consumer consumer_;
  bool told_end_ = false;
};

}  // namespace echopipe::testing
