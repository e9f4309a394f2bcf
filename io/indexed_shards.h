#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/io/formats/shard_index.h>
#include <echopipe/io/source.h>
#include <echopipe/io/storage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// The samples of shards by their indexes: those of the first shard in its order, then those of the
/// second, ...
///
/// Threads  Immutable.
class IndexedShards {
 public:
  /// Of each shard its index.
  IndexedShards(std::vector<std::string> uris, std::vector<ShardIndex> indexes);

  uint64_t samples() const { return ends_.back(); }
  /// The sample at this position. Precondition: position < samples().
  RecordPlace PlaceOf(uint64_t position) const;
  /// Why it is bad without being read, or nothing.
  const ShardIndex::Lost* LostAt(uint64_t position) const;
  /// True if a sample fills this place.
  bool Has(const RecordPlace& place) const;
  uint64_t shards() const { return uris_.size(); }
  const std::shared_ptr<const std::string>& uri(uint64_t shard) const { return uris_[shard]; }
  /// A hash of the uris and places, in order.
  uint64_t Fingerprint() const;

 private:
  /// A position's shard, and which of its samples.
  struct Spot {
    size_t shard = 0;
    uint64_t sample = 0;
  };
  Spot SpotOf(uint64_t position) const;

  std::vector<std::shared_ptr<const std::string>> uris_;
  std::vector<ShardIndex> indexes_;
  std::vector<uint64_t> ends_ = {0};  // samples before each shard, and of all
};

/// Reads the indexes beside these shards and checks that they fit to them. `command` makes them, as
/// the errors say.
///
/// Errors  kNotFound names the first shards that have none. The others name the index and its
/// shard:
///         as ShardIndex::FromBytes(), kLimitExceeded if it is too large, kCorrupt if it is of
///         another shard or another format.
IndexedShards LoadIndexedShards(std::vector<std::string> shards, proto::Source::Format format,
                                std::string_view command, Storage& storage);

}  // namespace echopipe::internal
