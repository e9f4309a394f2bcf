#include <memory>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/blur.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

constexpr uint32_t kMaxKernel = 255;

Range SigmaOf(const proto::GaussianBlur& spec) {
  return {.min = spec.has_min_sigma() ? spec.min_sigma() : 0.1,
          .max = spec.has_max_sigma() ? spec.max_sigma() : 2.0};
}

// Source: torchvision, GaussianBlur.
class GaussianBlur final : public RandomPixelStage {
 public:
  explicit GaussianBlur(const proto::GaussianBlur& spec)
      : RandomPixelStage(spec.feature(), ProbabilityOr(spec, 1)),
        width_(static_cast<int>(*spec.kernel_size().begin())),
        height_(static_cast<int>(*spec.kernel_size().rbegin())),
        sigma_(SigmaOf(spec)) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    const Shape& shape = pixels.shape();
    if (shape[0] <= height_ / 2 || shape[1] <= width_ / 2) ThrowTooSmall(shape);
    return Blur(pixels, {.width = width_, .height = height_, .sigma = sigma_.Draw(random)}, pool);
  }

  [[noreturn]] void ThrowTooSmall(const Shape& shape) const {
    throw Error({.code = ErrorCode::kShapeMismatch,
                 .what = "the picture is too small to be mirrored under half of the kernel",
                 .where = feature(),
                 .got = shape.ToString(),
                 .wanted = "at least " + Shape({height_ / 2 + 1, width_ / 2 + 1}).ToString()});
  }

  int width_;
  int height_;
  Range sigma_;
};

void Validate(const proto::Stage& message) {
  const proto::GaussianBlur& spec = message.gaussian_blur();
  if (spec.kernel_size_size() != 1 && spec.kernel_size_size() != 2) {
    ThrowInvalidField("kernel_size", "wrong number of values",
                      std::to_string(spec.kernel_size_size()),
                      "one value, or two for width and height");
  }
  for (const uint32_t size : spec.kernel_size()) {
    if (size % 2 == 1 && size <= kMaxKernel) continue;
    ThrowInvalidField("kernel_size", "even or out of range", std::to_string(size),
                      "an odd number in 1.." + std::to_string(kMaxKernel));
  }
  CheckRange("min_sigma", "max_sigma", SigmaOf(spec), {.min = 1e-3, .max = 1e3}, "0.001..1000");
  CheckProbability(ProbabilityOr(spec, 1));
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<GaussianBlur>(message.gaussian_blur());
}

}  // namespace

extern const StageType kGaussianBlurStage;
const StageType kGaussianBlurStage = {
    .name = "gaussian_blur",
    .help = "Blurs by a Gaussian whose standard deviation is random.",
    .sample = "kernel_size: 23 min_sigma: 0.1 max_sigma: 2 probability: 0.5",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
