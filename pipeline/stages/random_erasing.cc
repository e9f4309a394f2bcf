#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/pipeline/stages/erase.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

Range ScaleOf(const proto::RandomErasing& spec) {
  return {.min = spec.has_min_scale() ? spec.min_scale() : 0.02,
          .max = spec.has_max_scale() ? spec.max_scale() : 0.33};
}

Range RatioOf(const proto::RandomErasing& spec) {
  return {.min = spec.has_min_ratio() ? spec.min_ratio() : 0.3,
          .max = spec.has_max_ratio() ? spec.max_ratio() : 3.3};
}

// Source: torchvision, RandomErasing (halves are rounded to even, as Python does).
class RandomErasing final : public RandomPixelStage {
 public:
  explicit RandomErasing(const proto::RandomErasing& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 0.5)),
        scale_(ScaleOf(spec)),
        log_ratio_{.min = std::log(RatioOf(spec).min), .max = std::log(RatioOf(spec).max)},
        noise_(spec.fill() == proto::RandomErasing::NOISE),
        value_(spec.value().begin(), spec.value().end()) {
    if (value_.empty()) value_.push_back(0);
  }

 private:
  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    if (!noise_) CheckChannels("value", value_.size(), pixels, feature());
    constexpr int kTries = 10;
    for (int i = 0; i < kTries; ++i) {
      const auto box = TryBox(pixels.shape()[0], pixels.shape()[1], random);
      if (!box) continue;
      return noise_ ? EraseWithNoise(pixels, *box, random, pool)
                    : Erase(pixels, *box, value_, pool);
    }
    return pixels;
  }

  std::optional<PixelBox> TryBox(int64_t height, int64_t width, RandomStream& random) const {
    const double area = static_cast<double>(height * width) * scale_.Draw(random);
    const double ratio = std::exp(log_ratio_.Draw(random));
    const double box_height = std::nearbyint(std::sqrt(area * ratio));
    const double box_width = std::nearbyint(std::sqrt(area / ratio));
    if (!(box_height < static_cast<double>(height) && box_width < static_cast<double>(width))) {
      return {};
    }
    PixelBox box = {.width = static_cast<int>(box_width), .height = static_cast<int>(box_height)};
    box.y = static_cast<int>(random.Between(0, height - box.height));
    box.x = static_cast<int>(random.Between(0, width - box.width));
    return box;
  }

  Range scale_;
  Range log_ratio_;
  bool noise_;
  std::vector<uint8_t> value_;
};

void CheckValue(const proto::RandomErasing& spec) {
  if (!proto::RandomErasing::Fill_IsValid(spec.fill())) {
    ThrowInvalidField("fill", "unknown value", std::to_string(static_cast<int>(spec.fill())),
                      "VALUE or NOISE");
  }
  if (spec.value_size() > 0 && spec.fill() == proto::RandomErasing::NOISE) {
    ThrowInvalidField("value", "is for fill: VALUE", "fill: NOISE", "one of both");
  }
  if (spec.value_size() != 0 && spec.value_size() != 1 && spec.value_size() != 3) {
    ThrowInvalidField("value", "wrong number of values", std::to_string(spec.value_size()),
                      "1, or 3 for pictures of three channels");
  }
  for (const uint32_t value : spec.value()) {
    if (value > 255) ThrowInvalidField("value", "out of range", std::to_string(value), "0..255");
  }
}

void Validate(const proto::Stage& message) {
  const proto::RandomErasing& spec = message.random_erasing();
  CheckProbability(ProbabilityOr(spec, 0.5));
  CheckRange("min_scale", "max_scale", ScaleOf(spec), {.min = 0, .max = 1}, "0..1");
  CheckRange("min_ratio", "max_ratio", RatioOf(spec), {.min = 1e-3, .max = 1e3}, "0.001..1000");
  CheckValue(spec);
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomErasing>(message.random_erasing());
}

}  // namespace

extern const StageType kRandomErasingStage;
const StageType kRandomErasingStage = {
    .name = "random_erasing",
    .help = "Writes over a box of random area, aspect ratio and place with some probability.",
    .sample = "probability: 0.25 value: [124, 116, 104]",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
