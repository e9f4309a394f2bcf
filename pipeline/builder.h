#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/spec.h>

namespace echopipe {

/// Options of an adaptive echo point; what is not set takes the default (proto/pipeline.proto).
struct AdaptiveSettings {
  std::optional<uint32_t> max_factor = {};  ///< most uses of an item
  std::optional<std::chrono::duration<double, std::milli>> low_water = {};
  std::optional<uint64_t> max_age = {};  ///< most draws since an item's first use
};

/// Options of an echo point; what is not set takes the default (proto/pipeline.proto).
struct EchoSettings {
  /// A decimal from 1 to 1000 with at most six places: 4/3 is 1.333333. Default 1, if not adaptive.
  std::optional<double> factor = {};
  std::optional<uint64_t> shuffle_buffer = {};
  std::optional<uint64_t> spacing = {};
  bool grouped = false;  ///< an item's uses side by side
  bool drain_each_epoch = false;
  std::optional<AdaptiveSettings> adaptive = {};  ///< instead of a factor
};

/// How examples become batches.
struct BatchSettings {
  enum class Remainder { kKeep, kDrop };
  uint64_t size = 1;
  Remainder remainder = Remainder::kKeep;
  bool across_epochs = false;
};

/// Makes a PipelineSpec, a stage a call.
///
///     PipelineSpec spec = PipelineBuilder("photos/")
///                             .ShuffleFully()
///                             .Epochs(90)
///                             .Decode()
///                             .Echo({.factor = 3, .shuffle_buffer = 4096})
///                             .RandomResizedCrop(224, 224)
///                             .RandomFlip()
///                             .Normalize()
///                             .Batch({.size = 256})
///                             .Build();
///
/// The common settings have methods; Stage() takes any stage in the spec's text form.
/// Threads: one caller at a time.
class ECHOPIPE_EXPORT PipelineBuilder {
 public:
  /// Reads a folder of images (a class for each subfolder), or tar shards.
  explicit PipelineBuilder(std::string uri);
  explicit PipelineBuilder(std::vector<std::string> uris);
  ~PipelineBuilder();
  PipelineBuilder(const PipelineBuilder&) = delete;
  PipelineBuilder& operator=(const PipelineBuilder&) = delete;

  PipelineBuilder& Seed(uint64_t seed);
  /// A permutation of all records, anew each epoch.
  PipelineBuilder& ShuffleFully();
  /// Shards are shuffled, then records through a buffer of this many.
  PipelineBuilder& ShuffleWindow(uint64_t records);
  /// Passes over the data; 0 is endless.
  PipelineBuilder& Epochs(uint64_t epochs);
  /// Leaves bad examples out; fails when more than `max_count` records are bad.
  PipelineBuilder& SkipBadExamples(std::optional<uint64_t> max_count = {});

  PipelineBuilder& Decode();
  PipelineBuilder& Echo(const EchoSettings& settings);
  PipelineBuilder& RandomResizedCrop(uint32_t height, uint32_t width);
  PipelineBuilder& RandomFlip();
  PipelineBuilder& Normalize();
  /// Throws kInvalidArgument if the function is empty, or another map (filter) has that name. To
  /// call one twice: Stage("map { function: 'name' }").
  PipelineBuilder& Map(std::string name, MapFunction function);
  PipelineBuilder& Filter(std::string name, FilterFunction function);
  PipelineBuilder& Batch(const BatchSettings& settings);
  /// Any stage: Stage("resize { shorter_side: 256 }"). Throws kInvalidArgument if it is none.
  PipelineBuilder& Stage(std::string_view text);

  /// The spec. Throws kInvalidArgument if it is not a whole pipeline.
  PipelineSpec Build() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace echopipe
