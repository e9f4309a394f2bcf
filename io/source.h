#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/echo/echo_order.h>
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

/// Where a record stands in its data: enough to read it again in another process.
struct RecordPlace {
  uint64_t file = 0;    ///< folders: in the listing; shards: in the order they are given
  uint64_t offset = 0;  ///< shards: of the sample's first header
  uint64_t length = 0;  ///< shards: up to the next sample's
  bool operator==(const RecordPlace&) const = default;
};

/// One place in a source's order: a record, or why there is none.
///
/// A place without a record is a bad example (a tombstone further on); it keeps its ordinal.
struct SourceItem {
  uint64_t epoch = 0;
  uint64_t ordinal = 0;     ///< position in the epoch's global order, before dealing to ranks
  bool ends_epoch = false;  ///< the last of its epoch (for this rank)
  RecordPlace place = {};
  std::shared_ptr<const std::string> uri = nullptr;
  std::string key = {};                            ///< as far as it is known
  std::shared_ptr<const Record> record = nullptr;  ///< null if bad
  std::optional<Error> error = {};                 ///< set if and only if record is null
  std::optional<uint64_t> reread = {};  ///< which of Reread()'s places; no epoch, ordinal, end
};

/// Where a source stands: enough to go on from here in another process.
///
/// Its size is that of the shuffle window, and for shards that of the keys of one shard.
struct SourceState {
  /// What a shuffle window holds.
  struct Resident {
    RecordPlace place = {};
    std::string key = {};             ///< set for bad items
    std::optional<Error> error = {};  ///< set for bad items: these are not read again
  };

  uint64_t epoch = 0;
  uint64_t next_ordinal = 0;        ///< the next position of the epoch's global order
  uint64_t records = 0;             ///< good ones among the positions before it
  uint64_t shard = 0;               ///< shards: the next one's place in the epoch's shard order
  uint64_t byte_offset = 0;         ///< shards: where its next sample's first header stands
  std::vector<uint64_t> keys = {};  ///< shards: hashes of the keys before that
  EchoState window = {};            ///< of the shuffle window
  std::vector<Resident> residents = {};  ///< in the order of window.drawable
  /// With RecordOrder::kAsReady, positions before next_ordinal whose records have not come.
  struct Late {
    uint64_t ordinal = 0;
    RecordPlace place = {};
  };
  std::vector<Late> late = {};  ///< ascending
  /// Of several sources that are mixed; then of the rest epoch and next_ordinal alone are set.
  std::vector<SourceState> mixed = {};
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
  /// Of reads under way and of records not yet given nor in the shuffle window.
  uint64_t bytes_in_flight = 0;
  uint64_t peak_reads_in_flight = 0;
  uint64_t peak_bytes_in_flight = 0;
};

/// A stream of records in epoch order, read ahead of its consumer.
///
/// Order      A function of the spec, the seed and the data; timing does not enter.
/// Buffering  At most `wanted` items and the limits' bytes (but the next item due may always be
///            read, however large), and the residents of the spec's shuffle window.
/// End        After the last epoch, Poll() gives nothing and AtEnd() is true. The destructor
///            cancels the reads and returns when no callback, nor `wake`, can run any more.
/// Errors     A bad record is an item. What ends the stream (a vanished folder, an epoch without a
///            record) is thrown by the first Poll() that has no item to give before it: after a
///            call that gave items, call again until one gives nothing.
/// Threads    Poll(), Reread() and AtEnd() by one caller at a time; Advance() and state() by one
///            caller at a time, beside it; the rest from any thread.
class Source {
 public:
  virtual ~Source() = default;

  /// Moves at most `wanted` items that have arrived, in order, to the end of `out`, behind the
  /// records read again that have arrived, and starts reads so that `wanted` items in all will
  /// arrive. Never waits for a read. When more has arrived, the source's `wake` is called (from a
  /// storage thread; sometimes in vain).
  virtual void Poll(uint64_t wanted, std::vector<SourceItem>* out) = 0;
  /// Has these records read again, the first ones first, with up to half of the reads in flight.
  /// Poll() gives them in any order; they count neither as wanted nor for Advance() and AtEnd().
  /// To be called once, before the first Poll(). Throws kInvalidArgument for an impossible place.
  virtual void Reread(std::vector<RecordPlace> places) = 0;
  /// All items have been given.
  virtual bool AtEnd() const = 0;
  /// The consumer has done with the next `items` that Poll() gave. Until then the source keeps a
  /// few words for each, so it must be called even if state() never is.
  virtual void Advance(uint64_t items) = 0;
  /// The place behind the items counted by Advance().
  virtual SourceState state() const = 0;
  /// A hash of what the source lists (names and labels, in order): another set of records would
  /// give other items for the same state.
  virtual uint64_t fingerprint() const = 0;
  virtual SourceCounters counters() const = 0;
  /// Records that its shuffle window holds when it is full; 0 if it holds none.
  virtual uint64_t window_records() const { return 0; }
  /// Items in one epoch of this rank, where that is known without reading them.
  virtual std::optional<uint64_t> epoch_size() const = 0;
};

}  // namespace echopipe
