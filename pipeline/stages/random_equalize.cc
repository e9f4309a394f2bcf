#include <memory>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomEqualize final : public RandomPixelStage {
 public:
  explicit RandomEqualize(const proto::RandomEqualize& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return Equalize(pixels, pool);
  }
};

void Validate(const proto::Stage& message) {
  CheckProbability(ProbabilityOr(message.random_equalize(), 0.5));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomEqualize>(message.random_equalize());
}

}  // namespace

extern const StageType kRandomEqualizeStage;
const StageType kRandomEqualizeStage = {
    .name = "random_equalize",
    .help = "Makes each channel's histogram flat with some probability.",
    .sample = "probability: 0.5",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
