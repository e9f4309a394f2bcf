#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/graph/batch_builder.h>
#include <echopipe/pipeline/graph/inlet.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/pipeline/graph/shadow_log.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Gives each example a slot of a batch, in order, and lets tombstones go.
///
/// It sends each example on to be filled in, and for each batch a last message without an example,
/// whose `builder` is sealed. A credit from downstream is for a batch; it returns the credits of
/// the batch's examples. A full batch is held back where what follows may still make it the last of
/// its epoch: until the next example if tombstones may come, until the next full batch if
/// remainders are dropped. An epoch in which no example has come, but echoes of an adaptive
/// point, ends the stream with kEmpty, as
/// does one with too many bad examples with kLimitExceeded. A memory cap that is too small ends it
/// with kResourceExhausted, in the place of the batch after which that is known.
class BatchJoint final : public Joint {
 public:
  struct Options {
    proto::Batch batch;
    uint64_t steps_per_epoch = 0;
    uint64_t epochs = 1;  ///< of the source; 0: it has no last one
    /// An adaptive one's place among the echo points of examples.
    std::optional<size_t> adaptive_echo = {};
    bool may_skip = false;         ///< tombstones may come
    uint64_t memory_cap = 0;       ///< 0: none
    uint64_t batches_echoed = 0;   ///< the most that are held behind it
    uint64_t batches_before = 0;   ///< made before the start, by another process
    EpochTally epoch_before = {};  ///< and what of the epoch had come

    bool endless() const { return epochs == 0; }
    bool across_epochs() const { return batch.across_epochs() || steps_per_epoch > 0; }
    bool drop() const { return batch.remainder() == proto::Batch::DROP; }
    bool holds_batches() const {
      return (may_skip && steps_per_epoch == 0) || (drop() && !across_epochs());
    }
  };

  BatchJoint(Options options, uint64_t window, Inlet inlet, const WritingStage* writer,
             BufferPool& pool, BatchBuilder::Allocator allocator, BadExamples* bad_examples,
             ShadowLogs& logs);

  void Receive(Message message, Outbox& outbox) override;

 private:
  void Advance(Outbox& outbox);
  void Accept(std::shared_ptr<Item> item, Outbox& outbox);
  void Fail(const Error& error, Outbox& outbox);
  void CountNeed(const Item& item);
  void CheckMemory();
  void Place(std::shared_ptr<Item> item, Outbox& outbox);
  bool CountsForEpoch(const Item& item) const;
  void CountPlace(const Item& item);
  void EndEpoch(Outbox& outbox);
  void CheckNotEmpty(const EpochTally& epoch) const;
  void End(std::shared_ptr<const Error> error, Outbox& outbox);
  void SendHeld(Outbox& outbox);
  void SendOrDropPartial(Outbox& outbox, bool by_failure = false);
  void SendBatch(std::shared_ptr<BatchBuilder> builder, Outbox& outbox, bool by_failure = false);
  void ReceiveReread(std::shared_ptr<Item> item, Outbox& outbox);

  Options options_;
  uint64_t window_;
  Inlet inlet_;
  const WritingStage* writer_;
  BufferPool& pool_;
  BatchBuilder::Allocator allocator_;
  BadExamples* bad_examples_;
  ShadowLogs& logs_;
  std::shared_ptr<BatchBuilder> partial_;
  std::shared_ptr<BatchBuilder> held_;  // full
  uint64_t places_ = 0;                 // that have gone on from the edge in front
  uint64_t sent_ = 0;                   // batches
  uint64_t batches_;                    // in the whole run
  EpochTally epoch_;
  MemoryNeed need_;        // in front of it
  MeanSize example_size_;  // of examples
  MeanSize shared_size_;   // of what a batch does not copy of them
  /// A resident batch of a later echo point on its way to be made again.
  struct Remade {
    std::vector<std::shared_ptr<Item>> items;  // by member; null if still to come
    size_t came = 0;
  };
  std::map<std::pair<size_t, EchoOrder::Slot>, Remade> remade_;
  /// A batch whose credit has not come.
  struct Sent {
    uint64_t examples = 0;
    uint64_t credits = 0;  // of these; stand-ins have none
  };
  std::deque<Sent> outstanding_;
  uint64_t in_flight_ = 0;    // examples, those of batches under way too
  bool ends_stream_ = false;  // the last place of all has come
  bool ended_ = false;
};

}  // namespace echopipe::internal
