#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/pipeline/graph/message.h>
#include <echopipe/pipeline/graph/meter.h>

namespace echopipe::internal {

/// What a joint sends in answer to a message.
class Outbox {
 public:
  explicit Outbox(uint64_t window) : window_(window) {}

  /// Downstream, as the next in order.
  void Send(Message message) { SendAs(next_sequence_++, std::move(message)); }
  /// Downstream, under a number of the joint's own.
  void SendAs(uint64_t sequence, Message message) {
    message.sequence = sequence;
    downstream_.push_back(std::move(message));
  }
  /// Upstream: `credit` items have been consumed. Sent on in bunches of an eighth of the window.
  void Consumed(uint64_t credit) { owed_ += credit; }
  /// The credit that is due.
  uint64_t TakeCredit() { return IsDue() ? std::exchange(owed_, 0) : 0; }
  /// The credit that is owed, but not yet due.
  uint64_t withheld() const { return IsDue() ? 0 : owed_; }
  /// The most that is ever withheld on an edge with this window.
  static uint64_t MostWithheld(uint64_t window) { return window == 0 ? 0 : (window - 1) / 8; }
  std::vector<Message>& downstream() { return downstream_; }

 private:
  bool IsDue() const { return owed_ > 0 && owed_ * 8 >= window_; }

  uint64_t window_;  ///< of the edge upstream; 0 at the source
  uint64_t next_sequence_ = 0;
  uint64_t owed_ = 0;
  std::vector<Message> downstream_;
};

/// How many items are on their way downstream.
class Window {
 public:
  explicit Window(uint64_t size) : size_(size) {}

  uint64_t credits() const { return size_ - in_flight_; }
  uint64_t in_flight() const { return in_flight_; }
  void Sent(uint64_t count = 1) {
    in_flight_ += count;
    peak_ = std::max(peak_.load(), in_flight_.load());
  }
  void Returned(uint64_t count) { in_flight_ -= count; }
  /// May be called from any thread.
  WindowStats Stats(std::string name) const {
    return {
        .name = std::move(name), .window = size_, .in_flight = in_flight_, .peak_in_flight = peak_};
  }

 private:
  uint64_t size_;
  Counter in_flight_;
  Counter peak_;
};

/// A serial node of the graph: the only places where order and credits are decided.
///
///     parallel segment  -- items, out of order -->  joint  -- items, numbered -->  segment
///                       <-- credits ---------------        <-- credits ---------
///
/// Threads  Receive() by one caller at a time; it never blocks.
class Joint {
 public:
  virtual ~Joint() = default;
  /// Takes a message from either side and writes to the outbox what follows from it.
  virtual void Receive(Message message, Outbox& outbox) = 0;
};

}  // namespace echopipe::internal
