#include <memory>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomGrayscale final : public RandomPixelStage {
 public:
  explicit RandomGrayscale(const proto::RandomGrayscale& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.1)) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return Grayscale(pixels, pool);
  }
};

void Validate(const proto::Stage& message) {
  CheckProbability(ProbabilityOr(message.random_grayscale(), 0.1));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomGrayscale>(message.random_grayscale());
}

}  // namespace

extern const StageType kRandomGrayscaleStage;
const StageType kRandomGrayscaleStage = {
    .name = "random_grayscale",
    .help = "Makes the picture gray with some probability; it keeps its channels.",
    .sample = "probability: 0.2",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
