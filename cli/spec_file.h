#pragma once

#include <string>

#include <echopipe/pipeline/spec.h>

namespace echopipe::cli {

/// The spec in a file of text, or with "-" that of standard input. Throws kInvalidArgument that
/// names the file: unreadable is a wrong argument, whatever the file's own trouble.
PipelineSpec ReadSpec(const std::string& path);

}  // namespace echopipe::cli
