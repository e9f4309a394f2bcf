#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include <echopipe/pipeline/stages/color_ops.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

constexpr SpreadField kBrightness = {"brightness", 1, {.min = 0, .max = 1000}};
constexpr SpreadField kContrast = {"contrast", 1, {.min = 0, .max = 1000}};
constexpr SpreadField kSaturation = {"saturation", 1, {.min = 0, .max = 1000}};
constexpr SpreadField kHue = {"hue", 0, {.min = -0.5, .max = 0.5}};

// Source: torchvision, ColorJitter.
class ColorJitter final : public RandomPixelStage {
 public:
  explicit ColorJitter(const proto::ColorJitter& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 1)),
        steps_{Step{&AdjustBrightness, kBrightness.RangeOf(spec.brightness()), 1},
               Step{&AdjustContrast, kContrast.RangeOf(spec.contrast()), 1},
               Step{&AdjustSaturation, kSaturation.RangeOf(spec.saturation()), 1},
               Step{&AdjustHue, kHue.RangeOf(spec.hue()), 0}} {}

 private:
  struct Step {
    Tensor (*adjust)(const Tensor& pixels, double value, BufferPool& pool);
    Range range;
    double neutral;

    bool changes() const { return range.min != neutral || range.max != neutral; }
  };

  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    std::array<size_t, 4> order{0, 1, 2, 3};
    for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
    std::array<double, 4> values;
    for (size_t i = 0; i < 4; ++i) values[i] = steps_[i].range.Draw(random);
    Tensor changed = pixels;
    for (const size_t i : order) {
      if (steps_[i].changes()) changed = steps_[i].adjust(changed, values[i], pool);
    }
    return changed;
  }

  std::array<Step, 4> steps_;
};

void Validate(const proto::Stage& message) {
  const proto::ColorJitter& spec = message.color_jitter();
  kBrightness.Check(spec.brightness());
  kContrast.Check(spec.contrast());
  kSaturation.Check(spec.saturation());
  kHue.Check(spec.hue());
  CheckProbability(ProbabilityOr(spec, 1));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<ColorJitter>(message.color_jitter());
}

}  // namespace

extern const StageType kColorJitterStage;
const StageType kColorJitterStage = {
    .name = "color_jitter",
    .help = "Changes brightness, contrast, saturation and hue, in random order.",
    .sample = "brightness: 0.4 contrast: 0.4 saturation: 0.4 hue: 0.1",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
