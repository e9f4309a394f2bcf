#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <echopipe/pipeline/batch.h>

namespace echopipe::testing {

/// A number for a stream of batches: the same only if all that is delivered is the same, in the
/// same order: tensors, labels, provenance, steps and the ends of epochs.
class BatchHash {
 public:
  void Add(const Batch& batch) {
    Mix(batch.size());
    Mix(batch.step());
    Mix(batch.epoch());
    Mix(batch.end_of_epoch() ? 1 : 0);
    Mix(batch.features().size());
    for (const Batch::Feature& feature : batch.features()) {
      Mix(feature.name);
      Mix(feature.tensor);
    }
    Mix(batch.bytes_features().size());
    for (const Batch::BytesFeature& feature : batch.bytes_features()) {
      Mix(feature.name);
      for (const Tensor& value : feature.values) Mix(value);
    }
    for (const int64_t label : batch.labels()) Mix(static_cast<uint64_t>(label));
    for (size_t i = 0; i < batch.size(); ++i) Mix(batch.provenance(i));
  }
  uint64_t value() const { return hash_; }

 private:
  // FNV-1a, a word at a time, with its high bits folded back.
  void Mix(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3;
    hash_ ^= hash_ >> 32;
  }
  void Mix(std::span<const uint8_t> bytes) {
    Mix(bytes.size());
    for (const uint8_t byte : bytes) Mix(uint64_t{byte});
  }
  void Mix(std::string_view text) {
    Mix(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  void Mix(const Tensor& tensor) {
    Mix(static_cast<uint64_t>(tensor.dtype()));
    for (const int64_t extent : tensor.shape().extents()) Mix(static_cast<uint64_t>(extent));
    Mix(tensor.bytes());
  }
  void Mix(const Provenance& provenance) {
    Mix(provenance.uri ? std::string_view(*provenance.uri) : std::string_view());
    Mix(std::string_view(provenance.key));
    Mix(provenance.identity.epoch);
    Mix(provenance.identity.ordinal);
    for (const uint32_t use : provenance.identity.uses()) Mix(uint64_t{use} + 1);
    Mix(provenance.age);
  }

  uint64_t hash_ = 0xcbf29ce484222325;
};

/// Batches that came in any order, put back into the order of their steps.
class BatchesByStep {
 public:
  void Add(Batch batch) {
    const uint64_t step = batch.step();
    batches_.emplace(step, std::move(batch));
  }
  size_t size() const { return batches_.size(); }
  uint64_t Hash() const {
    BatchHash hash;
    for (const auto& [step, batch] : batches_) hash.Add(batch);
    return hash.value();
  }

 private:
  std::multimap<uint64_t, Batch> batches_;
};

}  // namespace echopipe::testing
