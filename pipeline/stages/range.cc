#include <algorithm>

#include <echopipe/pipeline/stages/range.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {
namespace {

// As short as it can be read: "0.5", not "0.500000".
std::string ToText(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string ToText(const Range& range) { return ToText(range.min) + ".." + ToText(range.max); }

// Also false for NaN.
bool Contains(const Range& range, double value) { return value >= range.min && value <= range.max; }

}  // namespace

double Range::Draw(RandomStream& random) const {
  return min < max ? random.Uniform(min, max) : min;
}

void CheckRange(std::string_view min_field, std::string_view max_field, const Range& range,
                const Range& allowed, const std::string& wanted) {
  if (!Contains(allowed, range.min)) {
    ThrowInvalidField(min_field, "out of range", std::to_string(range.min), wanted);
  }
  if (!Contains({.min = range.min, .max = allowed.max}, range.max)) {
    ThrowInvalidField(max_field, "out of range", std::to_string(range.max),
                      wanted + " and at least " + std::string(min_field));
  }
}

void SpreadField::Check(const Values& values) const {
  if (values.size() > 2) {
    ThrowInvalidField(name, "wrong number of values", std::to_string(values.size()),
                      "one value, or two for the least and the most");
  }
  if (values.size() == 1) {
    const Range distances = {.min = 0, .max = allowed.max - center};
    if (Contains(distances, values[0])) return;
    ThrowInvalidField(name, "out of range", std::to_string(values[0]), ToText(distances));
  }
  if (values.size() == 2) {
    CheckRange(name, name, {.min = values[0], .max = values[1]}, allowed, ToText(allowed));
  }
}

Range SpreadField::RangeOf(const Values& values) const {
  if (values.empty()) return {.min = center, .max = center};
  if (values.size() == 2) return {.min = values[0], .max = values[1]};
  return {.min = std::max(allowed.min, center - values[0]), .max = center + values[0]};
}

void CheckProbability(double probability) {
  if (Contains({.min = 0, .max = 1}, probability)) return;
  ThrowInvalidField("probability", "out of range", std::to_string(probability), "0..1");
}

}  // namespace echopipe::internal
