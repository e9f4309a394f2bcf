#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/batch.h>

namespace echopipe::testing {

/// Batches that came in any order, put back into the order of their steps.
class BatchesByStep {
 public:
  void Add(Batch batch) {
    const uint64_t step = batch.step();
    batches_.emplace(step, std::move(batch));
  }
  size_t size() const { return batches_.size(); }
  std::string Hash() const {
    BatchHash hash;
    for (const auto& [step, batch] : batches_) hash.Add(batch);
    return hash.Hex();
  }

 private:
  std::multimap<uint64_t, Batch> batches_;
};

}  // namespace echopipe::testing
