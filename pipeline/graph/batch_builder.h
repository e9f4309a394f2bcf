#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/batch.h>
#include <echopipe/pipeline/graph/message.h>

namespace echopipe::internal {

/// A batch being filled in place, each slot by any thread, all slots at once.
///
/// Threads  Reserve() and Seal() by one caller at a time; Fill() from any thread, once a slot.
class BatchBuilder {
 public:
  using Allocator = std::function<std::shared_ptr<uint8_t>(size_t bytes)>;

  /// Room for `capacity` examples like `first`. `writer`, if not null, writes its feature itself.
  BatchBuilder(size_t capacity, const Item& first, const WritingStage* writer, BufferPool& pool,
               const Allocator& allocator);

  /// Gives the item the next slot. Throws kShapeMismatch that names both keys if it does not fit.
  void Reserve(Item& item);
  size_t size() const { return size_; }
  /// How many of its items hold a credit.
  uint64_t credits() const { return credits_; }
  /// Of the tensors it has memory for.
  uint64_t bytes() const;
  /// No further slot will be given. The batch is whole after this and all fills.
  void Seal(uint64_t sequence) { sequence_ = sequence; }
  /// Writes an item into its slot.
  void Fill(const Item& item) const;
  /// To be called after each Fill() and after Seal(); true for the last of them.
  bool ReleaseOne() { return open_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// The finished batch; the builder must not be used again.
  std::shared_ptr<const Batch::Content> Finish();

  uint64_t epoch() const { return content_->epoch; }
  void set_epoch(uint64_t epoch) { content_->epoch = epoch; }
  bool ends_epoch() const { return ends_epoch_; }
  void set_ends_epoch() { ends_epoch_ = true; }
  /// Nothing will come behind it.
  bool ends_stream() const { return ends_stream_; }
  void set_ends_stream() { ends_stream_ = true; }
  /// Its number among the batches, given when it is sealed.
  uint64_t sequence() const { return sequence_; }
  /// The places of the stream that its examples came from, as the shadow's log tells them.
  struct Places {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t next = 0;  ///< what follows it begins there
  };
  const Places& places() const { return places_; }
  void set_begin(uint64_t place) { places_.begin = place; }
  void set_end(uint64_t place) { places_.end = places_.next = place; }
  /// Places up to there give no example of a later batch.
  void set_next(uint64_t place) { places_.next = place; }
  /// Where a batch that is made again goes.
  const std::shared_ptr<const Destination>& destination() const { return destination_; }
  void set_destination(std::shared_ptr<const Destination> to) { destination_ = std::move(to); }

 private:
  struct Stacked {
    std::string name;
    WritingStage::Output output;
    std::shared_ptr<uint8_t> memory;
    size_t example_bytes = 0;
    bool by_writer = false;
  };
  [[noreturn]] void ThrowMismatch(const Item& item, const std::string& feature, std::string got,
                                  std::string wanted) const;

  const WritingStage* writer_;
  std::shared_ptr<Batch::Content> content_;
  std::vector<Stacked> stacked_;
  size_t size_ = 0;
  uint64_t credits_ = 0;
  uint64_t sequence_ = 0;
  Places places_;
  std::shared_ptr<const Destination> destination_;
  bool ends_epoch_ = false;
  bool ends_stream_ = false;
  std::atomic<size_t> open_{1};  // fills not done, and the seal
};

}  // namespace echopipe::internal
