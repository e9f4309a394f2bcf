#pragma once

#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// Does all of these reads, at once, and waits for them; the results are in their order.
std::vector<Result<ReadResult>> ReadAll(std::vector<ReadRequest> requests, Storage& storage,
                                        BufferPool& pool);

}  // namespace echopipe::internal
