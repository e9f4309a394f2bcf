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

/// How far colours are changed: each factor is drawn from [max(0, 1 - x), 1 + x].
struct ColorJitterSettings {
  double brightness = 0;  ///< 0 to 999
  double contrast = 0;    ///< 0 to 999
  double saturation = 0;  ///< 0 to 999
  double hue = 0;         ///< 0 to 0.5: half a turn to either side
};

/// How far a picture is turned, shifted, scaled and sheared.
struct AffineSettings {
  double degrees = 0;      ///< 0 to 360, to either side
  double translate_x = 0;  ///< 0 to 1, of the width
  double translate_y = 0;  ///< 0 to 1, of the height
  double min_scale = 1;
  double max_scale = 1;
  double shear_degrees = 0;  ///< 0 to 89, to either side
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
  /// Reads a folder of images (a class for each subfolder), shards or manifests (docs/sources.md).
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
  /// Any other setting of the source: Source("tfrecord { key: 'id' }"). Throws kInvalidArgument if
  /// it is none.
  PipelineBuilder& Source(std::string_view text);
  /// Leaves bad examples out; fails when more than `max_count` records are bad.
  PipelineBuilder& SkipBadExamples(std::optional<uint64_t> max_count = {});
  /// Has the next good example take a bad one's place; fails likewise.
  PipelineBuilder& ReplaceBadExamples(std::optional<uint64_t> max_count = {});

  PipelineBuilder& Decode();
  PipelineBuilder& Echo(const EchoSettings& settings);
  PipelineBuilder& RandomResizedCrop(uint32_t height, uint32_t width);
  PipelineBuilder& RandomFlip();
  /// The augmentations, with torchvision's defaults (docs/augmentations.md).
  PipelineBuilder& ColorJitter(const ColorJitterSettings& settings);
  PipelineBuilder& RandomGrayscale(double probability = 0.1);
  PipelineBuilder& GaussianBlur(uint32_t kernel_size, double probability = 1);
  PipelineBuilder& RandomErasing(double probability = 0.5);
  PipelineBuilder& RandomRotation(double degrees);
  PipelineBuilder& RandomAffine(const AffineSettings& settings);
  PipelineBuilder& RandomAutocontrast(double probability = 0.5);
  PipelineBuilder& RandomEqualize(double probability = 0.5);
  PipelineBuilder& RandomPosterize(uint32_t bits, double probability = 0.5);
  PipelineBuilder& RandomSolarize(double threshold, double probability = 0.5);
  PipelineBuilder& RandomInvert(double probability = 0.5);
  PipelineBuilder& RandomAdjustSharpness(double factor, double probability = 0.5);
  PipelineBuilder& RandAugment(uint32_t num_ops = 2, uint32_t magnitude = 9);
  PipelineBuilder& TrivialAugmentWide();
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
