#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <echopipe/pipeline/stages/affine.h>
#include <echopipe/pipeline/stages/random_pixel_stage.h>
#include <echopipe/pipeline/stages/range.h>
#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

constexpr SpreadField kDegrees = {"degrees", 0, {.min = -360, .max = 360}};
// At 90 a picture would become a line.
constexpr SpreadField kShear = {"shear", 0, {.min = -89, .max = 89}};

// The `i`-th pair of up to four values: a single value is for the first.
SpreadField::Values ShearValues(const SpreadField::Values& values, int i) {
  const int begin = 2 * i;
  const int end = std::min(begin + 2, values.size());
  return begin < end ? SpreadField::Values(values.begin() + begin, values.begin() + end)
                     : SpreadField::Values();
}

Range ScaleOf(const proto::RandomAffine& spec) {
  return {.min = spec.has_min_scale() ? spec.min_scale() : 1,
          .max = spec.has_max_scale() ? spec.max_scale() : 1};
}

// Source: torchvision, RandomAffine (halves are rounded to even, as Python does).
class RandomAffine final : public RandomPixelStage {
 public:
  explicit RandomAffine(const proto::RandomAffine& spec)
      : RandomPixelStage(spec.feature(), 1),
        degrees_(kDegrees.RangeOf(spec.degrees())),
        translate_x_(spec.translate_x()),
        translate_y_(spec.translate_y()),
        scale_(ScaleOf(spec)),
        shear_x_(kShear.RangeOf(ShearValues(spec.shear(), 0))),
        shear_y_(kShear.RangeOf(ShearValues(spec.shear(), 1))),
        center_(PlaceOf(spec.center())),
        sampling_(SamplingOf(spec, {0})) {}

 private:
  Tensor Change(const Tensor& pixels, RandomStream& random, BufferPool& pool) const override {
    CheckFillChannels(sampling_, pixels, feature());
    AffineParameters parameters = {.degrees = degrees_.Draw(random)};
    parameters.translate_x = DrawShift(translate_x_, pixels.shape()[1], random);
    parameters.translate_y = DrawShift(translate_y_, pixels.shape()[0], random);
    parameters.scale = scale_.Draw(random);
    parameters.shear_x_degrees = shear_x_.Draw(random);
    parameters.shear_y_degrees = shear_y_.Draw(random);
    parameters.center = center_;
    return Affine(pixels, parameters, sampling_, pool);
  }

  static double DrawShift(double fraction, int64_t extent, RandomStream& random) {
    const double most = fraction * static_cast<double>(extent);
    return std::nearbyint(Range{.min = -most, .max = most}.Draw(random));
  }

  Range degrees_;
  double translate_x_;
  double translate_y_;
  Range scale_;
  Range shear_x_;
  Range shear_y_;
  std::optional<Place> center_;
  Sampling sampling_;
};

void CheckShear(const SpreadField::Values& values) {
  if (values.size() > 4 || values.size() == 3) {
    ThrowInvalidField("shear", "wrong number of values", std::to_string(values.size()),
                      "1, 2 or 4 values");
  }
  kShear.Check(ShearValues(values, 0));
  kShear.Check(ShearValues(values, 1));
}

void CheckFraction(const char* field, double value) {
  if (value >= 0 && value <= 1) return;
  ThrowInvalidField(field, "out of range", std::to_string(value), "0..1");
}

void Validate(const proto::Stage& message) {
  const proto::RandomAffine& spec = message.random_affine();
  kDegrees.Check(spec.degrees());
  CheckFraction("translate_x", spec.translate_x());
  CheckFraction("translate_y", spec.translate_y());
  CheckRange("min_scale", "max_scale", ScaleOf(spec), {.min = 1e-3, .max = 1e3}, "0.001..1000");
  CheckShear(spec.shear());
  CheckPlace("center", spec.center());
  CheckSampling(spec);
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<RandomAffine>(message.random_affine());
}

}  // namespace

extern const StageType kRandomAffineStage;
const StageType kRandomAffineStage = {
    .name = "random_affine",
    .help = "Turns, shifts, scales and shears the picture by random amounts.",
    .sample =
        "degrees: 10 translate_x: 0.1 translate_y: 0.1 min_scale: 0.8 max_scale: 1.2 "
        "shear: 5 interpolation: BILINEAR",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
