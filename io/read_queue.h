#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include <echopipe/io/source.h>
#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// A source's reads: counted against its limits, and ended with it.
///
/// `wake` is called from a storage thread when something has arrived since the last
/// TakeArrivals(), once, under no lock; it must not throw.
/// End      The destructor cancels what is under way and returns when no callback, nor `wake`, can
///          run any more.
/// Threads  counters() from any thread; the rest by one caller at a time.
class ReadQueue {
 public:
  struct Arrival {
    uint64_t serial = 0;
    Result<ReadResult> result;
  };

  /// `pool` must outlive the queue.
  ReadQueue(std::shared_ptr<Storage> storage, BufferPool& pool, const SourceLimits& limits,
            std::function<void()> wake);
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  /// One more read may be under way.
  bool HasReadRoom() const;
  /// ... and so many more bytes.
  bool HasRoom(uint64_t bytes) const;
  /// Starts a read and counts request.length bytes; those that did not come are given back when it
  /// arrives, the others by Release(). Gives the serial number that it will arrive under.
  uint64_t Start(ReadRequest request);
  /// Asks that a read end soon; it still arrives.
  void Cancel(uint64_t serial);
  /// What has arrived since the last call, in any order.
  std::list<Arrival> TakeArrivals();
  /// Bytes that are no longer held.
  void Release(uint64_t bytes);
  SourceCounters counters() const;

  Storage& storage() { return *storage_; }
  BufferPool& pool() { return pool_; }

 private:
  class Shared;

  std::shared_ptr<Storage> storage_;
  BufferPool& pool_;
  SourceLimits limits_;
  std::shared_ptr<Shared> shared_;  // with every callback too
};

}  // namespace echopipe::internal
