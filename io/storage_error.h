#pragma once

#include <string>
#include <system_error>

#include <echopipe/base/error.h>

namespace echopipe::internal {

/// What a cancelled read ends with, and one for which there was no memory. Where there is none to
/// say so either, OutOfMemory().
Error StoppedRead(const std::string& path) noexcept;
Error UnreadForMemory(const std::string& path) noexcept;

/// Why the system refused `path`: kNotFound if nothing is there, else kIo with the system's reason.
Error SystemError(const std::string& path, std::error_code reason);

}  // namespace echopipe::internal
