#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/repeated_field.h>

#include <echopipe/base/random.h>

/// The numbers that a stage draws from, and how its message's fields say so.
namespace echopipe::internal {

struct Range {
  double min = 0;
  double max = 0;

  /// Uniform over [min, max); min if they are the same.
  double Draw(RandomStream& random) const;
};

/// Both ends in `allowed` and in order, or it throws kInvalidArgument for one of the fields.
void CheckRange(std::string_view min_field, std::string_view max_field, const Range& range,
                const Range& allowed, const std::string& wanted);

/// A field of no value, one or two, as torchvision's parameters that are a number or a pair: x for
/// what is at most x away from `center`, or min and max.
struct SpreadField {
  std::string_view name;
  double center = 0;
  Range allowed;

  using Values = google::protobuf::RepeatedField<double>;
  /// Throws kInvalidArgument unless the values are such.
  void Check(const Values& values) const;
  /// Precondition: Check().
  Range RangeOf(const Values& values) const;
};

/// Throws kInvalidArgument for the field `probability` unless it is in 0..1.
void CheckProbability(double probability);

/// The message's probability, or the default.
template <class Spec>
double ProbabilityOr(const Spec& spec, double otherwise) {
  return spec.has_probability() ? spec.probability() : otherwise;
}

}  // namespace echopipe::internal
