#include <memory>
#include <string>

#include <echopipe/pipeline/stages/pixels.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

double ProbabilityOf(const proto::RandomFlip& spec) {
  return spec.has_probability() ? spec.probability() : 0.5;
}

class RandomFlip final : public Stage {
 public:
  explicit RandomFlip(const proto::RandomFlip& spec)
      : probability_(ProbabilityOf(spec)), feature_(FeatureOrImage(spec.feature())) {}

  bool Apply(Example& example, const StageContext& context) const override {
    const Tensor& pixels = GetPixels(example, feature_);
    if (context.random().Bernoulli(probability_)) {
      example.Set(feature_, Mirror(pixels, context.pool));
    }
    return true;
  }

 private:
  double probability_;
  std::string feature_;
};

void Validate(const proto::Stage& message) {
  const double probability = ProbabilityOf(message.random_flip());
  if (!(probability >= 0 && probability <= 1)) {
    ThrowInvalidField("probability", "out of range", std::to_string(probability), "0..1");
  }
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomFlip>(message.random_flip());
}

}  // namespace

extern const StageType kRandomFlipStage;
const StageType kRandomFlipStage = {
    .name = "random_flip",
    .help = "Mirrors left and right with some probability.",
    .sample = "probability: 0.5",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
