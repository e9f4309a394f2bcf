#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include <echopipe/echo/decision_log.h>
#include <echopipe/echo/decisions.h>
#include <echopipe/echo/runway.h>
#include <echopipe/pipeline/graph/adaptive_meter.h>
#include <echopipe/pipeline/graph/decision_log_file.h>
#include <echopipe/pipeline/graph/echo_point_joint.h>
#include <echopipe/pipeline/graph/epoch_adaptive.h>
#include <echopipe/pipeline/graph/outlet.h>

namespace echopipe::internal {

/// An adaptive echo point: fresh items go on as soon as there is a credit; an echo goes where
/// there is a credit, no item, and too little in front of the consumer.
///
/// What it has decided goes into the shadow's log, and the log file if there is one, before the
/// draw goes on. In a replay a log decides, and timing nothing.
class AdaptiveJoint final : public EchoPointJoint {
 public:
  /// What it goes on from: residents in the order of the state, null: they come later.
  struct Start {
    EpochAdaptiveState state;
    std::vector<std::shared_ptr<const Item>> residents = {};
  };
  struct Options {
    RunwayOptions runway;
    uint64_t epochs = 1;  ///< of its input; 0: there is no last one, or it is not known
    std::optional<DecisionReader> replay = {};  ///< decides, if it is there
  };
  /// All of it must outlive the joint, but for `file`, which may be null.
  struct Surroundings {
    const Outlet* outlet = nullptr;
    Log<Decision>* shadow = nullptr;
    DecisionLogFile* file = nullptr;
    /// Sends it a wake then.
    std::function<void(Clock::Time)> wake_at = nullptr;
  };

  AdaptiveJoint(const EchoPoint& point, Position position, std::optional<Start> start,
                Windows windows, Options options, Surroundings surroundings, const Clock& clock);

  /// The echo point whose draws the consumer takes: this one, unless it is told of a later one.
  void set_last(const EchoPointJoint& last) { last_ = &last; }

  uint64_t residents() const override { return echo_.order().residents(); }

  // From any thread.
  /// A consumer that begins to wait is to wake it.
  bool counts_waits() const { return !armed_.load(std::memory_order_relaxed); }
  AdaptiveStats adaptive_stats() const { return meter_.Stats(); }

 private:
  void Advance(Outbox& outbox) override;
  void TakeResident(EchoOrder::Slot slot, std::shared_ptr<Item> item, Outbox& outbox) override;
  void Observe(const Outlet::Consumer& consumer);
  void NoteDraws() { runway_.NoteDraws(last_->draws(), last_->window().in_flight()); }
  void Follow(Outbox& outbox);
  void DrawFresh(Outbox& outbox);
  void DrawEcho(Outbox& outbox);
  void Log(Decision decision);
  void Give(EpochDrawn<Item> drawn, Outbox& outbox);
  void End(Outbox& outbox, std::shared_ptr<const Error> error);

  Options options_;
  Surroundings surroundings_;
  const Clock& clock_;
  EpochAdaptive<Item> echo_;
  Runway runway_;
  std::unique_ptr<Decisions> decisions_;
  const EchoPointJoint* last_ = this;
  std::unordered_set<EchoOrder::Slot> missing_;  // residents that are still to be read again
  std::optional<EpochDrawn<Item>> late_;         // drawn, but one of these
  std::optional<Clock::Time> wake_at_;
  bool last_epoch_ended_ = false;
  bool ended_ = false;
  std::atomic<bool> armed_{false};
  AdaptiveMeter meter_;
};

}  // namespace echopipe::internal
