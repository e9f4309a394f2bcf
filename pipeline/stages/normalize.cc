#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/pipeline/stages/pixel_kernels.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

using Values = google::protobuf::RepeatedField<double>;

std::vector<double> ValuesOr(const Values& values, std::vector<double> defaults) {
  if (values.empty()) return defaults;
  return {values.begin(), values.end()};
}

std::vector<double> MeanOf(const proto::Normalize& spec) {
  return ValuesOr(spec.mean(), {0.485, 0.456, 0.406});
}

std::vector<double> StdOf(const proto::Normalize& spec) {
  return ValuesOr(spec.std(), {0.229, 0.224, 0.225});
}

class Normalize final : public WritingStage {
 public:
  explicit Normalize(const proto::Normalize& spec)
      : layout_(spec.layout()),
        dtype_(spec.type() == proto::Normalize::FLOAT16 ? DType::kFloat16 : DType::kFloat32),
        mean_values_(MeanOf(spec).size()),
        std_values_(StdOf(spec).size()),
        feature_(FeatureOrImage(spec.feature())) {
    const std::vector<double> means = MeanOf(spec);
    const std::vector<double> stds = StdOf(spec);
    for (size_t c = 0; c < 3; ++c) {
      channel_[c] = Normalization::Of(means[c % means.size()], stds[c % stds.size()]);
    }
  }

  bool Apply(Example& example, const StageContext& context) const override {
    const Tensor& input = example.Get(feature_);
    const Output output = OutputFor(input);
    TensorBuilder builder(output.dtype, output.shape, context.pool);
    WriteTo(input, builder.data());
    example.Set(feature_, std::move(builder).Finish());
    return true;
  }

  std::string_view feature() const override { return feature_; }

  Output OutputFor(const Tensor& input) const override {
    CheckPixels(input, feature_);
    const Shape& shape = input.shape();
    CheckChannels("mean", mean_values_, input, feature_);
    CheckChannels("std", std_values_, input, feature_);
    if (layout_ == proto::Normalize::HWC) return {.dtype = dtype_, .shape = shape};
    return {.dtype = dtype_, .shape = {shape[2], shape[0], shape[1]}};
  }

  void WriteTo(const Tensor& input, uint8_t* out) const override {
    if (dtype_ == DType::kFloat16) {
      WriteAs(input, reinterpret_cast<Float16*>(out));
    } else {
      WriteAs(input, reinterpret_cast<float*>(out));
    }
  }

 private:
  template <class Element>
  void WriteAs(const Tensor& input, Element* out) const {
    const uint8_t* pixels = input.bytes().data();
    if (layout_ == proto::Normalize::CHW && input.shape()[2] == 3) {
      NormalizeToPlanes(pixels, input.bytes().size() / 3, channel_, out);
    } else {
      // With one channel all three are alike, and both layouts too.
      NormalizeInterleaved(pixels, input.bytes().size(), channel_, out);
    }
  }

  proto::Normalize::Layout layout_;
  DType dtype_;
  size_t mean_values_;
  size_t std_values_;
  Normalization channel_[3];
  std::string feature_;
};

void CheckValues(const char* field, const std::vector<double>& values, double min, double max,
                 const char* wanted) {
  if (values.size() != 1 && values.size() != 3) {
    ThrowInvalidField(field, "wrong number of values", std::to_string(values.size()),
                      "1, or 3 for pictures of three channels");
  }
  for (const double value : values) {
    if (!(value >= min && value <= max)) {
      ThrowInvalidField(field, "out of range", std::to_string(value), wanted);
    }
  }
}

void Validate(const proto::Stage& message) {
  const proto::Normalize& spec = message.normalize();
  CheckValues("mean", MeanOf(spec), -1000, 1000, "-1000..1000");
  CheckValues("std", StdOf(spec), 1e-6, 1e6, "1e-6..1e6");
  if (!proto::Normalize::Layout_IsValid(spec.layout())) {
    ThrowInvalidField("layout", "unknown value", std::to_string(static_cast<int>(spec.layout())),
                      "CHW or HWC");
  }
  if (!proto::Normalize::Type_IsValid(spec.type())) {
    ThrowInvalidField("type", "unknown value", std::to_string(static_cast<int>(spec.type())),
                      "FLOAT32 or FLOAT16");
  }
}

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions&) {
  return std::make_unique<Normalize>(message.normalize());
}

}  // namespace

extern const StageType kNormalizeStage;
const StageType kNormalizeStage = {
    .name = "normalize",
    .help =
        "Makes float32 or float16 of the pixels: (x / 255 - mean) / std, channels first or last.",
    .sample = "mean: [0.485, 0.456, 0.406] std: [0.229, 0.224, 0.225] layout: CHW type: FLOAT32",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
