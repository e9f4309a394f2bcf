#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/pipeline/graph/epoch_drawn.h>
#include <echopipe/pipeline/graph/plan.h>

namespace echopipe::internal {

/// Where an EpochEcho stands, without its items.
struct EpochEchoState {
  EchoState order;
  /// Draws after which an epoch ends, those that have come, ascending.
  std::vector<uint64_t> epoch_borders = {};
  uint64_t stream_epoch = 0;  ///< of the next draw
};

/// An echo buffer of items that come in epochs: what an echo point does, apart from waiting.
///
/// An epoch of n places becomes one of floor(n e) draws; with drain_each_epoch they are all drawn
/// before the next one begins.
/// Threads: one caller at a time.
template <class T>
class EpochEcho {
 public:
  enum class Step { kAdmit, kDraw, kEnd };
  using Drawn = EpochDrawn<T>;

  explicit EpochEcho(const EchoPoint& point) : point_(point), buffer_(point.options) {}
  /// Goes on from a state. Throws kInvalidArgument if it is impossible.
  EpochEcho(const EchoPoint& point, const EpochEchoState& state,
            std::vector<std::shared_ptr<const T>> items)
      : point_(point),
        buffer_(point.options, state.order, std::move(items)),
        epoch_borders_(state.epoch_borders.begin(), state.epoch_borders.end()),
        stream_epoch_(state.stream_epoch) {
    uint64_t last = state.order.draws;
    for (const uint64_t border : epoch_borders_) {
      if (border > last && border <= point.options.factor.Uses(state.order.admitted)) {
        last = border;
        continue;
      }
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "an epoch's end where none can be",
                   .where = "state of an echo point"});
    }
  }

  /// The one thing that may happen now.
  Step next() {
    if (!buffer_.HasRoom() && buffer_.order().empty() && !upstream_ended_) buffer_.Reopen();
    if (buffer_.HasRoom()) return Step::kAdmit;
    return buffer_.order().empty() ? Step::kEnd : Step::kDraw;
  }
  /// Precondition of both: next() is kAdmit.
  void Admit(std::shared_ptr<const T> item, bool ends_epoch) {
    buffer_.Offer(std::move(item));
    if (!ends_epoch) return;
    const uint64_t border = point_.options.factor.Uses(order().admitted());
    epoch_borders_.push_back(border);
    if (point_.drain_each_epoch) buffer_.Close();
  }
  void EndUpstream() {
    upstream_ended_ = true;
    buffer_.Close();
  }
  /// Precondition: next() is kDraw.
  Drawn Draw() {
    Drawn drawn{.use = *buffer_.Draw(), .stream_epoch = stream_epoch_};
    drawn.ends_epoch = !epoch_borders_.empty() && drawn.use.draw + 1 == epoch_borders_.front();
    if (drawn.ends_epoch) {
      ++stream_epoch_;
      epoch_borders_.pop_front();
    }
    return drawn;
  }
  /// The next use, after admitting what `pull` gives (items of T, null at their end); nothing when
  /// all are used up.
  template <class Pull>
  std::optional<Drawn> DrawFrom(Pull pull) {
    while (next() == Step::kAdmit) {
      if (std::shared_ptr<const T> item = pull()) {
        const bool ends_epoch = item->ends_epoch;
        Admit(std::move(item), ends_epoch);
      } else {
        EndUpstream();
      }
    }
    if (next() == Step::kEnd) return std::nullopt;
    return Draw();
  }
  void Put(EchoOrder::Slot slot, std::shared_ptr<const T> item) {
    buffer_.Put(slot, std::move(item));
  }

  const EchoOrder& order() const { return buffer_.order(); }
  EpochEchoState State() const {
    return {.order = buffer_.State(),
            .epoch_borders = {epoch_borders_.begin(), epoch_borders_.end()},
            .stream_epoch = stream_epoch_};
  }
  std::vector<std::shared_ptr<const T>> Residents() const { return buffer_.Residents(); }

 private:
  EchoPoint point_;
  EchoBuffer<T> buffer_;
  std::deque<uint64_t> epoch_borders_;
  uint64_t stream_epoch_ = 0;
  bool upstream_ended_ = false;
};

}  // namespace echopipe::internal
