#include <algorithm>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/tensor.h>

namespace echopipe {
namespace {

// What an empty tensor refers to.
class NoBytes final : public Buffer {
 public:
  NoBytes() : Buffer(nullptr, 0) {}
};

}  // namespace

size_t ElementSize(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kBytes:
      return 1;
    case DType::kFloat16:
      return 2;
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
      return 4;
  }
  return 1;
}

std::string_view ToString(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kInt64:
      return "int64";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    case DType::kBytes:
      return "bytes";
  }
  return "uint8";
}

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) : rank_(extents.size()) {
  if (rank_ > kMaxRank) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "too many axes",
                 .where = "shape",
                 .got = std::to_string(rank_),
                 .wanted = "at most " + std::to_string(kMaxRank)});
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t extent : extents()) product *= extent;
  return product;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (size_t axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(extents_[axis]);
  }
  return text + "]";
}

Tensor::Tensor() : shape_({0}), data_(std::make_shared<NoBytes>()) {}

Tensor::Tensor(DType dtype, const Shape& shape, std::shared_ptr<const Buffer> data)
    : dtype_(dtype), shape_(shape), data_(std::move(data)) {}

std::array<int64_t, Shape::kMaxRank> Tensor::strides() const {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = static_cast<int64_t>(ElementSize(dtype_));
  for (size_t axis = shape_.rank(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape_[axis];
  }
  return strides;
}

TensorBuilder::TensorBuilder(DType dtype, const Shape& shape, BufferPool& pool)
    : dtype_(dtype),
      shape_(shape),
      data_(pool.Allocate(static_cast<size_t>(shape.elements()) * ElementSize(dtype))) {}

Tensor TensorBuilder::Finish() && { return Tensor(dtype_, shape_, std::move(data_)); }

}  // namespace echopipe
