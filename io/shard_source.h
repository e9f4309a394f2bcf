#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/echo/echo_buffer.h>
#include <echopipe/io/epoch_order.h>
#include <echopipe/io/read_queue.h>
#include <echopipe/io/sample_loader.h>
#include <echopipe/io/shard_stream.h>
#include <echopipe/io/source.h>
#include <echopipe/io/source_trail.h>

namespace echopipe::internal {

/// The samples of shards in epoch order, streamed.
///
///     shards  -->  samples  -->  [ shuffle window ]  -->  positions 0, 1, 2, ... dealt to ranks
///
/// Order      The shards as given, or permuted for each epoch and their samples drawn from the
///            window. The window is drained at each epoch's border.
/// Buffering  The window, and a look-ahead of less than two rounds of the ranks: only then is it
///            known that a round is complete, and which one is the last.
/// Errors     Bad samples are items, and so is a shard that cannot be read. Poll() throws kEmpty
///            after an epoch without a good record, kInvalidArgument if an epoch has fewer items
///            than there are ranks.
class ShardSource final : public Source {
 public:
  ShardSource(std::vector<std::string> uris, std::unique_ptr<const ShardFormat> format,
              const EpochOptions& options, const SourceState& start,
              std::shared_ptr<Storage> storage, BufferPool& pool, const SourceLimits& limits,
              std::function<void()> wake);

  void Poll(uint64_t wanted, std::vector<SourceItem>* out) override;
  void Reread(std::vector<RecordPlace> places) override;
  bool AtEnd() const override;
  void Advance(uint64_t items) override { trail_.Advance(items); }
  SourceState state() const override { return trail_.state(); }
  uint64_t fingerprint() const override { return stream_.fingerprint(); }
  SourceCounters counters() const override { return reads_.counters(); }
  uint64_t window_records() const override {
    return options_.shuffle == EpochOptions::Shuffle::kWindow ? options_.window : 0;
  }
  std::optional<uint64_t> epoch_size() const override { return std::nullopt; }

 private:
  /// A sample in the window, or one read again. `item` lacks its epoch and ordinal.
  struct Entry {
    SourceItem item;
    bool loaded = true;
  };

  void RestoreWindow(const SourceState& start);
  void TakeArrivals();
  std::optional<SourceItem> NextItem();
  uint64_t NextOrdinal() const;
  void LookAhead(uint64_t positions);
  bool PullSample();
  uint64_t Known() const;
  bool EndIsKnown() const;
  bool DrawUpTo(uint64_t ordinal);
  bool FillWindow();
  void Admit(ShardSample sample);
  void FinishEpoch();
  bool Ended() const { return options_.epochs != 0 && epoch_ >= options_.epochs; }

  EpochOptions options_;
  std::unique_ptr<const ShardFormat> format_;
  ReadQueue reads_;  // both before those that use them
  SourceTrail trail_;
  ShardStream stream_;
  SampleLoader loader_;
  uint64_t epoch_;
  uint64_t drawn_;  // positions of the epoch
  uint64_t good_;   // records among them
  std::optional<EchoBuffer<Entry>> window_;
  std::deque<ShardSample> ahead_;     // known, but not in the window
  bool stream_ended_ = false;         // for this epoch
  std::shared_ptr<const Entry> due_;  // drawn as position drawn_ - 1, not given yet
  std::optional<Error> first_error_;  // of the epoch
  std::vector<SourceItem> reread_;    // have come, not given yet
  uint64_t reread_bytes_ = 0;         // counted in flight for them
  std::optional<Error> fatal_;
};

}  // namespace echopipe::internal
