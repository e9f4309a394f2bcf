#include <cstring>

#include <echopipe/io/formats/crc32c.h>
#include <echopipe/proto/tf_example.pb.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::testing {
namespace {

template <class T>
std::string LittleEndian(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string Checksum(std::string_view bytes) {
  return LittleEndian(
      internal::MaskedCrc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
}

// Serialized messages one behind the other are merged when they are parsed.
std::string Serialized(const std::string& name, const proto::TfFeature& feature) {
  proto::TfExample example;
  proto::TfFeatureEntry& entry = *example.mutable_features()->add_feature();
  entry.set_name(name);
  *entry.mutable_feature() = feature;
  return example.SerializeAsString();
}

}  // namespace

TfRecordBuilder& TfRecordBuilder::AddLength(uint64_t length) {
  const std::string bytes = LittleEndian(length);
  bytes_ += bytes + Checksum(bytes);
  return *this;
}

TfRecordBuilder& TfRecordBuilder::AddRecord(std::string_view data) {
  AddLength(data.size());
  bytes_ += data;
  bytes_ += Checksum(data);
  return *this;
}

TfRecordBuilder& TfRecordBuilder::AddBytes(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

ExampleBuilder& ExampleBuilder::Add(const std::string& name,
                                    const std::vector<std::string>& texts) {
  proto::TfFeature feature;
  *feature.mutable_bytes_list()->mutable_value() = {texts.begin(), texts.end()};
  bytes_ += Serialized(name, feature);
  return *this;
}

ExampleBuilder& ExampleBuilder::AddFloats(const std::string& name,
                                          const std::vector<float>& numbers) {
  proto::TfFeature feature;
  *feature.mutable_float_list()->mutable_value() = {numbers.begin(), numbers.end()};
  bytes_ += Serialized(name, feature);
  return *this;
}

ExampleBuilder& ExampleBuilder::AddInts(const std::string& name,
                                        const std::vector<int64_t>& numbers) {
  proto::TfFeature feature;
  *feature.mutable_int64_list()->mutable_value() = {numbers.begin(), numbers.end()};
  bytes_ += Serialized(name, feature);
  return *this;
}

std::string MakeExample(const std::string& key, const std::string& image, int64_t label) {
  return ExampleBuilder()
      .Add("image/filename", {key})
      .Add("image/encoded", {image})
      .AddInts("image/class/label", {label})
      .bytes();
}

}  // namespace echopipe::testing
