#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>

namespace echopipe::internal {

/// Takes a TFRecord file apart as its bytes come, without any I/O of its own.
///
///     length  checksum of length  data  checksum of data      (8, 4, length and 4 bytes)
///
/// Bad data  A record whose data does not fit to its checksum (kCorrupt) or is over 1 GiB
///           (kLimitExceeded) is lost alone: an event with an error.
/// End       The end of the bytes between two records. No bytes at all are no records.
/// Errors    Next() throws and must not be called again, since nobody knows where the next record
///           would begin; `where` is the shard, and the message names the byte. kCorrupt: a length
///           that does not fit to its checksum. kTruncated: the bytes end inside a record.
///           kUnsupported: compressed files, by name.
/// Threads   One caller at a time.
/// Cost      Copies the records alone that lie across what is fed at once.
class TfRecordReader {
 public:
  enum class Kind {
    kNeedBytes,  ///< Feed() more, or Finish()
    kRecord,
    kEnd,  ///< no further record
  };
  struct Event {
    Kind kind = Kind::kNeedBytes;
    std::span<const uint8_t> data = {};  ///< kRecord: until the next call; none if bad
    std::optional<Error> error = {};     ///< kRecord: why its data is lost
  };

  static constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

  /// Begins at `offset` of the shard, where a record begins. `pool` must outlive the reader.
  TfRecordReader(std::string shard, BufferPool& pool, uint64_t offset = 0);

  /// The shard's size, once it is known: a record that would end behind it is an error at once.
  void SetShardSize(uint64_t size) { shard_size_ = size; }
  /// The next bytes; they must live until Next() says kNeedBytes.
  /// Precondition: Next() has said kNeedBytes, or nothing yet.
  void Feed(std::span<const uint8_t> bytes) { input_ = bytes; }
  /// No further bytes will come.
  void Finish() { finished_ = true; }
  Event Next();

  /// Bytes of the shard taken so far.
  uint64_t offset() const { return offset_; }
  /// Where the record given last, or the one under way, begins.
  uint64_t record_offset() const { return record_offset_; }
  /// All of the shard's bytes are taken, as far as its size is known.
  bool at_shard_end() const { return shard_size_ && offset_ >= *shard_size_; }
  /// Bytes copied for the record under way.
  uint64_t held_bytes() const { return filled_; }

 private:
  static constexpr size_t kHeader = 12;
  static constexpr uint64_t kFooter = 4;

  enum class Phase { kHeader, kData, kSkip, kDone };

  std::span<const uint8_t> Take(uint64_t most);
  bool FillHeader();
  void ReadHeader();
  std::optional<std::span<const uint8_t>> TakeRecord();
  Event Check(std::span<const uint8_t> record) const;
  Event TooLarge() const;
  Event NeedBytes();
  [[noreturn]] void Throw(ErrorCode code, std::string what, uint64_t at) const;
  [[noreturn]] void ThrowNoHeader() const;

  std::string shard_;
  BufferPool& pool_;
  std::optional<uint64_t> shard_size_;
  uint64_t offset_;
  uint64_t record_offset_;
  bool finished_ = false;
  std::span<const uint8_t> input_;
  Phase phase_ = Phase::kHeader;
  std::array<uint8_t, kHeader> header_{};
  size_t header_size_ = 0;  // bytes of it there are
  uint64_t length_ = 0;     // of the record's data
  uint64_t skip_ = 0;
  std::shared_ptr<Buffer> copy_;  // of data and its checksum, if they come in pieces
  uint64_t filled_ = 0;           // bytes of it there are, while it is not whole
};

}  // namespace echopipe::internal
