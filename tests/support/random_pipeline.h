#pragma once

#include <map>
#include <string>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/batch.h>
#include <echopipe/pipeline/options.h>
#include <echopipe/pipeline/spec.h>

namespace echopipe::testing {

/// A random pipeline over a few small records, some of them bad, and its rank.
struct RandomPipeline {
  std::string text = {};                            ///< with "BASE" before what objects it names
  std::map<std::string, std::string> objects = {};  ///< by their paths below the base
  Rank rank = {};

  /// The spec, for objects below this path: "", or one that ends in "/".
  std::string Text(const std::string& base = {}) const;
};

RandomPipeline MakeRandomPipeline(RandomStream& random);
/// One that has this stage too, anywhere: in front of all others, among them, or behind batch.
RandomPipeline MakeRandomPipelineWith(const std::string& stage, RandomStream& random);

/// A spec with the functions that random ones call: "pixels" makes an image of a record's bytes,
/// "throws at some" and "most" depend on the example alone.
PipelineSpec SpecWithFunctions(const std::string& text);

bool OneIn(RandomStream& random, uint32_t n);

/// Of all that is in a batch, and its epoch.
std::string HashOf(const Batch& batch);

}  // namespace echopipe::testing
