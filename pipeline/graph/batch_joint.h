#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/graph/batch_builder.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Gives each example a slot of a batch, in order, and lets tombstones go.
///
/// It sends each example on to be filled in, and for each batch a last message without an example,
/// whose `builder` is sealed. A credit from downstream is for a batch; it returns the credits of
/// the batch's examples. A full batch is held back where what follows may still make it the last of
/// its epoch: until the next example if tombstones may come, until the next full batch if
/// remainders are dropped. An epoch in which no example has come ends the stream with kEmpty, as
/// does one with too many bad examples with kLimitExceeded. A memory cap that is too small ends it
/// with kResourceExhausted, in the place of the batch after which that is known.
class BatchJoint final : public Joint {
 public:
  struct Options {
    proto::Batch batch;
    uint64_t steps_per_epoch = 0;
    bool may_skip = false;        ///< tombstones may come
    uint64_t memory_cap = 0;      ///< 0: none
    uint64_t batches_echoed = 0;  ///< the most that are held behind it

    bool across_epochs() const { return batch.across_epochs() || steps_per_epoch > 0; }
    bool drop() const { return batch.remainder() == proto::Batch::DROP; }
    bool holds_batches() const {
      return (may_skip && steps_per_epoch == 0) || (drop() && !across_epochs());
    }
  };

  BatchJoint(Options options, uint64_t window, const WritingStage* writer, BufferPool& pool,
             BatchBuilder::Allocator allocator, BadExamples* bad_examples);

  void Receive(Message message, Outbox& outbox) override;

 private:
  void Accept(Message message, Outbox& outbox);
  // Of an epoch, as far as it has come here.
  struct Places {
    uint64_t examples = 0;
    uint64_t bad = 0;
    uint64_t filtered_out = 0;
  };

  void CountNeed(const Item& item);
  void CheckMemory();
  void Place(std::shared_ptr<Item> item, Outbox& outbox);
  void CountTombstone(const Item& item);
  void EndEpoch(Outbox& outbox);
  void CheckNotEmpty(const Places& epoch) const;
  void End(std::shared_ptr<const Error> error, Outbox& outbox);
  void SendHeld(Outbox& outbox);
  void SendOrDropPartial(Outbox& outbox);
  void SendBatch(std::shared_ptr<BatchBuilder> builder, Outbox& outbox);

  Options options_;
  uint64_t window_;
  SequenceRing ring_;
  const WritingStage* writer_;
  BufferPool& pool_;
  BatchBuilder::Allocator allocator_;
  BadExamples* bad_examples_;
  std::shared_ptr<BatchBuilder> partial_;
  std::shared_ptr<BatchBuilder> held_;  // full
  Places epoch_;
  MemoryNeed need_;        // in front of it
  MeanSize example_size_;  // of examples
  MeanSize shared_size_;   // of what a batch does not copy of them
  uint64_t batches_ = 0;
  std::deque<uint64_t> sizes_;  // of the batches whose credit has not come
  bool ended_ = false;
};

}  // namespace echopipe::internal
