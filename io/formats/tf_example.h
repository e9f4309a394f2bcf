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

#include <echopipe/io/formats/shard_format.h>
#include <echopipe/io/formats/tfrecord_reader.h>

namespace echopipe::proto {
class TfExample;
class TfFeature;
}  // namespace echopipe::proto

namespace echopipe::internal {

/// Which features of a tf.train.Example become what.
struct ExampleFeatures {
  std::string image = "image/encoded";
  std::string label = "image/class/label";  ///< empty: records have no label
  /// Set: each record must have it. Else it is `kUsualKey`, where that is one.
  std::optional<std::string> key = {};

  static constexpr std::string_view kUsualKey = "image/filename";
};

/// Takes the samples out of a TFRecord shard of tf.train.Example as its bytes come.
///
/// Key      The feature `key`, text or a number; without it "@" and the record's offset.
/// Members  The feature `image`, one string, becomes the feature "image"; `label`, one int64, the
///          label. All others pass through under their names, sorted bytewise: a string as it is,
///          floats and int64s one behind the other (little-endian, 4 and 8 bytes), several strings
///          (or none) each behind its length, 8 bytes little-endian.
/// Errors   As a SampleReader's. kMissingMember; kCorrupt: bytes that are no tf.train.Example,
///          features of another type than wanted; kLimitExceeded: over 256 features, or a million
///          values that are not packed. What TfRecordReader tells of data makes that record a bad
///          one; what it throws gives a bad sample and ends the shard.
/// Cost     Parses with Protobuf: two copies of the bytes.
class TfExampleReader final : public SampleReader {
 public:
  TfExampleReader(std::shared_ptr<const std::string> shard, const ExampleFeatures& features,
                  BufferPool& pool, uint64_t offset = 0);

  void SetShardSize(uint64_t size) override { records_.SetShardSize(size); }
  void Feed(std::span<const uint8_t> bytes) override { records_.Feed(bytes); }
  void Finish() override { records_.Finish(); }
  std::optional<Sample> Next() override;
  bool at_end() const override { return at_end_; }
  Sample Fail(const Error& error) override;
  uint64_t offset() const override { return records_.offset(); }
  uint64_t held_bytes() const override { return records_.held_bytes(); }

 private:
  using Feature = std::pair<std::string_view, const proto::TfFeature*>;

  Sample MakeSample(const TfRecordReader::Event& event);
  void Parse(std::span<const uint8_t> data, proto::TfExample* example) const;
  std::shared_ptr<const Record> MakeRecord(const std::vector<Feature>& features,
                                           const std::string& key) const;
  std::string KeyOf(const std::vector<Feature>& features) const;
  std::string_view KeyName() const { return wanted_.key ? *wanted_.key : wanted_.kUsualKey; }
  const proto::TfFeature& Find(const std::vector<Feature>& features, const std::string& name) const;
  std::shared_ptr<const Buffer> ImageOf(const proto::TfFeature& feature) const;
  int64_t LabelOf(const proto::TfFeature& feature) const;
  std::shared_ptr<const Buffer> BytesOf(const proto::TfFeature& feature) const;
  Error RecordError(ErrorCode code, std::string what) const;

  std::shared_ptr<const std::string> shard_;
  ExampleFeatures wanted_;
  BufferPool& pool_;
  TfRecordReader records_;
  bool at_end_ = false;
};

/// TFRecord shards of tf.train.Example.
class TfExampleFormat final : public ShardFormat {
 public:
  explicit TfExampleFormat(ExampleFeatures features) : features_(std::move(features)) {}

  std::unique_ptr<SampleReader> Read(std::shared_ptr<const std::string> shard, BufferPool& pool,
                                     uint64_t offset,
                                     std::span<const uint64_t> keys) const override;

 private:
  ExampleFeatures features_;
};

}  // namespace echopipe::internal
