#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/source.h>

namespace echopipe::internal {

/// One sample of a shard: a record, or why there is none.
struct Sample {
  std::string key = {};
  std::optional<uint64_t> key_hash = {};  ///< set where a key must not come back in its shard
  uint64_t offset = 0;                    ///< of its first header
  uint64_t next_offset = 0;               ///< where the next sample's headers begin, or the end is
  bool ends_shard = false;                ///< nothing of the shard follows, or can be read
  std::shared_ptr<const Record> record = nullptr;
  std::optional<Error> error = {};  ///< set if and only if record is null
};

/// Takes the samples out of one shard as its bytes come, without any I/O of its own.
///
/// Order    As in the shard, whatever the sizes fed.
/// Errors   A sample in the place of the bad one. Where the shard cannot be taken apart any
///          further, that sample ends it.
/// Threads  One caller at a time. Records may outlive the reader.
class SampleReader {
 public:
  virtual ~SampleReader() = default;

  /// The shard's size, once it is known: what would end behind it is an error at once.
  virtual void SetShardSize(uint64_t size) = 0;
  /// The next bytes; they must live until Next() gives nothing.
  /// Precondition: Next() has given nothing, or was not called yet.
  virtual void Feed(std::span<const uint8_t> bytes) = 0;
  /// No further bytes will come.
  virtual void Finish() = 0;
  /// The next sample, or nothing: bytes are needed, or at_end().
  virtual std::optional<Sample> Next() = 0;
  virtual bool at_end() const = 0;
  /// The shard cannot be read any further: the sample under way as a bad one, as after an error of
  /// the reader's own.
  virtual Sample Fail(const Error& error) = 0;
  /// Bytes of the shard taken so far.
  virtual uint64_t offset() const = 0;
  /// Bytes copied for the sample under way.
  virtual uint64_t held_bytes() const = 0;
};

/// A format of shards that are streamed, with what the spec says about it.
///
/// Threads  Immutable.
class ShardFormat {
 public:
  virtual ~ShardFormat() = default;

  /// Begins at `offset`, where a sample's first header stands; `keys` are the hashes of those
  /// before it. `pool` must outlive the reader.
  virtual std::unique_ptr<SampleReader> Read(std::shared_ptr<const std::string> shard,
                                             BufferPool& pool, uint64_t offset = 0,
                                             std::span<const uint64_t> keys = {}) const = 0;
};

}  // namespace echopipe::internal
