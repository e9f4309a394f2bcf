#pragma once

#include <string>
#include <string_view>

#include <echopipe/base/export.h>

namespace echopipe {

/// Writes a file in one step: whatever happens meanwhile, a power failure too, the path has either
/// what it had before or all of this. Links are followed.
///
/// Goes by way of `path`.tmp, which is in the way of nobody: several may write to one path at once,
/// and what a killed one left behind is overwritten.
/// Errors   kNotFound: no such folder. kIo that names the path: a full disk, no permission, what is
///          there is no regular file. The old file is left as it was.
/// Threads  Any, and any process.
ECHOPIPE_EXPORT void ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace echopipe
