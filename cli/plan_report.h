#pragma once

#include <string>

#include <echopipe/pipeline/options.h>
#include <echopipe/pipeline/spec.h>

namespace echopipe::cli {

/// How a pipeline would run: its segments, echo points, windows and buffers, and about how much
/// memory these take. Sizes are those of a few examples, which it makes where the data are on this
/// machine; elsewhere places are told without them.
class PlanReport {
 public:
  /// Throws what Validate() does.
  PlanReport(const PipelineSpec& spec, const RuntimeOptions& options);

  std::string Text() const;
  /// One JSON object, on one line.
  std::string Json() const;

 private:
  PipelineSpec spec_;
  RuntimeOptions options_;
};

}  // namespace echopipe::cli
