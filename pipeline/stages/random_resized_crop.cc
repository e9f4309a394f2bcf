#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/pipeline/stages/resample.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

Range ScaleOf(const proto::RandomResizedCrop& spec) {
  return {.min = spec.has_min_scale() ? spec.min_scale() : 0.08,
          .max = spec.has_max_scale() ? spec.max_scale() : 1.0};
}

Range RatioOf(const proto::RandomResizedCrop& spec) {
  return {.min = spec.has_min_ratio() ? spec.min_ratio() : 3.0 / 4.0,
          .max = spec.has_max_ratio() ? spec.max_ratio() : 4.0 / 3.0};
}

// Source: torchvision, RandomResizedCrop.get_params (halves are rounded to even, as Python does).
class RandomResizedCrop final : public CropStage {
 public:
  explicit RandomResizedCrop(const proto::RandomResizedCrop& spec)
      : spec_(spec),
        scale_(ScaleOf(spec)),
        ratio_(RatioOf(spec)),
        log_ratio_{.min = std::log(ratio_.min), .max = std::log(ratio_.max)},
        feature_(FeatureOrImage(spec.feature())) {}

  bool Apply(Example& example, const StageContext& context) const override {
    const PixelBox whole = WholeOf(GetPixels(example, feature_));
    ResizeBox(example, Box(whole.height, whole.width, context), context);
    return true;
  }

  std::string_view feature() const override { return feature_; }

  PixelBox Box(int height, int width, const StageContext& context) const override {
    constexpr int kTries = 10;
    RandomStream random = context.random();
    for (int i = 0; i < kTries; ++i) {
      if (const auto box = TryBox(height, width, random)) return *box;
    }
    return CentralBox(height, width);
  }

  void ApplyToBox(Example& example, const StageContext& context) const override {
    ResizeBox(example, WholeOf(GetPixels(example, feature_)), context);
  }

 private:
  std::optional<PixelBox> TryBox(int height, int width, RandomStream& random) const {
    const double area =
        static_cast<double>(height) * width * random.Uniform(scale_.min, scale_.max);
    const double ratio = std::exp(random.Uniform(log_ratio_.min, log_ratio_.max));
    const double box_width = std::nearbyint(std::sqrt(area * ratio));
    const double box_height = std::nearbyint(std::sqrt(area / ratio));
    if (box_width < 1 || box_width > width || box_height < 1 || box_height > height) return {};
    PixelBox box = {.width = static_cast<int>(box_width), .height = static_cast<int>(box_height)};
    box.y = static_cast<int>(random.Between(0, height - box.height));
    box.x = static_cast<int>(random.Between(0, width - box.width));
    return box;
  }

  // The largest box in the middle whose ratio is allowed, at least one pixel.
  PixelBox CentralBox(int height, int width) const {
    const double ratio = static_cast<double>(width) / height;
    PixelBox box = {.width = width, .height = height};
    if (ratio < ratio_.min) {
      box.height = std::clamp(static_cast<int>(std::nearbyint(width / ratio_.min)), 1, height);
    } else if (ratio > ratio_.max) {
      box.width = std::clamp(static_cast<int>(std::nearbyint(height * ratio_.max)), 1, width);
    }
    box.y = (height - box.height) / 2;
    box.x = (width - box.width) / 2;
    return box;
  }

  void ResizeBox(Example& example, const PixelBox& box, const StageContext& context) const {
    const auto resize = spec_.antialias() ? &ResizeAntialiased : &Resize;
    example.Set(feature_,
                resize(example.Get(feature_), box, static_cast<int>(spec_.height()),
                       static_cast<int>(spec_.width()), spec_.interpolation(), context.pool));
  }

  proto::RandomResizedCrop spec_;
  Range scale_;
  Range ratio_;
  Range log_ratio_;
  std::string feature_;
};

void Validate(const proto::Stage& message) {
  const proto::RandomResizedCrop& spec = message.random_resized_crop();
  CheckSpecSide("height", spec.height());
  CheckSpecSide("width", spec.width());
  CheckInterpolation(spec.interpolation());
  CheckAntialias(spec.antialias(), spec.interpolation());
  CheckRange("min_scale", "max_scale", ScaleOf(spec), {.min = 1e-6, .max = 1}, "1e-6..1");
  CheckRange("min_ratio", "max_ratio", RatioOf(spec), {.min = 1e-3, .max = 1e3}, "1e-3..1e3");
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomResizedCrop>(message.random_resized_crop());
}

}  // namespace

extern const StageType kRandomResizedCropStage;
const StageType kRandomResizedCropStage = {
    .name = "random_resized_crop",
    .help = "Cuts out a box of random area, aspect ratio and place, and resizes it.",
    .sample =
        "height: 224 width: 224 min_scale: 0.08 max_scale: 1 min_ratio: 0.75 "
        "max_ratio: 1.3333333333333333 interpolation: BILINEAR",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
