#pragma once

#include <string_view>

namespace echopipe::internal {

/// What an object is compressed with, told by its first bytes: "gzip"; empty if with nothing known.
std::string_view CompressionOf(std::string_view begin);

}  // namespace echopipe::internal
