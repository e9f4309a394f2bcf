#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/tests/support/synthetic_source.h>

namespace echopipe::testing {

/// A graph over a synthetic source.
class GraphRun {
 public:
  GraphRun(const PipelineSpec& spec, const SyntheticSource::Options& source,
           const RuntimeOptions& options = {})
      : graph_(spec, options, options.clock ? options.clock : MakeSteadyClock(),
               [&](BufferPool& pool, std::function<void()> wake) {
                 auto made = std::make_unique<SyntheticSource>(source, pool, std::move(wake));
                 source_ = made.get();
                 return made;
               }) {}

  internal::Graph& graph() { return graph_; }
  SyntheticSource& source() { return *source_; }

  /// All batches there are. Throws what ends the graph.
  std::vector<Batch> Drain() {
    std::vector<Batch> batches;
    while (std::optional<Batch> batch = graph_.Take()) batches.push_back(*std::move(batch));
    return batches;
  }

 private:
  SyntheticSource* source_ = nullptr;
  internal::Graph graph_;
};

/// "epoch.ordinal[use,use]" of every example, batches in "( )", an epoch's end as "|".
inline std::string Describe(const std::vector<Batch>& batches) {
  std::string text;
  for (const Batch& batch : batches) {
    text += "(";
    for (size_t i = 0; i < batch.size(); ++i) {
      const Identity identity = batch.provenance(i).identity;
      if (i > 0) text += " ";
      text += std::to_string(identity.epoch) + "." + std::to_string(identity.ordinal);
      if (identity.echo_points == 0) continue;
      text += "[";
      for (uint32_t point = 0; point < identity.echo_points; ++point) {
        text += (point > 0 ? "," : "") + std::to_string(identity.use[point]);
      }
      text += "]";
    }
    text += batch.end_of_epoch() ? ")|" : ")";
  }
  return text;
}

}  // namespace echopipe::testing
