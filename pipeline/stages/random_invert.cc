#include <memory>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomInvert final : public RandomPixelStage {
 public:
  explicit RandomInvert(const proto::RandomInvert& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return Invert(pixels, pool);
  }
};

void Validate(const proto::Stage& message) {
  CheckProbability(ProbabilityOr(message.random_invert(), 0.5));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomInvert>(message.random_invert());
}

}  // namespace

extern const StageType kRandomInvertStage;
const StageType kRandomInvertStage = {
    .name = "random_invert",
    .help = "Inverts all values with some probability.",
    .sample = "probability: 0.5",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
