#include <memory>

#include <echopipe/pipeline/stages/augment_policy.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

uint32_t BinsOf(const proto::TrivialAugmentWide& spec) {
  return spec.has_num_magnitude_bins() ? spec.num_magnitude_bins() : 31;
}

class TrivialAugmentWide final : public RandomPixelStage {
 public:
  explicit TrivialAugmentWide(const proto::TrivialAugmentWide& spec)
      : RandomPixelStage(spec.feature(), 1), bins_(BinsOf(spec)), sampling_(SamplingOf(spec, {})) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    CheckFillChannels(sampling_, pixels, feature());
    const uint32_t bin = random.Below(bins_);
    return ApplyRandomOperation(pixels, PolicyStrength::kTrivialAugmentWide, bin, bins_, sampling_,
                                random, pool);
  }

  uint32_t bins_;
  Sampling sampling_;
};

void Validate(const proto::Stage& message) {
  const proto::TrivialAugmentWide& spec = message.trivial_augment_wide();
  CheckMagnitudeBins(BinsOf(spec));
  CheckSampling(spec);
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<TrivialAugmentWide>(message.trivial_augment_wide());
}

}  // namespace

extern const StageType kTrivialAugmentWideStage;
const StageType kTrivialAugmentWideStage = {
    .name = "trivial_augment_wide",
    .help = "Does one random operation of random strength to the picture.",
    .sample = "interpolation: BILINEAR",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
