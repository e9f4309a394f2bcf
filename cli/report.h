#pragma once

#include <string>
#include <utility>
#include <vector>

#include <echopipe/cli/job.h>

namespace echopipe::cli {

/// A run under the title of its column.
using Column = std::pair<std::string, const JobResult*>;

/// The figures of one run, or of several side by side (of the same echo points), a line each.
std::string Table(const std::vector<Column>& runs);

/// One JSON object, on one line.
std::string Json(const JobResult& result);

}  // namespace echopipe::cli
