#pragma once

#include <string_view>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/batch.h>
#include <echopipe/pipeline/tensor.h>

// Of <dlpack/dlpack.h>, which a program that looks inside includes itself.
struct DLManagedTensor;

namespace echopipe {

// Tensors for other libraries, without a copy where that is safe: PyTorch, NumPy, JAX and others
// take them as DLPack, whose capsules are made of these pointers.
//
// A library may write into what it was given, and here tensors are immutable. So a tensor is handed
// out itself only where nobody else can get it again; one that is held elsewhere (by a batch that
// will be echoed, another copy of the batch or tensor, an export before) is copied. What the
// library writes shows in the batch or tensor that was exported.
//
// Memory   On the CPU, row-major, with strides. A copy is aligned to 64 bytes; what is not copied
//          is as RuntimeOptions.allocator gave it, or aligned alike. It lives until the deleter has
//          been called, by whatever thread, whether batch and pipeline are still there or not.
// Types    uint8, int64, float16 and float32; encoded bytes are uint8 [n].
// Errors   std::bad_alloc.
// Threads  Any.

/// A stacked feature of a batch. Throws kInvalidArgument that names those there are.
[[nodiscard]] ECHOPIPE_EXPORT DLManagedTensor* ToDlpack(const Batch& batch,
                                                        std::string_view feature);
/// A batch's labels: int64 [size]. Always a copy.
[[nodiscard]] ECHOPIPE_EXPORT DLManagedTensor* LabelsToDlpack(const Batch& batch);
/// A tensor.
[[nodiscard]] ECHOPIPE_EXPORT DLManagedTensor* ToDlpack(const Tensor& tensor);

}  // namespace echopipe
