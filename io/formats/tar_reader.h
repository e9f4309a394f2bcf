#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <echopipe/base/error.h>

namespace echopipe::internal {

/// Takes a tar archive apart as its bytes come, without any I/O of its own.
///
///     bytes in order  -->  [ TarReader ]  -->  member, data, data, ..., member, data, ..., end
///
/// Read      Regular files of ustar, GNU (long names, base-256 sizes), POSIX pax (path and size of
///           single members and global ones) and v7 archives. Folders, links and devices are passed
///           over.
/// End       Two zero blocks, or the end of the bytes between two members.
/// Errors    Next() throws and must not be called again; `where` is the shard, and the message
/// names
///           the byte. kTruncated: the bytes end inside a member. kCorrupt: bytes that are no tar
///           header, or contradict each other. kEmpty: no bytes at all. kUnsupported: sparse and
///           multi-volume members, compressed archives, each by name. kLimitExceeded: a name over
///           64 KiB, a pax header over 1 MiB, a member over 1 GiB.
/// Threads   One caller at a time.
/// Cost      Copies headers alone; holds at most one extension header.
class TarReader {
 public:
  enum class Kind {
    kNeedBytes,  ///< Feed() more, or Finish()
    kMember,     ///< a regular file begins; `size` bytes of data follow
    kData,       ///< the next bytes of the member begun last
    kEnd,        ///< no further member
  };
  struct Event {
    Kind kind = Kind::kNeedBytes;
    std::string path = {};            ///< kMember
    uint64_t size = 0;                ///< kMember
    uint64_t header_offset = 0;       ///< kMember: where its first header stands in the shard
    std::span<const uint8_t> data{};  ///< kData: inside what was fed
  };

  static constexpr uint64_t kMaxMemberBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMaxNameBytes = uint64_t{64} << 10;
  static constexpr uint64_t kMaxPaxBytes = uint64_t{1} << 20;

  /// Begins at `offset` of the shard, where a header stands.
  explicit TarReader(std::string shard, uint64_t offset = 0);

  /// The shard's size, once it is known: a member that would end behind it is an error at once.
  void SetShardSize(uint64_t size) { shard_size_ = size; }
  /// The next bytes; they must live until Next() says kNeedBytes.
  /// Precondition: Next() has said kNeedBytes, or nothing yet.
  void Feed(std::span<const uint8_t> bytes) { input_ = bytes; }
  /// No further bytes will come.
  void Finish() { finished_ = true; }
  Event Next();

  /// Bytes of the shard taken so far.
  uint64_t offset() const { return offset_; }
  /// A global pax header rules the path or the size of all members to come.
  bool has_global_overrides() const { return global_.path || global_.size; }

 private:
  static constexpr size_t kBlock = 512;
  using Block = std::array<uint8_t, kBlock>;

  enum class Phase { kHeader, kExtension, kData, kDone };
  /// What extension headers say about a member.
  struct Overrides {
    std::optional<std::string> path;
    std::optional<uint64_t> size;
  };

  std::span<const uint8_t> Take(uint64_t most);
  bool SkipPadding();
  bool FillBlock();
  bool FillExtension();
  Event NeedBytes();
  std::optional<Event> ReadHeader();
  std::optional<Event> ReadMember(char type, uint64_t size);
  bool ReadZeroBlock();
  void BeginExtension(char type, uint64_t size);
  void EndExtension();
  void ReadPax(Overrides* overrides);
  void SetPax(std::string_view key, std::string_view value, Overrides* overrides);
  void CheckHeader() const;
  void CheckEndsInShard(uint64_t size) const;
  uint64_t ParseSize() const;
  std::string HeaderPath() const;
  std::string_view Field(size_t begin, size_t size) const;
  [[noreturn]] void Throw(ErrorCode code, std::string what, uint64_t at) const;
  [[noreturn]] void ThrowNoHeader() const;

  std::string shard_;
  std::optional<uint64_t> shard_size_;
  uint64_t offset_;
  uint64_t header_offset_;  // of the block being read
  uint64_t member_offset_;  // of the first header of the member to come
  bool at_first_block_;     // of the shard
  bool finished_ = false;
  std::span<const uint8_t> input_;
  Phase phase_ = Phase::kHeader;
  uint64_t data_left_ = 0;  // of the member or extension
  uint64_t skip_ = 0;       // to the next header, once data_left_ is 0
  Block block_{};
  size_t block_size_ = 0;    // bytes of it there are
  bool zero_block_ = false;  // the last one was
  char extension_type_ = 0;
  std::string extension_;
  bool extended_ = false;  // extension headers wait for their member
  std::optional<std::string> long_name_;
  Overrides member_;
  Overrides global_;
};

}  // namespace echopipe::internal
