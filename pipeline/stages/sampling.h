#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include <echopipe/pipeline/tensor.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// How a picture is read between its pixels and outside of them.
struct Sampling {
  proto::Interpolation interpolation = proto::NEAREST;
  /// What is outside: a value for each channel or one for all; black if there is none.
  ///
  /// With BILINEAR a given black is not the same as none: torchvision blends a pixel at the edge
  /// with the fill by how much of it is inside, though it is darkened by that already.
  std::vector<double> fill = {};
};

/// A place in a picture, in pixels from its upper left corner.
struct Place {
  double x = 0;
  double y = 0;
};

/// Throws kInvalidArgument for the field unless it has no values or two finite ones.
void CheckPlace(std::string_view field, const google::protobuf::RepeatedField<double>& values);
/// None if there are no values. Precondition: CheckPlace().
std::optional<Place> PlaceOf(const google::protobuf::RepeatedField<double>& values);

/// Throws kInvalidArgument unless it is NEAREST or BILINEAR, and 0, 1 or 3 values of 0..255.
void CheckSampling(proto::Interpolation interpolation,
                   const google::protobuf::RepeatedField<double>& fill);

/// Throws kShapeMismatch unless the fill is for as many channels as the picture has.
void CheckFillChannels(const Sampling& sampling, const Tensor& pixels, std::string_view feature);

/// The message's, or NEAREST if it sets none.
template <class Spec>
proto::Interpolation InterpolationOrNearest(const Spec& spec) {
  return spec.has_interpolation() ? spec.interpolation() : proto::NEAREST;
}

template <class Spec>
void CheckSampling(const Spec& spec) {
  CheckSampling(InterpolationOrNearest(spec), spec.fill());
}

/// As the message says; `fill` if it gives none.
template <class Spec>
Sampling SamplingOf(const Spec& spec, std::vector<double> fill) {
  if (!spec.fill().empty()) fill = {spec.fill().begin(), spec.fill().end()};
  return {.interpolation = InterpolationOrNearest(spec), .fill = std::move(fill)};
}

}  // namespace echopipe::internal
