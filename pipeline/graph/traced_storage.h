#pragma once

#include <memory>

#include <echopipe/io/storage.h>
#include <echopipe/pipeline/graph/trace.h>

namespace echopipe::internal {

/// The storage, with a trace of its reads.
std::shared_ptr<Storage> MakeTracedStorage(std::shared_ptr<Storage> storage,
                                           std::shared_ptr<Trace> trace);

}  // namespace echopipe::internal
