#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/io/epoch_order.h>
#include <echopipe/io/formats/shard_format.h>
#include <echopipe/io/in_flight.h>
#include <echopipe/io/indexed_shards.h>
#include <echopipe/io/read_queue.h>
#include <echopipe/io/sample_loader.h>
#include <echopipe/io/source.h>
#include <echopipe/io/source_trail.h>

namespace echopipe::internal {

/// The samples of shards in any order, each read by the place that its shard's index tells.
///
/// Order      A permutation of all samples of all shards for each epoch. RecordOrder::kAsReady: in
///            an epoch what has arrived comes first.
/// Reading    A sample at a time, in one read; many at once.
/// Bad items  Those that a stream of the shards has, and samples whose bytes are no sample any
/// more.
class IndexedSource final : public Source {
 public:
  IndexedSource(IndexedShards shards, std::unique_ptr<const ShardFormat> format,
                const EpochOptions& options, RecordOrder order, const SourceState& start,
                std::shared_ptr<Storage> storage, BufferPool& pool, const SourceLimits& limits,
                std::function<void()> wake);

  void Poll(uint64_t wanted, std::vector<SourceItem>* out) override;
  void Reread(std::vector<RecordPlace> places) override;
  bool AtEnd() const override { return entries_.empty() && order_.AtEnd(); }
  void Advance(uint64_t items) override { trail_.Advance(items); }
  SourceState state() const override { return trail_.state(); }
  uint64_t fingerprint() const override { return fingerprint_; }
  SourceCounters counters() const override { return reads_.counters(); }
  std::optional<uint64_t> epoch_size() const override { return order_.epoch_size(); }

 private:
  /// A sample between its place in the order and its delivery.
  struct Entry {
    enum class Stage { kWaiting, kReading, kReady };

    ListingOrder::Position position = {};
    SourceItem item = {};
    Stage stage = Stage::kWaiting;
    uint64_t held_bytes = 0;  // counted in flight for it, once it has come

    bool IsReady() const { return stage == Stage::kReady; }
  };

  void Give(Entry entry, std::vector<SourceItem>* out);
  void TakeArrivals();
  void StartReads(uint64_t wanted);
  bool Add(const ListingOrder::Position& position);
  bool Start(Entry& entry);
  void Receive(Entry& entry, Sample sample, uint64_t held_bytes);

  IndexedShards shards_;
  std::unique_ptr<const ShardFormat> format_;
  SourceTrail trail_;
  ListingOrder order_;
  uint64_t fingerprint_;
  ReadQueue reads_;  // before those that use it
  SampleLoader loader_;
  SampleLoader rereader_;
  InFlight<Entry> entries_;   // the last one may be waiting
  std::deque<Entry> reread_;  // have come, not given yet
};

}  // namespace echopipe::internal
