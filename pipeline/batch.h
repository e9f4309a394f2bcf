#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/tensor.h>

namespace echopipe {

/// Examples stacked along a new first axis, and where each comes from.
///
/// Sharing  Copies, and the repeats of a batch echo, share the same tensors; nobody can change
/// them. Threads  Immutable.
class ECHOPIPE_EXPORT Batch {
 public:
  /// A feature that is stacked: its tensor is [size(), ...].
  using Feature = Example::Feature;
  /// A feature of encoded bytes, one tensor [n] for each example.
  struct BytesFeature {
    std::string name;
    std::vector<Tensor> values;
  };
  /// What the repeats of a batch share.
  struct Content {
    std::vector<Feature> features;
    std::vector<BytesFeature> bytes_features;
    std::vector<int64_t> labels;
    std::vector<Provenance> provenance;
    uint64_t epoch = 0;
  };
  /// What is a single delivery's own.
  struct Delivery {
    uint64_t step = 0;
    bool end_of_epoch = false;
    std::vector<uint32_t> uses;  ///< at each echo point after batch
  };

  Batch(std::shared_ptr<const Content> content, Delivery delivery);

  /// Examples in it; the last batch of an epoch may be smaller.
  size_t size() const { return content_->provenance.size(); }
  std::span<const Feature> features() const { return content_->features; }
  std::span<const BytesFeature> bytes_features() const { return content_->bytes_features; }
  /// The stacked feature. Throws kInvalidArgument that names those there are.
  const Tensor& Get(std::string_view name) const;
  /// [size()]; -1 for an example without a label.
  std::span<const int64_t> labels() const { return content_->labels; }
  /// Where example i comes from, with its use at every echo point. Precondition: i < size().
  Provenance provenance(size_t i) const;

  /// Another copy of this batch holds the same examples, or the pipeline does: for an echo of it.
  bool is_shared() const;

  /// The how-manieth batch of the run, from 0.
  uint64_t step() const { return delivery_.step; }
  /// The epoch that its last example's place in the stream belongs to, from 0.
  uint64_t epoch() const { return content_->epoch; }
  /// True for the last batch that holds a part of its epoch (or each steps_per_epoch-th).
  bool end_of_epoch() const { return delivery_.end_of_epoch; }

 private:
  std::shared_ptr<const Content> content_;
  Delivery delivery_;
};

}  // namespace echopipe
