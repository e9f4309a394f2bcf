#include <memory>
#include <string>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomSolarize final : public RandomPixelStage {
 public:
  explicit RandomSolarize(const proto::RandomSolarize& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)), threshold_(spec.threshold()) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return Solarize(pixels, threshold_, pool);
  }

  double threshold_;
};

void Validate(const proto::Stage& message) {
  const proto::RandomSolarize& spec = message.random_solarize();
  if (!spec.has_threshold()) ThrowInvalidField("threshold", "is not given", "none", "0..255");
  if (!(spec.threshold() >= 0 && spec.threshold() <= 255)) {
    ThrowInvalidField("threshold", "out of range", std::to_string(spec.threshold()), "0..255");
  }
  CheckProbability(ProbabilityOr(spec, 0.5));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomSolarize>(message.random_solarize());
}

}  // namespace

extern const StageType kRandomSolarizeStage;
const StageType kRandomSolarizeStage = {
    .name = "random_solarize",
    .help = "Inverts the values from a threshold on with some probability.",
    .sample = "threshold: 128",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
