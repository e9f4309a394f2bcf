#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <dlpack/dlpack.h>

#include <echopipe/base/buffer.h>
#include <echopipe/pipeline/dlpack.h>

namespace echopipe {
namespace {

// What the deleter gives back.
struct Export {
  DLManagedTensor managed = {};
  std::shared_ptr<const Buffer> buffer;
  std::array<int64_t, Shape::kMaxRank> shape = {};
  std::array<int64_t, Shape::kMaxRank> strides = {};
};

void Delete(DLManagedTensor* managed) { delete static_cast<Export*>(managed->manager_ctx); }

DLDataType TypeOf(DType dtype) {
  const auto type = [dtype](DLDataTypeCode code) {
    return DLDataType{.code = static_cast<uint8_t>(code),
                      .bits = static_cast<uint8_t>(8 * ElementSize(dtype)),
                      .lanes = 1};
  };
  switch (dtype) {
    case DType::kInt64:
      return type(kDLInt);
    case DType::kFloat16:
    case DType::kFloat32:
      return type(kDLFloat);
    case DType::kUint8:
    case DType::kBytes:
      break;
  }
  return type(kDLUInt);
}

std::shared_ptr<const Buffer> CopyOf(std::span<const uint8_t> bytes) {
  std::shared_ptr<Buffer> copy = BufferPool().Allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  return copy;
}

DLManagedTensor* ExportOf(DType dtype, const Shape& shape, std::shared_ptr<const Buffer> buffer) {
  auto made = std::make_unique<Export>();
  made->buffer = std::move(buffer);
  std::ranges::copy(shape.extents(), made->shape.begin());
  int64_t stride = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    made->strides[axis] = stride;
    stride *= shape[axis];
  }
  DLManagedTensor& managed = made->managed;
  managed.dl_tensor = {.data = const_cast<uint8_t*>(made->buffer->data()),
                       .device = {.device_type = kDLCPU, .device_id = 0},
                       .ndim = static_cast<int32_t>(shape.rank()),
                       .dtype = TypeOf(dtype),
                       .shape = made->shape.data(),
                       .strides = made->strides.data(),
                       .byte_offset = 0};
  managed.deleter = Delete;
  managed.manager_ctx = made.get();
  return &made.release()->managed;
}

// Precondition: nobody holds the tensor but the caller, or else `is_shared`.
DLManagedTensor* ExportUnlessShared(const Tensor& tensor, bool is_shared) {
  // Counted with a reference of its own: only by taking one is what others did before they let go
  // certain to be over.
  std::shared_ptr<const Buffer> buffer = tensor.buffer();
  if (is_shared || buffer.use_count() > 2) buffer = CopyOf(tensor.bytes());
  return ExportOf(tensor.dtype(), tensor.shape(), std::move(buffer));
}

}  // namespace

DLManagedTensor* ToDlpack(const Batch& batch, std::string_view feature) {
  return ExportUnlessShared(batch.Get(feature), batch.is_shared());
}

DLManagedTensor* LabelsToDlpack(const Batch& batch) {
  const std::span<const int64_t> labels = batch.labels();
  return ExportOf(DType::kInt64, {static_cast<int64_t>(labels.size())},
                  CopyOf({reinterpret_cast<const uint8_t*>(labels.data()), labels.size_bytes()}));
}

DLManagedTensor* ToDlpack(const Tensor& tensor) { return ExportUnlessShared(tensor, false); }

}  // namespace echopipe
