#include <memory>
#include <optional>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/affine.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

constexpr SpreadField kDegrees = {"degrees", 0, {.min = -360, .max = 360}};
constexpr int64_t kMaxPixels = int64_t{1} << 28;

// Source: torchvision, RandomRotation.
class RandomRotation final : public RandomPixelStage {
 public:
  explicit RandomRotation(const proto::RandomRotation& spec)
      : RandomPixelStage(spec.feature(), 1),
        degrees_(kDegrees.RangeOf(spec.degrees())),
        expand_(spec.expand()),
        center_(PlaceOf(spec.center())),
        sampling_(SamplingOf(spec, {0})) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    CheckFillChannels(sampling_, pixels, feature());
    const RotationParameters parameters = {
        .degrees = degrees_.Draw(random), .expand = expand_, .center = center_};
    CheckSize(RotatedShape(pixels.shape(), parameters));
    return Rotate(pixels, parameters, sampling_, pool);
  }

  void CheckSize(const Shape& shape) const {
    if (!expand_ || shape[0] * shape[1] <= kMaxPixels) return;
    throw Error({.code = ErrorCode::kLimitExceeded,
                 .what = "the turned picture is too large",
                 .where = feature(),
                 .got = shape.ToString(),
                 .wanted = "at most " + std::to_string(kMaxPixels) + " pixels"});
  }

  Range degrees_;
  bool expand_;
  std::optional<Place> center_;
  Sampling sampling_;
};

void Validate(const proto::Stage& message) {
  const proto::RandomRotation& spec = message.random_rotation();
  if (spec.degrees().empty()) {
    ThrowInvalidField("degrees", "no value", "none",
                      "one value, or two for the least and the most");
  }
  kDegrees.Check(spec.degrees());
  CheckPlace("center", spec.center());
  CheckSampling(spec);
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomRotation>(message.random_rotation());
}

}  // namespace

extern const StageType kRandomRotationStage;
const StageType kRandomRotationStage = {
    .name = "random_rotation",
    .help = "Turns the picture by a random angle.",
    .sample = "degrees: 15 interpolation: BILINEAR",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
