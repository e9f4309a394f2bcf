#pragma once

#include <cstdint>
#include <memory>

#include <echopipe/base/clock.h>
#include <echopipe/base/export.h>
#include <echopipe/io/storage.h>

namespace echopipe {

/// A network link.
struct ShapeOptions {
  uint64_t bytes_per_second = 0;  ///< of payload, shared by all reads; 0 is no limit
  Clock::Duration latency{0};     ///< from a read's start to its first byte; 0 to 1 h
  Clock::Duration jitter{0};      ///< each latency is up to this much shorter or longer; 0 to 1 h
  uint64_t seed = 0;              ///< of the jitter
};

/// Another storage as it would be behind a slow link.
///
///     read 0 --> inner, latency --\       [ pipe:            ]
///     read 1 --> inner, latency ----1-0-> [ bytes_per_second ] --> callback
///     read 2 --> inner, latency ----/
///
///     latency(n) = max(0, latency + uniform over [-jitter, jitter] from (seed, n))
///     ready(n)   = max(start(n) + latency(n), when the inner storage has read n)
///     end(n)     = max(ready(n), end of the one before) + bytes(n) / bytes_per_second
///
/// Latencies overlap, bytes do not. A failed read has no bytes. The clock gives the time, so a fake
/// one makes the run exact; a late callback delays its own read only, not those behind it.
///
/// Order      Reads pass the pipe in the order of ready(n); n counts the calls of Read from 0.
/// Buffering  The bytes of all reads under way, from the inner storage on.
/// Errors     Those of the inner storage; kInvalidArgument for options out of range.
/// End        As any storage; bytes that have entered the pipe keep their time when cancelled.
/// Threads    Callbacks run where the clock runs its own; those of cancelled reads may also run on
///            the inner storage's threads or inside the destructor. List and Size are not shaped.
/// Cost       Two calls of the clock per read.
ECHOPIPE_EXPORT std::shared_ptr<Storage> MakeShapedStorage(std::shared_ptr<Storage> inner,
                                                           ShapeOptions options,
                                                           std::shared_ptr<Clock> clock);

}  // namespace echopipe
