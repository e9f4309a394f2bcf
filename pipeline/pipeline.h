#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/batch.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/pipeline/options.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/pipeline/stats.h>

namespace echopipe {

/// A running pipeline: batches, made ahead of the consumer.
///
///     auto pipeline = Pipeline::Open(spec);
///     for (const Batch& batch : *pipeline) Train(batch);
///
/// Keep the pipeline in a variable: a loop over `*Pipeline::Open(spec)` outlives it.
/// Order      A function of the spec, the rank and the data: the same on any number of threads.
/// Buffering  As much as the spec's shuffle buffers and `prefetch` ask for, and no more.
/// End        Next() gives nothing after the last batch of the last epoch.
/// Errors     What ends the pipeline is thrown by Next() after everything made before it has been
///            delivered, and again by each later call.
/// Threads    Every method may be called from any thread, from TBB tasks too; the destructor once
///            the others have returned. A child after fork() can only destroy it.
class ECHOPIPE_EXPORT Pipeline {
 public:
  /// Lists the source and starts to read. Throws kInvalidArgument for the spec or the options, and
  /// what listing the source throws.
  static std::unique_ptr<Pipeline> Open(const PipelineSpec& spec,
                                        const RuntimeOptions& options = {}, Rank rank = {});
  /// Goes on behind the checkpoint's last step: the batches are those that the pipeline it was
  /// taken of gives (or would have given), with their steps, on any number of threads. Reads what
  /// its echo points held again, each record once. Throws what Open() throws; kInvalidArgument
  /// that names the difference for another spec, rank or listing of the data.
  static std::unique_ptr<Pipeline> Restore(const PipelineSpec& spec,
                                           const PipelineCheckpoint& checkpoint,
                                           const RuntimeOptions& options = {}, Rank rank = {});
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// The next batch, or nothing at the end. Waits for it (a stall); meanwhile this thread may do a
  /// part of the work.
  std::optional<Batch> Next();
  /// Ends the pipeline: callers waiting in Next(), and later ones, get a kStopped error.
  void Stop();
  PipelineStats Stats() const;
  /// Where the pipeline stands behind the batches that Next() has given; it goes on meanwhile.
  /// After Stop() too. Throws once a failure of the pipeline's has changed what Next() gives.
  PipelineCheckpoint Checkpoint() const;

  /// Over the batches that Next() gives; one pass.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    explicit Iterator(Pipeline* pipeline) : pipeline_(pipeline) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = pipeline_->Next();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    Pipeline* pipeline_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  class Impl;
  explicit Pipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace echopipe
