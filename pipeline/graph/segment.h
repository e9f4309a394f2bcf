#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/clock.h>
#include <echopipe/pipeline/graph/message.h>
#include <echopipe/pipeline/graph/meter.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/trace.h>

namespace echopipe::internal {

/// The crop whose box alone the stage of that index has to decode; null if it is no decode stage,
/// or there is none right behind it.
const CropStage* CropBehind(const std::vector<PlannedStage>& stages, size_t decode);
/// The last one, if it can write straight into a batch; else null.
const WritingStage* WriterOf(const std::vector<PlannedStage>& stages);

/// The example-wise stages between two joints, run back to back on one core.
///
/// A decode stage with a crop right behind it decodes the crop's box alone. The writing stage at
/// the end of the last segment is left to the batch, which has it write into a slot.
/// Threads  Process() and Write() run on many threads at once.
class Segment {
 public:
  struct Options {
    uint64_t seed = 0;
    bool writes_batches = false;  ///< the last segment, in front of batch
    bool fail_on_bad = true;
    std::string name = {};   ///< where it is, for a trace
    Trace* trace = nullptr;  ///< null: none
  };

  Segment(std::vector<PlannedStage> stages, const Options& options, BufferPool& pool,
          const Clock& clock);

  /// Passes the item through the stages. What fails becomes a tombstone, or, if `fail_on_bad` or
  /// for want of memory, the end with its error.
  Message Process(Message message);

  bool empty() const { return stages_.empty(); }
  /// The stage left to the batch; null if there is none.
  const WritingStage* writer() const { return writer_; }
  /// Precondition: there is one.
  const std::string& writer_name() const { return stages_.back().name; }
  /// Counts the time of a writer's work.
  void CountWriting(Clock::Duration busy) { meters_.back()->Add(busy); }
  /// What each stage did; call from any thread.
  std::vector<StageStats> Stats(int threads) const;

 private:
  void Run(Item& item, std::string_view* stage_at_work, TraceBody& trace);
  /// If a decode stage stands here in front of a crop: decodes the crop's box and true.
  bool DecodeBox(size_t stage, Example& example, const Identity& identity) const;
  StageContext ContextOf(const PlannedStage& stage, const Identity& identity) const;

  std::vector<PlannedStage> stages_;
  std::vector<const CropStage*>
      crop_behind_;  // for each stage: the crop it can decode for, or null
  Options options_;
  BufferPool& pool_;
  const Clock& clock_;
  const WritingStage* writer_ = nullptr;
  std::vector<std::unique_ptr<StageMeter>> meters_;  // one for each stage
};

}  // namespace echopipe::internal
