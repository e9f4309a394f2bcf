#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/tensor.h>

namespace echopipe {

/// What an item is, on any machine, in any run: its place in the data and its use at each echo
/// point passed so far.
struct Identity {
  static constexpr size_t kMaxEchoPoints = 8;

  uint64_t epoch = 0;
  uint64_t ordinal = 0;  ///< position in the epoch's order
  uint32_t echo_points = 0;
  std::array<uint32_t, kMaxEchoPoints> use{};  ///< 0 is the fresh use; [echo_points] are set

  std::span<const uint32_t> uses() const { return {use.data(), echo_points}; }
  bool operator==(const Identity&) const = default;
};

/// A record's own place in the data.
struct RecordOrigin {
  uint64_t epoch = 0;
  uint64_t ordinal = 0;
  bool operator==(const RecordOrigin&) const = default;
};

/// Where an example comes from.
struct Provenance {
  std::shared_ptr<const std::string> uri;  ///< the file, or the shard that holds it
  std::string key;
  Identity identity;
  uint64_t age = 0;  ///< draws at the last echo point since this item's fresh use there
  /// A picture of it was truncated, and is gray or coarse where data are missing
  /// (Decode.accept_truncated).
  bool partial = false;
  /// Set if what belongs here is bad and was replaced: the place of the record that stands in for
  /// it. Uri and key are that record's; identity and age are of this place.
  std::optional<RecordOrigin> stands_in = std::nullopt;
};

/// One item on its way through the stages: named tensors and where they come from.
///
/// A copy shares the tensors, which nobody can change; stages put new ones in their place.
/// Threads: one writer at a time.
class ECHOPIPE_EXPORT Example {
 public:
  struct Feature {
    std::string name;
    Tensor tensor;
  };

  /// Null if there is no such feature.
  const Tensor* Find(std::string_view name) const;
  /// Throws kInvalidArgument that names the feature and those there are.
  const Tensor& Get(std::string_view name) const;
  /// Adds a feature, or takes another's place.
  void Set(std::string_view name, Tensor tensor);
  std::span<const Feature> features() const { return features_; }

  std::optional<int64_t> label() const { return label_; }
  void set_label(std::optional<int64_t> label) { label_ = label; }

  const Provenance& provenance() const { return provenance_; }
  Provenance& mutable_provenance() { return provenance_; }

 private:
  std::vector<Feature> features_;
  std::optional<int64_t> label_;
  Provenance provenance_;
};

}  // namespace echopipe
