#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Where the samples of one shard are: what lies beside it as `<shard>.echopipe-index`.
///
/// File     Little-endian: "echoindx", the format's number (4 bytes), CRC-32C of all that follows
///          (4 bytes), size of the message (8 bytes), the message (proto/index.proto).
/// Fits to  A shard of the same size that was changed at the same time. A copy has another time,
/// and
///          a server tells none: then its size and the fingerprint decide. That is CRC-32C of the
///          first KiB of the shard, and of those of three samples: a third and two thirds of the
///          way, and the last. A sample's first KiB has its header, with its name and sizes, or its
///          length and the checksum of that. Contents that change between these places, but not
///          where samples begin and end, make no index stale: it tells nothing about them.
/// Cost     About four bytes a sample in the file, 16 in memory.
struct ShardIndex {
  struct Place {
    uint64_t offset = 0;  ///< of the sample's first header
    uint64_t length = 0;
    bool operator==(const Place&) const = default;
  };
  /// A sample that is bad, whatever a spec says, but would be no bad one, or another, if it were
  /// read alone: a key that came before in its shard, a place where the shard breaks off, one that
  /// is too large.
  struct Lost {
    uint64_t sample = 0;
    std::string key = {};
    ErrorCode code = ErrorCode::kCorrupt;
    std::string what = {};
    bool operator==(const Lost&) const = default;
  };

  /// Of the file; a larger one is refused.
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;
  static constexpr std::string_view kMagic = "echoindx";
  static constexpr uint32_t kVersion = 1;
  static constexpr uint64_t kProbeBytes = 1024;
  /// A larger sample is a lost one: each is read in one piece.
  static constexpr uint64_t kMaxSampleBytes = uint64_t{2} << 30;

  proto::Source::Format format = proto::Source::TAR;
  uint64_t shard_size = 0;
  int64_t modified_ns = 0;  ///< since 1970; 0 if not known
  uint32_t fingerprint = 0;
  std::vector<Place> samples = {};  ///< in the shard's order, bad ones too
  std::vector<Lost> lost = {};      ///< ascending

  bool operator==(const ShardIndex&) const = default;

  /// The index in a file's bytes; `name` is what errors call it.
  /// Errors  kCorrupt: something else, or damaged, or samples that no shard of this size can have;
  ///         kTruncated; kUnsupported: of a newer version.
  static ShardIndex FromBytes(std::string_view bytes, std::string_view name);
  /// Throws kLimitExceeded if that would be over kMaxBytes; `name` as above.
  std::string ToBytes(std::string_view name) const;

  /// The places in the shard that the fingerprint is of, one behind the other.
  std::vector<Place> Probes() const;
};

/// Where the index of a shard is.
std::string IndexNameOf(std::string_view shard);
/// True for the name of an index, or of one that was being written.
bool IsIndexName(std::string_view name);

}  // namespace echopipe::internal
