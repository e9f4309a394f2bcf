#include <algorithm>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/example.h>

namespace echopipe {

const Tensor* Example::Find(std::string_view name) const {
  const auto found = std::ranges::find(features_, name, &Feature::name);
  return found == features_.end() ? nullptr : &found->tensor;
}

const Tensor& Example::Get(std::string_view name) const {
  if (const Tensor* tensor = Find(name)) return *tensor;
  std::string names;
  for (const Feature& feature : features_) names += (names.empty() ? "" : ", ") + feature.name;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "no such feature",
               .got = std::string(name),
               .wanted = "one of " + names});
}

void Example::Set(std::string_view name, Tensor tensor) {
  const auto found = std::ranges::find(features_, name, &Feature::name);
  if (found == features_.end()) {
    features_.push_back({std::string(name), std::move(tensor)});
  } else {
    found->tensor = std::move(tensor);
  }
}

}  // namespace echopipe
