#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/resample.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

// BILINEAR reads the four nearest pixels and no more (it does not average what it shrinks; AREA
// and antialias do).
class Resizing final : public Stage {
 public:
  explicit Resizing(const proto::Resize& spec)
      : spec_(spec), feature_(FeatureOrImage(spec.feature())) {}

  bool Apply(Example& example, const StageContext& context) const override {
    const Tensor& pixels = GetPixels(example, feature_);
    const auto [height, width] = TargetSize(pixels.shape()[0], pixels.shape()[1]);
    const auto resize = spec_.antialias() ? &ResizeAntialiased : &Resize;
    example.Set(feature_, resize(pixels, WholeOf(pixels), height, width, spec_.interpolation(),
                                 context.pool));
    return true;
  }

 private:
  std::pair<int, int> TargetSize(int64_t height, int64_t width) const {
    if (spec_.shorter_side() == 0) {
      return {static_cast<int>(spec_.height()), static_cast<int>(spec_.width())};
    }
    const int64_t shorter = spec_.shorter_side();
    // torchvision's int(size * long / short).
    const int64_t longer = shorter * std::max(height, width) / std::min(height, width);
    if (longer > kMaxResizedSide) {
      throw Error({.code = ErrorCode::kLimitExceeded,
                   .what = "the resized picture's longer side is too long",
                   .where = feature_,
                   .got = std::to_string(longer),
                   .wanted = "at most " + std::to_string(kMaxResizedSide)});
    }
    const int a = static_cast<int>(shorter);
    const int b = static_cast<int>(longer);
    return height <= width ? std::pair(a, b) : std::pair(b, a);
  }

  proto::Resize spec_;
  std::string feature_;
};

void Validate(const proto::Stage& message) {
  const proto::Resize& spec = message.resize();
  CheckInterpolation(spec.interpolation());
  CheckAntialias(spec.antialias(), spec.interpolation());
  if (spec.shorter_side() == 0) {
    CheckSpecSide("height", spec.height());
    CheckSpecSide("width", spec.width());
    return;
  }
  CheckSpecSide("shorter_side", spec.shorter_side());
  if (spec.height() != 0 || spec.width() != 0) {
    ThrowInvalidField("shorter_side", "height and width are given too",
                      std::to_string(spec.shorter_side()), "either both of them or shorter_side");
  }
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<Resizing>(message.resize());
}

}  // namespace

extern const StageType kResizeStage;
const StageType kResizeStage = {
    .name = "resize",
    .help = "Resizes to height x width, or so that the shorter side is shorter_side.",
    .sample = "height: 224 width: 224 interpolation: BILINEAR",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
