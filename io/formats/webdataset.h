#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/formats/shard_format.h>
#include <echopipe/io/formats/tar_reader.h>
#include <echopipe/io/source.h>

namespace echopipe::internal {

/// Which members of a sample become what; extensions in lower case.
struct SampleMembers {
  std::vector<std::string> image = {"jpg", "jpeg", "png", "webp", "bmp"};  ///< the first wins
  std::string label = "cls";  ///< empty: samples have no label
};

/// A set of 64-bit hashes: 16 bytes each, or less.
class HashSet {
 public:
  /// False if it was there already.
  bool Insert(uint64_t hash);

 private:
  void Place(uint64_t hash);
  void Grow();

  std::vector<uint64_t> slots_;  // 0 is free
  size_t size_ = 0;
};

/// Takes the samples out of a WebDataset shard as its bytes come.
///
/// Samples  Adjacent members that share the path up to the first dot of its last component, which
///          is the key; the rest is the extension. Names without an extension or with a leading
///          dot are passed over.
/// Members  The image member becomes the feature "image", the label a number; all others pass
///          through, named by their extension. Extensions are compared without regard to case.
/// Errors   As a SampleReader's. kMissingMember; kCorrupt: a label that is no
///          integer, an extension that comes twice, a key that comes back after other samples;
///          kLimitExceeded: over 1 GiB or 256 members. What TarReader throws makes the sample under
///          way a bad one (or gives one without a key) and ends the shard. So does kUnsupported:
///          global pax headers that set path or size, since such samples could not be found again
///          by their offset.
/// Cost     One copy of the bytes, into a buffer for each member; 16 bytes for each key.
class WebDatasetReader final : public SampleReader {
 public:
  WebDatasetReader(std::shared_ptr<const std::string> shard, const SampleMembers& members,
                   BufferPool& pool, uint64_t offset = 0, std::span<const uint64_t> keys = {});

  void SetShardSize(uint64_t size) override { tar_.SetShardSize(size); }
  void Feed(std::span<const uint8_t> bytes) override { tar_.Feed(bytes); }
  void Finish() override { tar_.Finish(); }
  std::optional<Sample> Next() override;
  bool at_end() const override { return at_end_; }
  Sample Fail(const Error& error) override;
  uint64_t offset() const override { return tar_.offset(); }
  uint64_t held_bytes() const override { return sample_ ? sample_->filled : 0; }

 private:
  struct Member {
    std::string extension;
    std::string lower;  // the extension in lower case
    std::shared_ptr<Buffer> bytes;
    size_t filled = 0;
  };
  /// The sample under way.
  struct Pending {
    std::string key;
    uint64_t key_hash = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;   // of the members, as their headers say
    uint64_t filled = 0;  // of these, so far
    std::vector<Member> members = {};
    std::optional<Error> error = {};
  };

  static constexpr size_t kNone = ~size_t{0};  // no such member

  std::optional<Sample> Step(const TarReader::Event& event);
  std::optional<Sample> OnMember(const TarReader::Event& event);
  void AddMember(std::string extension, uint64_t size);
  void OnData(std::span<const uint8_t> data);
  Sample Complete();
  std::shared_ptr<const Record> MakeRecord();
  size_t FindMember(std::string_view extension) const;
  size_t FindImage() const;
  int64_t ParseLabel(const Member& member) const;
  Error SampleError(ErrorCode code, std::string what, std::string got = {}) const;
  void MarkBad(Error error);

  std::shared_ptr<const std::string> shard_;
  SampleMembers wanted_;
  BufferPool& pool_;
  TarReader tar_;
  HashSet keys_;
  std::optional<Pending> sample_;
  bool in_member_ = false;  // the data to come are of sample_'s last member
  bool at_end_ = false;
};

/// Tar shards of samples.
class WebDatasetFormat final : public ShardFormat {
 public:
  explicit WebDatasetFormat(SampleMembers members) : members_(std::move(members)) {}

  std::unique_ptr<SampleReader> Read(std::shared_ptr<const std::string> shard, BufferPool& pool,
                                     uint64_t offset,
                                     std::span<const uint64_t> keys) const override;

 private:
  SampleMembers members_;
};

}  // namespace echopipe::internal
