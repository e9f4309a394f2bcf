#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <echopipe/pipeline/stats.h>

namespace echopipe::internal {

/// One sentence: which part of the pipeline holds it up, and which echo point to raise or to add.
///
/// A step takes the longest of reading, preprocessing (all CPU stages together, they share the
/// threads) and the consumer. An echo point of factor e behind some stage divides what stands in
/// front of it by e: t_step(e) = max(t_up / e, t_down).
/// Of an adaptive echo it tells what that has done, and whether a fixed factor or none would do.
/// `echo_after`: for each echo point of examples, the index in `stats.stages` of the first stage
/// behind it.
std::string Verdict(const PipelineStats& stats, const std::vector<size_t>& echo_after);

/// One sentence: what the network gave, and what went wrong in it. "" if nothing was asked of it.
std::string NetworkVerdict(const PipelineStats& stats);

}  // namespace echopipe::internal
