#include <string>

#include <echopipe/pipeline/stages/sampling.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {

void CheckPlace(std::string_view field, const google::protobuf::RepeatedField<double>& values) {
  constexpr double kMost = 1 << 24;  // the longest side of a picture
  if (values.size() != 0 && values.size() != 2) {
    ThrowInvalidField(field, "wrong number of values", std::to_string(values.size()),
                      "2 for x and y, or none for the middle");
  }
  for (const double value : values) {
    if (value >= -kMost && value <= kMost) continue;
    ThrowInvalidField(field, "out of range", std::to_string(value), "pixels");
  }
}

std::optional<Place> PlaceOf(const google::protobuf::RepeatedField<double>& values) {
  if (values.empty()) return {};
  return Place{.x = values[0], .y = values[1]};
}

void CheckSampling(proto::Interpolation interpolation,
                   const google::protobuf::RepeatedField<double>& fill) {
  if (interpolation != proto::NEAREST && interpolation != proto::BILINEAR) {
    const std::string& name = proto::Interpolation_Name(interpolation);
    ThrowInvalidField("interpolation", "is not for this stage",
                      name.empty() ? std::to_string(static_cast<int>(interpolation)) : name,
                      "NEAREST or BILINEAR");
  }
  if (fill.size() != 0 && fill.size() != 1 && fill.size() != 3) {
    ThrowInvalidField("fill", "wrong number of values", std::to_string(fill.size()),
                      "1, or 3 for pictures of three channels");
  }
  for (const double value : fill) {
    if (value >= 0 && value <= 255) continue;
    ThrowInvalidField("fill", "out of range", std::to_string(value), "0..255");
  }
}

void CheckFillChannels(const Sampling& sampling, const Tensor& pixels, std::string_view feature) {
  if (sampling.fill.empty()) return;
  CheckChannels("fill", sampling.fill.size(), pixels, feature);
}

}  // namespace echopipe::internal
