#pragma once

#include <string>
#include <system_error>

#include <echopipe/base/error.h>

namespace echopipe::internal {

/// What a cancelled read ends with.
Error StoppedRead(const std::string& path);

/// Why the system refused `path`: kNotFound if nothing is there, else kIo with the system's reason.
Error SystemError(const std::string& path, std::error_code reason);

}  // namespace echopipe::internal
