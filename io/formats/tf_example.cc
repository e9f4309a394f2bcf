#include <algorithm>
#include <array>
#include <cstring>

#include <google/protobuf/io/coded_stream.h>

#include <echopipe/io/formats/tf_example.h>
#include <echopipe/proto/tf_example.pb.h>

namespace echopipe::internal {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr size_t kMaxFeatures = 256;
constexpr size_t kMaxNameBytes = size_t{4} << 10;  // of a key too
constexpr uint64_t kMaxFields = 1'000'000;

/// Counts the fields of a serialized Example that parsing would make objects of: a hostile record
/// of two bytes a field would take twenty times its size.
class FieldCount {
 public:
  explicit FieldCount(CodedInputStream& in) : in_(in) {}

  /// False if the bytes are not of the wire format, or the fields too many.
  bool Count(size_t level) {
    while (const uint32_t tag = in_.ReadTag()) {
      if (++fields_ > kMaxFields || !CountIn(level, tag)) return false;
    }
    return in_.ConsumedEntireMessage();
  }
  bool too_many() const { return fields_ > kMaxFields; }

 private:
  // Where in a message the next one may lie: Example, Features, entry, Feature.
  static bool HoldsMessage(size_t level, uint32_t field) {
    using Fields = std::pair<uint32_t, uint32_t>;
    constexpr std::array<Fields, 4> kFirstAndLast = {{{1, 1}, {1, 1}, {2, 2}, {1, 3}}};
    return level < kFirstAndLast.size() && kFirstAndLast[level].first <= field &&
           field <= kFirstAndLast[level].second;
  }

  // Wire types: https://protobuf.dev/programming-guides/encoding. Groups are in no Example.
  bool CountIn(size_t level, uint32_t tag) {
    uint64_t varint = 0;
    int length = 0;
    switch (tag & 7) {
      case 0:
        return in_.ReadVarint64(&varint);
      case 1:
        return in_.Skip(8);
      case 2:
        if (!in_.ReadVarintSizeAsInt(&length)) return false;
        return HoldsMessage(level, tag >> 3) ? CountMessage(level + 1, length) : in_.Skip(length);
      case 5:
        return in_.Skip(4);
      default:
        return false;
    }
  }

  bool CountMessage(size_t level, int length) {
    const CodedInputStream::Limit limit = in_.PushLimit(length);
    if (in_.BytesUntilLimit() != length || !Count(level)) return false;
    in_.PopLimit(limit);
    return true;
  }

  CodedInputStream& in_;
  uint64_t fields_ = 0;
};

// Of a string, or of numbers one behind the other.
template <class Values>
std::span<const uint8_t> AsBytes(const Values& values) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return {reinterpret_cast<const uint8_t*>(values.data()),
          static_cast<size_t>(values.size()) * sizeof(*values.data())};
}

std::shared_ptr<const Buffer> CopyOf(std::span<const uint8_t> bytes, BufferPool& pool) {
  std::shared_ptr<Buffer> copy = pool.Allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy->data());
  return copy;
}

// Each behind its length.
std::shared_ptr<const Buffer> Join(const proto::TfBytesList& list, BufferPool& pool) {
  uint64_t size = 0;
  for (const std::string& value : list.value()) size += sizeof(uint64_t) + value.size();
  std::shared_ptr<Buffer> joined = pool.Allocate(static_cast<size_t>(size));
  uint8_t* out = joined->data();
  for (const std::string& value : list.value()) {
    const uint64_t length = value.size();
    std::memcpy(out, &length, sizeof(length));
    out = std::copy(value.begin(), value.end(), out + sizeof(length));
  }
  return joined;
}

// By name, each once: of those that come again, the last one counts.
std::vector<std::pair<std::string_view, const proto::TfFeature*>> SortedFeatures(
    const proto::TfExample& example) {
  std::vector<std::pair<std::string_view, const proto::TfFeature*>> features;
  for (const proto::TfFeatureEntry& entry : example.features().feature()) {
    features.emplace_back(entry.name(), &entry.feature());
  }
  const auto name = [](const auto& feature) { return feature.first; };
  std::ranges::reverse(features);
  std::ranges::stable_sort(features, {}, name);
  const auto again = std::ranges::unique(features, {}, name);
  features.erase(again.begin(), again.end());
  return features;
}

}  // namespace

TfExampleReader::TfExampleReader(std::shared_ptr<const std::string> shard,
                                 const ExampleFeatures& features, BufferPool& pool, uint64_t offset)
    : shard_(std::move(shard)), wanted_(features), pool_(pool), records_(*shard_, pool, offset) {}

std::optional<Sample> TfExampleReader::Next() {
  if (at_end_) return std::nullopt;
  try {
    const TfRecordReader::Event event = records_.Next();
    if (event.kind == TfRecordReader::Kind::kRecord) return MakeSample(event);
    at_end_ = event.kind == TfRecordReader::Kind::kEnd;
    return std::nullopt;
  } catch (const Error& error) {
    return Fail(error);
  }
}

Sample TfExampleReader::Fail(const Error& error) {
  at_end_ = true;
  return {.key = "@" + std::to_string(records_.record_offset()),
          .offset = records_.record_offset(),
          .next_offset = records_.offset(),
          .ends_shard = true,
          .error = error};
}

Sample TfExampleReader::MakeSample(const TfRecordReader::Event& event) {
  at_end_ = records_.at_shard_end();
  Sample sample{.key = "@" + std::to_string(records_.record_offset()),
                .offset = records_.record_offset(),
                .next_offset = records_.offset(),
                .ends_shard = at_end_,
                .error = event.error};
  if (event.error) return sample;
  try {
    proto::TfExample example;
    Parse(event.data, &example);
    const std::vector<Feature> features = SortedFeatures(example);
    if (std::string key = KeyOf(features); !key.empty()) sample.key = std::move(key);
    sample.record = MakeRecord(features, sample.key);
  } catch (const Error& error) {
    sample.error = error;
  }
  return sample;
}

void TfExampleReader::Parse(std::span<const uint8_t> data, proto::TfExample* example) const {
  const int size = static_cast<int>(data.size());
  CodedInputStream in(data.data(), size);
  FieldCount fields(in);
  const bool counted = fields.Count(0);
  if (fields.too_many()) throw RecordError(ErrorCode::kLimitExceeded, "too many values");
  if (!counted || !example->ParseFromArray(data.data(), size)) {
    throw RecordError(ErrorCode::kCorrupt, "no tf.train.Example");
  }
  if (static_cast<size_t>(example->features().feature_size()) > kMaxFeatures) {
    throw RecordError(ErrorCode::kLimitExceeded, "more than 256 features");
  }
}

// Empty if there is none, and none is asked for.
std::string TfExampleReader::KeyOf(const std::vector<Feature>& features) const {
  const auto found = std::ranges::find(features, KeyName(), &Feature::first);
  if (found != features.end()) {
    const proto::TfInt64List& numbers = found->second->int64_list();
    const proto::TfBytesList& texts = found->second->bytes_list();
    if (numbers.value_size() == 1) return std::to_string(numbers.value(0));
    const bool is_text = texts.value_size() == 1 && !texts.value(0).empty();
    if (is_text && texts.value(0).size() <= kMaxNameBytes) return texts.value(0);
  }
  if (!wanted_.key) return {};
  if (found == features.end()) {
    throw RecordError(ErrorCode::kMissingMember, "no feature " + *wanted_.key);
  }
  throw RecordError(ErrorCode::kCorrupt, "the key " + *wanted_.key + " is no text or number");
}

std::shared_ptr<const Record> TfExampleReader::MakeRecord(const std::vector<Feature>& features,
                                                          const std::string& key) const {
  auto record = std::make_shared<Record>();
  record->uri = shard_;
  record->key = key;
  record->members.push_back({"image", ImageOf(Find(features, wanted_.image))});
  if (!wanted_.label.empty()) record->label = LabelOf(Find(features, wanted_.label));
  for (const auto& [name, feature] : features) {
    if (name == wanted_.image || name == wanted_.label || name == KeyName()) continue;
    if (name == "image") throw RecordError(ErrorCode::kCorrupt, "a second feature is called image");
    if (name.size() > kMaxNameBytes) {
      throw RecordError(ErrorCode::kLimitExceeded, "a feature's name is too long");
    }
    record->members.push_back({std::string(name), BytesOf(*feature)});
  }
  return record;
}

const proto::TfFeature& TfExampleReader::Find(const std::vector<Feature>& features,
                                              const std::string& name) const {
  const auto found = std::ranges::find(features, std::string_view(name), &Feature::first);
  if (found != features.end()) return *found->second;
  throw RecordError(ErrorCode::kMissingMember, "no feature " + name);
}

std::shared_ptr<const Buffer> TfExampleReader::ImageOf(const proto::TfFeature& feature) const {
  if (feature.bytes_list().value_size() != 1) {
    throw RecordError(ErrorCode::kCorrupt, "the image " + wanted_.image + " is not one string");
  }
  return CopyOf(AsBytes(feature.bytes_list().value(0)), pool_);
}

int64_t TfExampleReader::LabelOf(const proto::TfFeature& feature) const {
  if (feature.int64_list().value_size() != 1) {
    throw RecordError(ErrorCode::kCorrupt, "the label " + wanted_.label + " is not one int64");
  }
  return feature.int64_list().value(0);
}

std::shared_ptr<const Buffer> TfExampleReader::BytesOf(const proto::TfFeature& feature) const {
  if (feature.has_float_list()) return CopyOf(AsBytes(feature.float_list().value()), pool_);
  if (feature.has_int64_list()) return CopyOf(AsBytes(feature.int64_list().value()), pool_);
  const proto::TfBytesList& list = feature.bytes_list();
  return list.value_size() == 1 ? CopyOf(AsBytes(list.value(0)), pool_) : Join(list, pool_);
}

Error TfExampleReader::RecordError(ErrorCode code, std::string what) const {
  return Error({.code = code,
                .what = std::move(what),
                .where = *shard_ + ": record at byte " + std::to_string(records_.record_offset())});
}

std::unique_ptr<SampleReader> TfExampleFormat::Read(std::shared_ptr<const std::string> shard,
                                                    BufferPool& pool, uint64_t offset,
                                                    std::span<const uint64_t> /*keys*/) const {
  return std::make_unique<TfExampleReader>(std::move(shard), features_, pool, offset);
}

}  // namespace echopipe::internal
