#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <echopipe/base/buffer.h>
#include <echopipe/base/random.h>
#include <echopipe/pipeline/example.h>

namespace echopipe::proto {
class Stage;
}

namespace echopipe::internal {

/// A box inside a picture, in pixels.
struct PixelBox {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const PixelBox&) const = default;
};

/// What a stage has at hand while it works on one example.
struct StageContext {
  BufferPool& pool;
  RandomKey random_key;  ///< of this seed, identity and stage

  /// The random numbers of this stage for this example: the same whenever it is asked for.
  RandomStream random() const { return RandomStream(random_key); }
};

/// One example-wise step.
///
/// Threads  Apply() runs on many threads at once; a stage is immutable.
/// Errors   What Apply() throws makes the example a bad one; std::bad_alloc and kResourceExhausted
///          end the pipeline.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Changes the example in place. May return false to leave it out (Filter alone does).
  virtual bool Apply(Example& example, const StageContext& context) const = 0;
};

/// A stage that uses only one box of the decoded picture. Directly behind a decode stage, the
/// decoder is told the box, so that it need not decode the rest; the result is the same.
class CropStage : public Stage {
 public:
  virtual std::string_view feature() const = 0;
  /// The box used of a picture of this size (after its orientation was applied); it may be the
  /// whole. A function of the context's random numbers, the same as in Apply().
  virtual PixelBox Box(int height, int width, const StageContext& context) const = 0;
  /// The rest of Apply(), for pixels [box.height, box.width, C] cut out by the decoder.
  virtual void ApplyToBox(Example& example, const StageContext& context) const = 0;
};

/// A stage that can write its feature straight into its place in a batch.
///
/// `Apply` == `Set(feature, tensor of output type and shape, filled by WriteTo)`.
class WritingStage : public Stage {
 public:
  virtual std::string_view feature() const = 0;
  struct Output {
    DType dtype;
    Shape shape;
  };
  /// What WriteTo() will write for this input. Throws if the input does not fit.
  virtual Output OutputFor(const Tensor& input) const = 0;
  virtual void WriteTo(const Tensor& input, uint8_t* out) const = 0;
};

/// The functions a program has given names to, for Map and Filter.
struct UserFunctions {
  std::map<std::string, std::function<void(Example&)>, std::less<>> maps;
  std::map<std::string, std::function<bool(const Example&)>, std::less<>> filters;
};

/// A kind of stage: all that the rest of the program knows about it.
///
/// To add one: a message in pipeline.proto and its field in `Stage`, a file here that defines its
/// StageType, and a line in registry.cc. Validation, factory and command line follow from these.
struct StageType {
  /// The field in proto Stage; also the builder's and the command line's word for it.
  std::string_view name;
  /// One sentence for --help.
  std::string_view help;
  /// The fields of its message as text, for --help: "height: 224 width: 224".
  std::string_view sample;
  /// Throws kInvalidArgument with `where` = the field's name, if the message cannot be meant.
  /// Null if everything can.
  void (*validate)(const proto::Stage& message);
  /// Null for echo and batch, which the graph makes itself.
  std::unique_ptr<Stage> (*make)(const proto::Stage& message, const UserFunctions& functions);
  /// Examples may be left out here even if none is bad.
  bool may_skip = false;
};

/// All kinds of stages, sorted by name.
std::span<const StageType* const> StageTypes();
/// The kind that a message is of, or null if none is set.
const StageType* FindStageType(const proto::Stage& message);

/// Throws kInvalidArgument for a field of a stage's message.
[[noreturn]] void ThrowInvalidField(std::string_view field, std::string_view what, std::string got,
                                    std::string wanted);

/// The feature's name, "image" if none is given.
inline std::string FeatureOrImage(const std::string& feature) {
  return feature.empty() ? "image" : feature;
}

/// Throws kInvalidArgument that names the feature, unless the tensor is pixels: [H, W, C] uint8,
/// H and W in [1, 2^24], C in {1, 3}.
void CheckPixels(const Tensor& tensor, std::string_view feature);
/// Throws kShapeMismatch unless there is one value for all channels or one for each.
void CheckChannels(std::string_view field, size_t values, const Tensor& pixels,
                   std::string_view feature);
/// The feature, checked to be pixels.
const Tensor& GetPixels(const Example& example, std::string_view feature);

}  // namespace echopipe::internal
