#pragma once

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <echopipe/base/error.h>
#include <echopipe/cli/http_flags.h>
#include <echopipe/cli/spec_flags.h>
#include <echopipe/pipeline/pipeline.h>

namespace echopipe::cli {

struct PassResult {
  enum class End { kData, kInterrupted, kFailed };

  PipelineStats stats = {};
  End end = End::kData;
  std::optional<Error> error = {};  ///< set if it failed
};

/// One pass over all records of a source, whatever its order and its epochs.
class SourcePass {
 public:
  /// Adds the flags that name the source and say how to read it to `command`, which must not be
  /// used after this has gone.
  explicit SourcePass(CLI::App& command);
  SourcePass(const SourcePass&) = delete;
  SourcePass& operator=(const SourcePass&) = delete;

  enum class Depth { kRead, kDecode };
  struct Watchers {
    /// Gets each good example, on any thread.
    std::function<void(const Example&)> look;
    /// Gets each bad one, one call at a time.
    std::function<void(const BadExample&)> on_bad;
  };
  /// Reads each record and, if asked to, decodes it as the spec's decode stages say (without any,
  /// with their defaults); tells the progress. What Open() throws passes through; what Next()
  /// throws is in the result.
  PassResult Run(Depth depth, const Watchers& watchers) const;

  /// The spec that was given, with what the flags say.
  PipelineSpec given_spec() const;
  const RuntimeOptions& runtime() const { return runtime_; }

 private:
  PipelineSpec SpecFor(Depth depth) const;

  std::string spec_file_;
  SpecFlags spec_flags_;
  HttpFlags http_flags_;
  RuntimeOptions runtime_;
  bool quiet_ = false;
};

}  // namespace echopipe::cli
