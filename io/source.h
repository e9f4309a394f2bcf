#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/storage.h>

namespace echopipe {

/// The raw bytes of one item, as storage holds them. Immutable once made.
struct Record {
  struct Member {
    std::string name;  ///< the feature it becomes: "image", or a tar member's extension
    std::shared_ptr<const Buffer> bytes;
  };

  std::shared_ptr<const std::string> uri;  ///< the file, or the shard that holds it
  std::string key;                         ///< path below the source's root, or the sample's key
  std::optional<int64_t> label;
  std::vector<Member> members;

  size_t size() const {
    size_t bytes = 0;
    for (const Member& member : members) bytes += member.bytes->size();
    return bytes;
  }
};

/// One place in a source's order: a record, or why there is none.
///
/// A place without a record is a bad example (a tombstone further on); it keeps its ordinal.
struct SourceItem {
  uint64_t epoch = 0;
  uint64_t ordinal = 0;     ///< position in the epoch's global order, before dealing to ranks
  bool ends_epoch = false;  ///< the last of its epoch (for this rank)
  std::shared_ptr<const std::string> uri;
  std::string key;                       ///< as far as it is known
  std::shared_ptr<const Record> record;  ///< null if bad
  std::optional<Error> error;            ///< set if and only if record is null
};

/// Where a source stands: enough to go on from here in another process.
struct SourceCursor {
  uint64_t epoch = 0;
  uint64_t next_ordinal = 0;  ///< the next position of the epoch's global order
  uint64_t shard = 0;         ///< streamed shards only: place in the epoch's shard order
  uint64_t byte_offset = 0;   ///< streamed shards only: where the next sample's header stands
};

/// How far a source may go ahead of its consumer. Never changes which records come, nor their
/// order.
struct SourceLimits {
  int reads_in_flight = 32;                        ///< >= 1
  uint64_t bytes_in_flight = uint64_t{128} << 20;  ///< asked of storage or held undelivered, >= 1
};

/// The rank's part of the global order: positions rank, rank + world, rank + 2 world, ... of each
/// epoch; an incomplete last round is left out, so that all ranks take equally many steps.
struct Shard {
  uint64_t rank = 0;
  uint64_t world = 1;
};

/// What a source has under way; the limits hold for these at any moment.
struct SourceCounters {
  uint64_t reads_in_flight = 0;
  uint64_t bytes_in_flight = 0;  ///< of reads under way and of records not yet delivered
  uint64_t peak_reads_in_flight = 0;
  uint64_t peak_bytes_in_flight = 0;
};

/// A stream of records in epoch order, read ahead of its consumer.
///
/// Order      A function of the spec, the seed and the data; timing does not enter.
/// Buffering  At most `wanted` items and the limits' bytes (but the next item due may always be
///            read, however large).
/// End        After the last epoch, Poll() gives nothing and AtEnd() is true.
/// Errors     A bad record is an item. What ends the stream (a vanished folder, a broken shard
///            chain) is thrown by Poll() after all items before it have been given.
/// Threads    Poll(), AtEnd() and cursor() by one caller at a time; the rest from any thread.
class Source {
 public:
  virtual ~Source() = default;

  /// Moves at most `wanted` items that have arrived, in order, to the end of `out` and starts
  /// reads so that `wanted` items in all will arrive. Never blocks. When more has arrived,
  /// the source's `wake` is called (from a storage thread; sometimes in vain).
  virtual void Poll(uint64_t wanted, std::vector<SourceItem>* out) = 0;
  /// All items have been given.
  virtual bool AtEnd() const = 0;
  /// The place after the last item given by Poll().
  virtual SourceCursor cursor() const = 0;
  virtual SourceCounters counters() const = 0;
  /// Records in one epoch of this rank, where that is known without reading them.
  virtual std::optional<uint64_t> epoch_size() const = 0;
};

}  // namespace echopipe
