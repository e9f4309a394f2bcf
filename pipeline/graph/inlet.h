#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/pipeline/graph/message.h>
#include <echopipe/pipeline/graph/shadow_log.h>
#include <echopipe/pipeline/graph/stand_ins.h>

namespace echopipe::internal {

/// Where items come into a joint: in order, with bad places filled, if that is the spec's policy.
///
/// It tells the shadow which of the edge's places hold no example. What is held back returns its
/// credit at once, so that however many are bad in a row, the next can come.
/// Threads  None: one caller at a time.
class Inlet {
 public:
  /// What it goes on from.
  struct Start {
    std::vector<std::shared_ptr<Item>> held = {};
    bool released = false;
    bool epoch_has_good = false;
    bool awaits_first = false;  ///< an item is read again, and comes before all others
  };
  enum class Next { kNothing, kItem, kEnd };

  /// `gaps`, null for batches, must outlive it.
  Inlet(uint64_t window, StandInRule rule, std::optional<Start> start, Log<ShadowLogs::Gap>* gaps);

  /// Takes an item or the end, in any order.
  void Put(Message message) { ring_.Put(std::move(message)); }
  /// Takes the item that was awaited.
  void PutFirst(std::shared_ptr<Item> item) { first_ = std::move(item); }
  /// What the joint can take now.
  Next next(Outbox& outbox);
  /// Precondition: next() is kItem. Its credit, if it holds one, is the joint's to return.
  std::shared_ptr<Item> Take() { return stand_ins_.Next(); }
  /// The end has come, but perhaps not all before it been taken.
  bool ended() const { return ended_; }
  /// What the end came with.
  const std::shared_ptr<const Error>& error() const { return error_; }
  /// Everything ends here, by the joint's own error.
  void NoteFailure() { gaps_->Add({.place = places_, .failure = true}); }
  /// What has come and holds a credit, and the end.
  uint64_t waiting() const;

 private:
  void Accept(std::shared_ptr<Item> item, Outbox& outbox);
  void End(std::shared_ptr<const Error> error);

  SequenceRing ring_;
  StandIns<Item> stand_ins_;
  Log<ShadowLogs::Gap>* gaps_;
  bool awaits_first_ = false;
  std::shared_ptr<Item> first_;
  uint64_t places_ = 0;  // of the edge, so far
  bool ended_ = false;
  std::shared_ptr<const Error> error_;
};

}  // namespace echopipe::internal
