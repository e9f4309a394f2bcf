#pragma once

#include <algorithm>
#include <cstdint>

#include <echopipe/io/source.h>
#include <echopipe/pipeline/example.h>

namespace echopipe::internal {

/// What the buffers in front of a place in the stream take when they are full: how many items they
/// hold follows from spec and options, how large these are from what has come so far. An item
/// carries it from joint to joint, so that it is a function of the stream's order, never of timing.
struct MemoryNeed {
  uint64_t bytes = 0;
  uint64_t item_bytes = 0;  ///< of an item as the joint in front sends it, on average
};

/// The mean size of what has passed a place.
class MeanSize {
 public:
  void Add(uint64_t bytes) {
    bytes_ += bytes;
    ++count_;
  }
  /// Rounded up; 0 before the first.
  uint64_t bytes() const { return count_ == 0 ? 0 : (bytes_ + count_ - 1) / count_; }

 private:
  uint64_t bytes_ = 0;
  uint64_t count_ = 0;
};

/// What it is behind an echo point whose items, and those waiting for it, are so large.
inline MemoryNeed NeedBehindEcho(const MemoryNeed& before, uint64_t upstream_window,
                                 uint64_t shuffle_buffer, uint64_t item_bytes) {
  // On the edge it may have its old size or its new one.
  return {.bytes = before.bytes + upstream_window * std::max(item_bytes, before.item_bytes) +
                   shuffle_buffer * item_bytes,
          .item_bytes = item_bytes};
}

/// Batches and what is in front of them.
struct BatchSizes {
  uint64_t window = 0;          ///< of examples in front
  uint64_t size = 1;            ///< of a batch, in examples
  uint64_t batches_echoed = 0;  ///< the most that are held behind
  uint64_t batch_bytes = 0;     ///< of a batch's own memory
  uint64_t example_bytes = 0;   ///< of an example in front of it
  uint64_t shared_bytes = 0;    ///< of what a batch does not copy of one
};

/// Whole batches within the window, one begun, and one that the consumer has.
inline uint64_t BatchesHeld(const BatchSizes& sizes) { return sizes.window / sizes.size + 2; }

/// What the full buffers of a whole pipeline take.
inline uint64_t NeedOfAll(const MemoryNeed& before, const BatchSizes& sizes) {
  return before.bytes + sizes.window * std::max(before.item_bytes, sizes.example_bytes) +
         BatchesHeld(sizes) * sizes.batch_bytes +
         sizes.batches_echoed * (sizes.batch_bytes + sizes.size * sizes.shared_bytes);
}

/// Of all its tensors, or of those alone that a batch does not copy.
inline uint64_t BytesOf(const Example& example) {
  uint64_t bytes = 0;
  for (const Example::Feature& feature : example.features()) {
    bytes += feature.tensor.bytes().size();
  }
  return bytes;
}
inline uint64_t SharedBytesOf(const Example& example) {
  uint64_t bytes = 0;
  for (const Example::Feature& feature : example.features()) {
    if (feature.tensor.dtype() == DType::kBytes) bytes += feature.tensor.bytes().size();
  }
  return bytes;
}

/// The part of a memory cap that records may take which are read ahead.
inline uint64_t ReadAheadOf(uint64_t cap) {
  return std::clamp(cap / 4, uint64_t{1}, SourceLimits().bytes_in_flight);
}
/// The least cap whose other part is so many bytes.
inline uint64_t CapFor(uint64_t bytes) {
  return bytes + std::min(bytes / 3 + 1, SourceLimits().bytes_in_flight);
}

}  // namespace echopipe::internal
