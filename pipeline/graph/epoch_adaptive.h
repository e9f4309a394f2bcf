#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/echo/adaptive_buffer.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/pipeline/graph/epoch_drawn.h>
#include <echopipe/pipeline/graph/plan.h>

namespace echopipe::internal {

/// Where an EpochAdaptive stands, without its items.
struct EpochAdaptiveState {
  AdaptiveState order;
  uint64_t stream_epoch = 0;  ///< of the next draw
};

/// An adaptive buffer of items that come in epochs: what an adaptive echo point does, apart from
/// deciding and waiting.
///
/// An epoch ends with the fresh use of its last item; echoes behind that are of the next one.
/// Threads: one caller at a time.
template <class T>
class EpochAdaptive {
 public:
  /// Precondition: the point is adaptive.
  explicit EpochAdaptive(const EchoPoint& point) : buffer_(point.adaptive->options) {}
  /// Goes on from a state. Throws kInvalidArgument if it is impossible.
  EpochAdaptive(const EchoPoint& point, const EpochAdaptiveState& state,
                std::vector<std::shared_ptr<const T>> items)
      : buffer_(point.adaptive->options, state.order, std::move(items)),
        stream_epoch_(state.stream_epoch) {}

  /// The fresh use of the next item; a tombstone's, which is not repeated.
  EpochDrawn<T> Admit(std::shared_ptr<const T> item, bool ends_epoch) {
    return Drawn(buffer_.Admit(std::move(item)), ends_epoch);
  }
  EpochDrawn<T> Pass(std::shared_ptr<const T> item, bool ends_epoch) {
    return Drawn(buffer_.Pass(std::move(item)), ends_epoch);
  }
  bool CanEcho() const { return buffer_.CanEcho(); }
  /// Precondition: CanEcho().
  EpochDrawn<T> Echo() { return Drawn(buffer_.Echo(), false); }
  void Put(EchoOrder::Slot slot, std::shared_ptr<const T> item) {
    buffer_.Put(slot, std::move(item));
  }

  const AdaptiveOrder& order() const { return buffer_.order(); }
  EpochAdaptiveState State() const {
    return {.order = buffer_.State(), .stream_epoch = stream_epoch_};
  }
  std::vector<std::shared_ptr<const T>> Residents() const { return buffer_.Residents(); }

 private:
  EpochDrawn<T> Drawn(Use<T> use, bool ends_epoch) {
    EpochDrawn<T> drawn{
        .use = std::move(use), .stream_epoch = stream_epoch_, .ends_epoch = ends_epoch};
    if (ends_epoch) ++stream_epoch_;
    return drawn;
  }

  AdaptiveBuffer<T> buffer_;
  uint64_t stream_epoch_ = 0;
};

}  // namespace echopipe::internal
