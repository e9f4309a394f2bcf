#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echopipe::testing {

/// Makes TFRecord files record by record, right ones and wrong ones.
class TfRecordBuilder {
 public:
  TfRecordBuilder& AddRecord(std::string_view data);
  /// A length and its checksum, without the data.
  TfRecordBuilder& AddLength(uint64_t length);
  TfRecordBuilder& AddBytes(std::string_view bytes);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Makes a serialized tf.train.Example.
class ExampleBuilder {
 public:
  ExampleBuilder& Add(const std::string& name, const std::vector<std::string>& texts);
  ExampleBuilder& AddFloats(const std::string& name, const std::vector<float>& numbers);
  ExampleBuilder& AddInts(const std::string& name, const std::vector<int64_t>& numbers);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// An Example with the features that a source looks for by default.
std::string MakeExample(const std::string& key, const std::string& image, int64_t label);

}  // namespace echopipe::testing
