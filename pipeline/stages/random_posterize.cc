#include <memory>
#include <string>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomPosterize final : public RandomPixelStage {
 public:
  explicit RandomPosterize(const proto::RandomPosterize& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)),
        bits_(static_cast<int>(spec.bits())) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return Posterize(pixels, bits_, pool);
  }

  int bits_;
};

void Validate(const proto::Stage& message) {
  const proto::RandomPosterize& spec = message.random_posterize();
  if (spec.bits() < 1 || spec.bits() > 8) {
    ThrowInvalidField("bits", "out of range", std::to_string(spec.bits()), "1..8");
  }
  CheckProbability(ProbabilityOr(spec, 0.5));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomPosterize>(message.random_posterize());
}

}  // namespace

extern const StageType kRandomPosterizeStage;
const StageType kRandomPosterizeStage = {
    .name = "random_posterize",
    .help = "Keeps the highest bits of each value with some probability.",
    .sample = "bits: 4",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
