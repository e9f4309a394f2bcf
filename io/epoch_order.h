#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include <echopipe/base/permutation.h>
#include <echopipe/base/random.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/echo/echo_order.h>
#include <echopipe/io/source.h>
#include <echopipe/io/source_trail.h>

namespace echopipe::internal {

/// What orders the positions of an epoch.
struct EpochOptions {
  enum class Shuffle { kNone, kFull, kWindow };

  Shuffle shuffle = Shuffle::kNone;
  uint64_t window = 1;  ///< of Shuffle::kWindow
  uint64_t seed = 0;
  uint64_t epochs = 1;  ///< 0 is endless
  uint64_t take = 0;    ///< positions of an epoch; 0 is all
  Shard shard;
};

/// The key of a permutation of records or shards in one epoch.
RandomKey PermutationKey(uint64_t seed, uint64_t epoch);

/// The shuffle window of one epoch: an echo buffer at factor 1, which holds one item (and keeps
/// the order) without a shuffle.
EchoOptions WindowOptions(const EpochOptions& options, uint64_t epoch);

/// Which record of a listing stands where, epoch after epoch, for one rank.
///
/// Threads  One caller at a time.
class ListingOrder {
 public:
  struct Position {
    uint64_t epoch = 0;
    uint64_t ordinal = 0;
    uint64_t record = 0;
    bool ends_epoch = false;
  };

  /// Begins at `start`, with what is late there. Tells `trail` (which must outlive it) what it
  /// does. Throws kInvalidArgument if an epoch has fewer than one record for each rank, or for a
  /// state that cannot be of this listing.
  ListingOrder(uint64_t records, const EpochOptions& options, const SourceState& start,
               SourceTrail& trail);

  /// Nothing after the last epoch.
  std::optional<Position> Next();
  bool AtEnd() const { return options_.epochs != 0 && epoch_ >= options_.epochs; }
  /// Positions of one epoch for this rank.
  uint64_t epoch_size() const { return rounds_; }

 private:
  void Restore(const SourceState& start);
  Position NextLate();
  uint64_t NextOrdinal() const;
  void BeginEpoch(uint64_t epoch);
  void EndEpoch();
  uint64_t RecordAt(uint64_t ordinal);
  uint64_t DrawFromWindow();

  uint64_t records_;
  EpochOptions options_;
  SourceTrail& trail_;
  uint64_t rounds_;
  uint64_t epoch_ = 0;
  uint64_t next_ordinal_ = 0;
  std::deque<SourceState::Late> late_;
  std::optional<Permutation> permutation_;
  std::optional<EchoBuffer<uint64_t>> window_;
};

}  // namespace echopipe::internal
