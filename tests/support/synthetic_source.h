#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/mutex.h>
#include <echopipe/io/source.h>

namespace echopipe::testing {

/// A source of made-up records: key "item-<ordinal>", label = ordinal, one member "image" of 8
/// bytes that hold the ordinal. Ready at once, or as far as a gate lets them.
class SyntheticSource final : public Source {
 public:
  struct Options {
    uint64_t records = 0;              ///< in each epoch
    uint64_t epochs = 1;               ///< 0: endless
    std::set<uint64_t> bad = {};       ///< ordinals that cannot be read
    bool gated = false;                ///< nothing comes before Release()
    uint64_t fails_at = ~uint64_t{0};  ///< the stream breaks after so many items
    SourceState start = {};            ///< epoch and next_ordinal
  };

  SyntheticSource(Options options, BufferPool& pool, std::function<void()> wake);

  void Poll(uint64_t wanted, std::vector<SourceItem>* out) override;
  bool AtEnd() const override;
  void Reread(std::vector<RecordPlace> places) override { rereads_ = std::move(places); }
  void Advance(uint64_t items) override { advanced_ += items; }
  SourceState state() const override;
  uint64_t fingerprint() const override { return options_.records; }
  SourceCounters counters() const override { return {}; }
  std::optional<uint64_t> epoch_size() const override { return options_.records; }

  /// Lets `count` more items come.
  void Release(uint64_t count);

 private:
  SourceItem MakeItem(uint64_t epoch, uint64_t ordinal) const;

  Options options_;
  BufferPool& pool_;
  std::function<void()> wake_;
  uint64_t epoch_ = 0;
  uint64_t ordinal_ = 0;
  uint64_t given_ = 0;
  std::atomic<uint64_t> advanced_ = 0;
  std::vector<RecordPlace> rereads_;
  mutable Mutex mutex_;
  uint64_t released_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace echopipe::testing
