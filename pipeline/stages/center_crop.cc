#include <algorithm>
#include <memory>
#include <string>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

// Where a crop of `wanted` pixels begins; below 0 if it must be padded. torchvision's rounding:
// halves to the even number inside, more padding behind than before.
int CenterOffset(int size, int wanted) {
  const int rest = size - wanted;
  if (rest < 0) return -(-rest / 2);
  return rest / 2 + (rest % 4 == 3 ? 1 : 0);
}

class CenterCrop final : public CropStage {
 public:
  explicit CenterCrop(const proto::CenterCrop& spec)
      : height_(static_cast<int>(spec.height())),
        width_(static_cast<int>(spec.width())),
        feature_(FeatureOrImage(spec.feature())) {}

  bool Apply(Example& example, const StageContext& context) const override {
    // The same for the whole picture as for its box: padding depends on the smaller sides alone.
    ApplyToBox(example, context);
    return true;
  }

  std::string_view feature() const override { return feature_; }

  PixelBox Box(int height, int width, const StageContext&) const override {
    return {.x = std::max(0, CenterOffset(width, width_)),
            .y = std::max(0, CenterOffset(height, height_)),
            .width = std::min(width, width_),
            .height = std::min(height, height_)};
  }

  void ApplyToBox(Example& example, const StageContext& context) const override {
    const Tensor& pixels = GetPixels(example, feature_);
    const PixelBox whole = WholeOf(pixels);
    const PixelBox box = {.x = CenterOffset(whole.width, width_),
                          .y = CenterOffset(whole.height, height_),
                          .width = width_,
                          .height = height_};
    example.Set(feature_, Crop(pixels, box, context.pool));
  }

 private:
  int height_;
  int width_;
  std::string feature_;
};

void Validate(const proto::Stage& message) {
  CheckSpecSide("height", message.center_crop().height());
  CheckSpecSide("width", message.center_crop().width());
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<CenterCrop>(message.center_crop());
}

}  // namespace

extern const StageType kCenterCropStage;
const StageType kCenterCropStage = {
    .name = "center_crop",
    .help = "Cuts out the middle; a smaller picture is first padded with black.",
    .sample = "height: 224 width: 224",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
