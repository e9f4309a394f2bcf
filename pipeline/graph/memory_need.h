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
