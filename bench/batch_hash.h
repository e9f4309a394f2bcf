#pragma once

#include <memory>
#include <string>

#include <echopipe/pipeline/batch.h>

namespace echopipe {

/// A hash of all that a run delivers, in order: tensors, labels, epochs and their ends, and where
/// each example comes from (key, epoch, ordinal, uses, age, whom it stands in for; not the uri,
/// which differs between machines). XXH3, 128 bit.
class BatchHash {
 public:
  BatchHash();
  ~BatchHash();

  void Add(const Batch& batch);
  /// Of the batches so far, as 32 hex digits.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echopipe
