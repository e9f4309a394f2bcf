#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <echopipe/cli/console.h>
#include <echopipe/cli/status_ticker.h>
#include <echopipe/pipeline/pipeline.h>

namespace echopipe::cli {

/// Tells every now and then how far a pipeline is, until it is destroyed.
class Progress {
 public:
  /// Both must outlive this.
  Progress(const Pipeline& pipeline, const PipelineSpec& spec, Console& console);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Of the last batch, from 0.
  void SetPlace(uint64_t epoch, uint64_t step) {
    epoch_ = epoch;
    step_ = step;
  }

 private:
  std::string Text() const;

  const Pipeline& pipeline_;
  std::string epochs_;  // " of 3"
  std::atomic<uint64_t> epoch_{0};
  std::atomic<uint64_t> step_{0};
  StatusTicker ticker_;  // last: it looks at the others
};

}  // namespace echopipe::cli
