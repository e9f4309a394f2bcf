#include <memory>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class RandomAutocontrast final : public RandomPixelStage {
 public:
  explicit RandomAutocontrast(const proto::RandomAutocontrast& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream&, BufferPool& pool) const override {
    return Autocontrast(pixels, pool);
  }
};

void Validate(const proto::Stage& message) {
  CheckProbability(ProbabilityOr(message.random_autocontrast(), 0.5));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomAutocontrast>(message.random_autocontrast());
}

}  // namespace

extern const StageType kRandomAutocontrastStage;
const StageType kRandomAutocontrastStage = {
    .name = "random_autocontrast",
    .help = "Stretches each channel to 0..255 with some probability.",
    .sample = "probability: 0.5",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
