#pragma once

#include <cstdint>
#include <string>

#include <echopipe/base/export.h>

namespace echopipe {

/// All of a regular file; `name` is what errors call it: "checkpoint".
/// Errors   kNotFound and kIo that name the path; kLimitExceeded if it is larger than `most` bytes.
/// Threads  Any.
ECHOPIPE_EXPORT std::string ReadWholeFile(const std::string& path, const std::string& name,
                                          uint64_t most);

/// Throws kInvalidArgument if a regular file is there that begins otherwise than `magic`: something
/// else under that name is not to be lost by a slip. An empty one may be.
ECHOPIPE_EXPORT void CheckOverwritable(const std::string& path, const std::string& name,
                                       const std::string& magic);

}  // namespace echopipe
