#include <memory>
#include <string>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomAdjustSharpness final : public RandomPixelStage {
 public:
  explicit RandomAdjustSharpness(const proto::RandomAdjustSharpness& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)), factor_(spec.factor()) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return AdjustSharpness(pixels, factor_, pool);
  }

  double factor_;
};

void Validate(const proto::Stage& message) {
  const proto::RandomAdjustSharpness& spec = message.random_adjust_sharpness();
  if (!spec.has_factor()) ThrowInvalidField("factor", "is not given", "none", "0..1000");
  if (!(spec.factor() >= 0 && spec.factor() <= 1000)) {
    ThrowInvalidField("factor", "out of range", std::to_string(spec.factor()), "0..1000");
  }
  CheckProbability(ProbabilityOr(spec, 0.5));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomAdjustSharpness>(message.random_adjust_sharpness());
}

}  // namespace

extern const StageType kRandomAdjustSharpnessStage;
const StageType kRandomAdjustSharpnessStage = {
    .name = "random_adjust_sharpness",
    .help = "Sharpens, or blurs at factors below 1, with some probability.",
    .sample = "factor: 2",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
