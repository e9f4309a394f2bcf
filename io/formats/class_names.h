#pragma once

#include <optional>
#include <string>
#include <vector>

namespace echopipe::internal {

/// The names in a classes file, a line each, or nothing if there is no such file. Errors name the
/// file: kInvalidArgument for an empty line or a name that comes twice, kLimitExceeded over 64 MiB.
std::optional<std::vector<std::string>> ReadClassNames(const std::string& path);

/// Writes a classes file: readers see the whole of it or nothing, whoever else writes it too.
void WriteClassNames(const std::string& path, const std::vector<std::string>& names);

}  // namespace echopipe::internal
