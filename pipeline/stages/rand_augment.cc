#include <memory>
#include <string>

#include <echopipe/pipeline/stages/augment_policy.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

constexpr uint32_t kMaxOps = 16;

uint32_t NumOpsOf(const proto::RandAugment& spec) {
  return spec.has_num_ops() ? spec.num_ops() : 2;
}

uint32_t MagnitudeBinOf(const proto::RandAugment& spec) {
  return spec.has_magnitude() ? spec.magnitude() : 9;
}

uint32_t BinsOf(const proto::RandAugment& spec) {
  return spec.has_num_magnitude_bins() ? spec.num_magnitude_bins() : 31;
}

class RandAugment final : public RandomPixelStage {
 public:
  explicit RandAugment(const proto::RandAugment& spec)
      : RandomPixelStage(spec.feature(), 1),
        num_ops_(NumOpsOf(spec)),
        bin_(MagnitudeBinOf(spec)),
        bins_(BinsOf(spec)),
        sampling_(SamplingOf(spec, {})) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    CheckFillChannels(sampling_, pixels, feature());
    Tensor changed = pixels;
    for (uint32_t i = 0; i < num_ops_; ++i) {
      changed = ApplyRandomOperation(changed, PolicyStrength::kRandAugment, bin_, bins_, sampling_,
                                     random, pool);
    }
    return changed;
  }

  uint32_t num_ops_;
  uint32_t bin_;
  uint32_t bins_;
  Sampling sampling_;
};

void Validate(const proto::Stage& message) {
  const proto::RandAugment& spec = message.rand_augment();
  if (NumOpsOf(spec) < 1 || NumOpsOf(spec) > kMaxOps) {
    ThrowInvalidField("num_ops", "out of range", std::to_string(NumOpsOf(spec)),
                      "1.." + std::to_string(kMaxOps));
  }
  CheckMagnitudeBins(BinsOf(spec));
  if (MagnitudeBinOf(spec) >= BinsOf(spec)) {
    ThrowInvalidField("magnitude", "not below num_magnitude_bins",
                      std::to_string(MagnitudeBinOf(spec)),
                      "less than " + std::to_string(BinsOf(spec)));
  }
  CheckSampling(spec);
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandAugment>(message.rand_augment());
}

}  // namespace

extern const StageType kRandAugmentStage;
const StageType kRandAugmentStage = {
    .name = "rand_augment",
    .help = "Does some random operations of one strength to the picture.",
    .sample = "num_ops: 2 magnitude: 9",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
