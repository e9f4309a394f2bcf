#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {

void ThrowInvalidField(std::string_view field, std::string_view what, std::string got,
                       std::string wanted) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = std::string(what),
               .where = std::string(field),
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

void CheckPixels(const Tensor& tensor, std::string_view feature) {
  constexpr int64_t kMaxSide = int64_t{1} << 24;
  const Shape& shape = tensor.shape();
  const auto is_side = [](int64_t extent) { return extent >= 1 && extent <= kMaxSide; };
  if (tensor.dtype() == DType::kUint8 && shape.rank() == 3 && is_side(shape[0]) &&
      is_side(shape[1]) && (shape[2] == 1 || shape[2] == 3)) {
    return;
  }
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "the feature is not a picture (is it decoded, and not yet normalized?)",
               .where = std::string(feature),
               .got = std::string(ToString(tensor.dtype())) + " " + shape.ToString(),
               .wanted = "uint8 [H, W, 1 or 3]"});
}

void CheckChannels(std::string_view field, size_t values, const Tensor& pixels,
                   std::string_view feature) {
  const Shape& shape = pixels.shape();
  if (values == 1 || static_cast<int64_t>(values) == shape[2]) return;
  throw Error(
      {.code = ErrorCode::kShapeMismatch,
       .what = "the picture's channels are not as many as the values of " + std::string(field),
       .where = std::string(feature),
       .got = shape.ToString(),
       .wanted = std::to_string(values) + " channels"});
}

const Tensor& GetPixels(const Example& example, std::string_view feature) {
  const Tensor& tensor = example.Get(feature);
  CheckPixels(tensor, feature);
  return tensor;
}

}  // namespace echopipe::internal
