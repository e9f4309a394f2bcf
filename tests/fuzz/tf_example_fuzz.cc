// Records of tf.train.Example behind checksums that fit. Lines: the features that are image, label
// ("" for none) and key ("" for the usual one); the rest is the serialized message.
//
// Parses: io/formats/tf_example.cc

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/formats/tf_example.h>
#include <echopipe/proto/tf_example.pb.h>
#include <echopipe/tests/fuzz/fuzz_input.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace {

using echopipe::BufferPool;
using echopipe::ErrorCode;
using echopipe::Record;
using echopipe::internal::ExampleFeatures;
using echopipe::internal::Sample;
using echopipe::internal::TfExampleReader;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;
using echopipe::testing::TfRecordBuilder;

const auto kShard = std::make_shared<const std::string>("shard");

std::vector<Sample> SamplesOf(const std::string& shard, const ExampleFeatures& features,
                              BufferPool& pool) {
  TfExampleReader reader(kShard, features, pool);
  reader.SetShardSize(shard.size());
  reader.Feed({reinterpret_cast<const uint8_t*>(shard.data()), shard.size()});
  std::vector<Sample> samples;
  while (std::optional<Sample> sample = reader.Next()) samples.push_back(*std::move(sample));
  Require(reader.at_end());
  return samples;
}

bool AreEqual(const Record& a, const Record& b) {
  const auto equal = [](const Record::Member& one, const Record::Member& other) {
    return one.name == other.name && std::ranges::equal(one.bytes->bytes(), other.bytes->bytes());
  };
  return a.label == b.label && std::ranges::equal(a.members, b.members, equal);
}

// Keys may be offsets, and these differ.
bool AreEqual(const Sample& a, const Sample& b) {
  if (a.error.has_value() != b.error.has_value()) return false;
  return a.error ? a.error->code() == b.error->code() : AreEqual(*a.record, *b.record);
}

// The image, then the others in the order of their names, each once.
void CheckRecord(const Record& record, const ExampleFeatures& features) {
  Require(!record.key.empty() && record.label.has_value() == !features.label.empty());
  Require(!record.members.empty() && record.members.front().name == "image");
  const auto others = std::span(record.members).subspan(1);
  const auto rises = [](const Record::Member& a, const Record::Member& b) {
    return a.name < b.name;
  };
  Require(std::ranges::is_sorted(others, rises));
  Require(std::ranges::adjacent_find(others, {}, &Record::Member::name) == others.end());
  for (const Record::Member& member : others) {
    Require(member.name != "image" && member.name != features.image);
    Require(features.label.empty() || member.name != features.label);
  }
}

void CheckError(ErrorCode code) {
  Require(code == ErrorCode::kCorrupt || code == ErrorCode::kMissingMember ||
          code == ErrorCode::kLimitExceeded);
}

// What Protobuf reads in a message, if it is one.
struct Parsed {
  std::string anew = {};  ///< written otherwise: packed, known fields alone, in their order
  bool has_unknown_fields = false;
};

std::optional<Parsed> Parse(std::string_view message) {
  echopipe::proto::TfExample example;
  if (!example.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return std::nullopt;
  }
  const size_t size = example.ByteSizeLong();
  example.DiscardUnknownFields();
  return Parsed{.anew = example.SerializeAsString(),
                .has_unknown_fields = example.ByteSizeLong() != size};
}

void CheckMessage(std::string_view message, const ExampleFeatures& features) {
  BufferPool pool;
  const std::optional<Parsed> parsed = Parse(message);
  TfRecordBuilder shard;
  shard.AddRecord(message).AddRecord(message).AddRecord(parsed ? parsed->anew : "");
  const std::vector<Sample> samples = SamplesOf(shard.bytes(), features, pool);
  Require(samples.size() == 3 && samples.back().ends_shard);
  Require(AreEqual(samples[0], samples[1]));
  if (samples[0].error) {
    CheckError(samples[0].error->code());
    // Unknown fields may be of kinds that no Example has.
    if (parsed && !parsed->has_unknown_fields) Require(AreEqual(samples[0], samples[2]));
    return;
  }
  CheckRecord(*samples[0].record, features);
  Require(parsed && AreEqual(samples[0], samples[2]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  ExampleFeatures features;
  features.image = input.TakeLine();
  features.label = input.TakeLine();
  if (const std::string_view key = input.TakeLine(); !key.empty()) features.key = key;
  // A spec in which two are one is none.
  if (features.image == features.label || features.image == features.key) return 0;
  CheckMessage(input.TakeRest(), features);
  return 0;
}
