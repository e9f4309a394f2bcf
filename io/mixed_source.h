#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/io/source.h>

namespace echopipe::internal {

/// Draws the next record from one of several sources, by their weights.
///
///     leader  a b c d | a ...  --+
///                                +-->  a x b y c d z | ...
///     other   x y z x y z ...  --+
///
/// Order      One source for each round of the ranks, drawn anew from (seed, epoch, round); what it
///            gives is the next of its own order. So the ranks stay in step.
/// Epochs     Those of the first source, the leader. The others must be endless.
/// Places     RecordPlace::file is a source's own, times their number, plus its index.
/// Buffering  Theirs, and up to `wanted` items that wait for their turn behind a slower source.
/// End        With the leader's last item. What waits of the others is dropped.
/// Errors     What ends one of the sources ends the stream, in its turn.
class MixedSource final : public Source {
 public:
  struct Part {
    std::unique_ptr<Source> source;
    uint32_t weight = 1;  ///< their sum is less than 2^32
  };

  /// Begins at `start`, whose `mixed` the parts began at.
  MixedSource(std::vector<Part> parts, uint64_t seed, const Shard& shard, const SourceState& start);

  void Poll(uint64_t wanted, std::vector<SourceItem>* out) override;
  void Reread(std::vector<RecordPlace> places) override;
  bool AtEnd() const override;
  void Advance(uint64_t items) override;
  SourceState state() const override;
  uint64_t fingerprint() const override;
  SourceCounters counters() const override;
  uint64_t window_records() const override;
  std::optional<uint64_t> epoch_size() const override { return std::nullopt; }

 private:
  struct Mixed {
    Part part;
    std::deque<SourceItem> ready = {};
    std::vector<uint64_t> rereads = {};  // their indices among all
    std::optional<Error> failed = {};
    uint64_t planned = 0;  // how often it is in the plan
  };
  /// Where the order stands.
  struct Cursor {
    uint64_t epoch = 0;
    uint64_t round = 0;
    void Pass(bool ends_epoch) {
      epoch += ends_epoch ? 1 : 0;
      round = ends_epoch ? 0 : round + 1;
    }
  };
  struct Given {
    size_t part = 0;
    bool ends_epoch = false;
  };

  size_t PartAt(const Cursor& cursor) const;
  void PollPart(Mixed& mixed, std::vector<SourceItem>* rereads);
  void PlanTo(uint64_t items);
  SourceItem TakeNext();

  std::vector<Mixed> parts_;
  uint64_t total_weight_ = 0;
  uint64_t seed_;
  Shard shard_;
  Cursor next_;
  std::deque<size_t> plan_;  // the parts of the rounds from there on
  mutable Mutex mutex_;
  std::deque<Given> given_ ECHOPIPE_GUARDED_BY(mutex_);  // and not yet advanced over
  Cursor advanced_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::internal
