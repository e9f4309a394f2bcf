#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <echopipe/io/epoch_order.h>
#include <echopipe/io/formats/shard_format.h>
#include <echopipe/io/read_queue.h>
#include <echopipe/io/source.h>

namespace echopipe::internal {

/// A sample and where it stands in the stream of shards.
struct ShardSample {
  Sample sample;
  std::shared_ptr<const std::string> uri;
  uint64_t epoch = 0;
  RecordPlace place;
  uint64_t shard = 0;       ///< its place in the epoch's shard order
  uint64_t next_shard = 0;  ///< where the stream goes on behind it
  uint64_t next_byte_offset = 0;
};

/// The samples of shards, epoch after epoch, read by pieces ahead of the parser and across the
/// borders of shards and epochs.
///
/// Order    The shards' order in the epoch (as given, or permuted with Shuffle::kWindow); in each
///          shard, that of its samples.
/// Buffering  Pieces of 1 MiB (less under small limits), within the limits of `reads`; but the
///          piece needed next may always be read. Counted there: pieces until they are parsed, and
///          samples until the caller releases them.
/// Errors   A shard that cannot be read gives one bad sample, in the place of what is lost.
/// Threads  One caller at a time.
class ShardStream {
 public:
  enum class Status { kSample, kWaiting, kEndOfEpoch };

  /// Begins at `start`, of which the stream's part is used. `format` and `reads` must outlive the
  /// stream.
  ShardStream(std::vector<std::string> uris, const ShardFormat& format, const EpochOptions& options,
              const SourceState& start, const SourceLimits& limits, ReadQueue& reads);

  /// Takes an arrival; false if it is not one of the stream's.
  bool Take(ReadQueue::Arrival& arrival);
  /// The next sample of the epoch. The caller releases record->size() bytes some time.
  Status Next(ShardSample* sample);
  /// Leaves out what is left of the epoch, if anything.
  void NextEpoch();
  /// Starts reads until about so many samples, as large as those so far, are under way.
  void StartReads(uint64_t samples);

  const std::shared_ptr<const std::string>& uri(uint64_t file) const { return uris_[file]; }
  uint64_t shards() const { return uris_.size(); }
  /// A hash of the uris, in order.
  uint64_t fingerprint() const;

 private:
  struct Piece {
    uint64_t serial = 0;
    uint64_t offset = 0;
    uint64_t length = 0;  // asked for
    std::shared_ptr<const Buffer> bytes = nullptr;
    std::optional<Error> error = {};
    bool arrived() const { return bytes != nullptr || error.has_value(); }
  };
  /// A shard being read.
  struct OpenShard {
    uint64_t epoch = 0;
    uint64_t place = 0;
    uint64_t file = 0;
    uint64_t next_offset = 0;  // of the next piece to ask for
    std::optional<uint64_t> size = {};
    bool failed = false;
    std::deque<Piece> pieces = {};
  };

  uint64_t FileAt(uint64_t epoch, uint64_t place) const;
  void Open(uint64_t epoch, uint64_t place, uint64_t offset);
  bool OpenNext();
  void Close();
  bool FeedNextPiece();
  void ReadFurtherAhead();
  void FailShrunk(OpenShard& shard);
  std::optional<Sample> Step();
  void Account(const std::optional<Sample>& sample);
  void Fill(const Sample& sample, ShardSample* out) const;
  bool StartPieces(OpenShard& shard, uint64_t most_bytes);
  bool HasMore(const OpenShard& shard) const;

  std::vector<std::shared_ptr<const std::string>> uris_;
  const ShardFormat& format_;
  EpochOptions options_;
  uint64_t piece_bytes_;
  uint64_t least_ahead_;  // bytes read ahead, however few samples are wanted; grows
  uint64_t most_ahead_;
  ReadQueue& reads_;
  uint64_t epoch_;
  uint64_t place_;                        // of the shard being parsed
  std::vector<uint64_t> keys_;            // before the start, in its shard
  uint64_t start_offset_;                 // in the first shard
  std::deque<OpenShard> shards_;          // the front is at place_ of epoch_
  std::unique_ptr<SampleReader> reader_;  // of the front
  std::shared_ptr<const Buffer> parsed_;  // the piece being parsed
  uint64_t parsed_end_ = 0;               // its end in the shard
  uint64_t counted_ = 0;                  // bytes counted for it and the sample under way
  uint64_t bytes_ahead_ = 0;              // of pieces asked for and not yet parsed
  uint64_t samples_ = 0;                  // so far, and their bytes
  uint64_t sample_bytes_ = 0;
};

}  // namespace echopipe::internal
