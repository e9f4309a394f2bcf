#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <echopipe/base/buffer.h>
#include <echopipe/base/export.h>

namespace echopipe {

/// The type of a tensor's elements.
enum class DType {
  kUint8,
  kInt64,
  kFloat16,  ///< IEEE binary16; as<uint16_t>() gives the bits
  kFloat32,
  kBytes,  ///< an encoded blob [n]: passes through, is never stacked
};

/// Bytes of one element.
ECHOPIPE_EXPORT size_t ElementSize(DType dtype);
/// "uint8", "int64", "float16", "float32", "bytes".
ECHOPIPE_EXPORT std::string_view ToString(DType dtype);

/// Up to six extents, outermost first.
class ECHOPIPE_EXPORT Shape {
 public:
  static constexpr size_t kMaxRank = 6;

  Shape() = default;
  /// Precondition: at most kMaxRank extents, each >= 0.
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);

  size_t rank() const { return rank_; }
  int64_t operator[](size_t axis) const { return extents_[axis]; }
  std::span<const int64_t> extents() const { return {extents_.data(), rank_}; }
  /// The product of the extents; 1 for a scalar.
  int64_t elements() const;
  bool operator==(const Shape&) const = default;
  /// "[224, 224, 3]".
  std::string ToString() const;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  size_t rank_ = 0;
};

/// An immutable dense array, row-major. Copies share the elements.
///
/// Threads: immutable.
class ECHOPIPE_EXPORT Tensor {
 public:
  /// An empty tensor: [0] uint8.
  Tensor();
  /// Precondition: `data` holds exactly the elements of `shape`.
  Tensor(DType dtype, const Shape& shape, std::shared_ptr<const Buffer> data);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// Bytes from one element to the next along each axis.
  std::array<int64_t, Shape::kMaxRank> strides() const;
  std::span<const uint8_t> bytes() const { return data_->bytes(); }
  /// The elements as T. Precondition: sizeof(T) == ElementSize(dtype()).
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_->data()), data_->size() / sizeof(T)};
  }
  const std::shared_ptr<const Buffer>& buffer() const { return data_; }

 private:
  DType dtype_ = DType::kUint8;
  Shape shape_;
  std::shared_ptr<const Buffer> data_;
};

/// A tensor being made: write to data(), then Finish() it.
class ECHOPIPE_EXPORT TensorBuilder {
 public:
  TensorBuilder(DType dtype, const Shape& shape, BufferPool& pool);

  uint8_t* data() { return data_->data(); }
  size_t size() const { return data_->size(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_->data());
  }
  /// The finished tensor; the builder must not be used again.
  Tensor Finish() &&;

 private:
  DType dtype_;
  Shape shape_;
  std::shared_ptr<Buffer> data_;
};

}  // namespace echopipe
