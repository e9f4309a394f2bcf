#include <memory>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

// Chooses the box of a random crop in the coordinates of the picture before it was padded.
class RandomBox {
 public:
  explicit RandomBox(const proto::RandomCrop& spec)
      : height_(static_cast<int>(spec.height())),
        width_(static_cast<int>(spec.width())),
        padding_(static_cast<int>(spec.padding())),
        feature_(FeatureOrImage(spec.feature())) {}

  const std::string& feature() const { return feature_; }

  PixelBox In(int height, int width, const StageContext& context) const {
    const int free_rows = height + 2 * padding_ - height_;
    const int free_columns = width + 2 * padding_ - width_;
    if (free_rows < 0 || free_columns < 0) ThrowTooSmall(height, width);
    RandomStream random = context.random();
    const int y = static_cast<int>(random.Between(0, free_rows));
    const int x = static_cast<int>(random.Between(0, free_columns));
    return {.x = x - padding_, .y = y - padding_, .width = width_, .height = height_};
  }

  void CutFrom(Example& example, const StageContext& context) const {
    const Tensor& pixels = GetPixels(example, feature_);
    const PixelBox whole = WholeOf(pixels);
    const PixelBox box = In(whole.height, whole.width, context);
    example.Set(feature_, Crop(pixels, box, context.pool));
  }

 private:
  [[noreturn]] void ThrowTooSmall(int height, int width) const {
    const auto size = [](int rows, int columns) { return Shape({rows, columns}).ToString(); };
    throw Error({.code = ErrorCode::kShapeMismatch,
                 .what = "the padded picture is smaller than the crop",
                 .where = feature_,
                 .got = size(height + 2 * padding_, width + 2 * padding_),
                 .wanted = "at least " + size(height_, width_)});
  }

  int height_;
  int width_;
  int padding_;
  std::string feature_;
};

class RandomCrop final : public CropStage {
 public:
  explicit RandomCrop(const proto::RandomCrop& spec) : box_(spec) {}

  bool Apply(Example& example, const StageContext& context) const override {
    box_.CutFrom(example, context);
    return true;
  }
  std::string_view feature() const override { return box_.feature(); }
  PixelBox Box(int height, int width, const StageContext& context) const override {
    return box_.In(height, width, context);
  }
  void ApplyToBox(Example&, const StageContext&) const override {}

 private:
  RandomBox box_;
};

// The crop may lie in the padding alone, so there may be no box for a decoder.
class PaddedRandomCrop final : public Stage {
 public:
  explicit PaddedRandomCrop(const proto::RandomCrop& spec) : box_(spec) {}

  bool Apply(Example& example, const StageContext& context) const override {
    box_.CutFrom(example, context);
    return true;
  }

 private:
  RandomBox box_;
};

void Validate(const proto::Stage& message) {
  const proto::RandomCrop& spec = message.random_crop();
  CheckSpecSide("height", spec.height());
  CheckSpecSide("width", spec.width());
  if (spec.padding() > kMaxSpecSide) {
    ThrowInvalidField("padding", "a size in pixels is out of range", std::to_string(spec.padding()),
                      "0.." + std::to_string(kMaxSpecSide));
  }
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  const proto::RandomCrop& spec = message.random_crop();
  if (spec.padding() == 0) return std::make_unique<RandomCrop>(spec);
  return std::make_unique<PaddedRandomCrop>(spec);
}

}  // namespace

extern const StageType kRandomCropStage;
const StageType kRandomCropStage = {
    .name = "random_crop",
    .help = "Cuts out height x width at a random place, after padding with black on every side.",
    .sample = "height: 32 width: 32 padding: 4",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
