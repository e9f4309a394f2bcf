#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <echopipe/pipeline/options.h>
#include <echopipe/pipeline/spec.h>

namespace echopipe::cli {

/// How large a few examples of a pipeline are, on average, on their way through it.
struct SampleSizes {
  uint64_t examples = 0;                  ///< looked at; 0: the rest says nothing
  std::string why_none = {};              ///< then
  std::vector<uint64_t> echo_bytes = {};  ///< of one at each echo point in front of batch
  uint64_t record_bytes = 0;              ///< as read
  uint64_t example_bytes = 0;             ///< in front of batch
  uint64_t shared_bytes = 0;              ///< of these, what a batch does not copy
  uint64_t slot_bytes = 0;                ///< of its place in a batch
};

/// Reads and makes the first few examples, if the data are on this machine. Throws nothing for bad
/// data: then there are no sizes.
SampleSizes TakeSample(const PipelineSpec& spec, const RuntimeOptions& options);

}  // namespace echopipe::cli
