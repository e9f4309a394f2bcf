#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <echopipe/base/export.h>
#include <echopipe/base/mutex.h>

namespace echopipe {

/// A block of bytes: written by the one who made it, then shared as `shared_ptr<const Buffer>`.
///
/// The storage is aligned to 64 bytes, not initialised, and goes back to where it came from with
/// the last reference.
class ECHOPIPE_EXPORT Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 protected:
  Buffer(uint8_t* data, size_t size) : data_(data), size_(size) {}

 private:
  uint8_t* data_;
  size_t size_;
};

/// Recycles buffers by size class, so that in steady state nothing large is allocated and no fresh
/// page is touched.
///
/// Classes are eighths of a power of two (at most 12.5% unused). A free block of up to four times
/// the size serves too: where sizes vary, exact classes alone would miss every other time. Blocks
/// in use and free ones together never hold more than twice the most bytes in use so far; beyond
/// that the free blocks of the class asked for longest ago go first. Threads: every method may be
/// called from any thread. Buffers may outlive the pool.
class ECHOPIPE_EXPORT BufferPool {
 public:
  BufferPool();

  /// Throws std::bad_alloc if the memory is not there.
  std::shared_ptr<Buffer> Allocate(size_t size);

  /// Bytes of the buffers handed out and not yet returned, rounded up to their classes.
  size_t bytes_in_use() const;
  /// The most bytes_in_use() has been.
  size_t peak_bytes_in_use() const;

 private:
  class Blocks;
  class PooledBuffer;

  std::shared_ptr<Blocks> blocks_;
};

}  // namespace echopipe
