#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>
#include <utility>

#include <echopipe/io/epoch_order.h>
#include <echopipe/io/record_order.h>
#include <echopipe/io/source_trail.h>

namespace echopipe::internal {

/// The records between their places in an order and their delivery.
///
/// An Entry has a `position`, and IsReady() once all of it has come. Entries stay where they are in
/// memory until they are taken.
/// Order  As added, or with RecordOrder::kAsReady what is ready first; but no entry overtakes those
///        of an epoch before its own.
template <class Entry>
class InFlight {
 public:
  /// `trail` is told what is given, and must outlive it.
  InFlight(RecordOrder order, SourceTrail& trail) : order_(order), trail_(trail) {}

  bool empty() const { return entries_.empty(); }
  uint64_t size() const { return entries_.size(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  Entry& front() { return entries_.front(); }
  Entry& back() { return entries_.back(); }

  /// The position behind the one before.
  Entry& Add(Entry entry) {
    if (entry.position.ends_epoch) whole_epoch_ = entry.position.epoch;
    entries_.push_back(std::move(entry));
    return entries_.back();
  }

  /// The next to be given, if it has come; its position ends the epoch if it is the last one given.
  std::optional<Entry> TakeReady() {
    const auto found = FindReady();
    if (found == entries_.end()) return std::nullopt;
    Entry entry = std::move(*found);
    entries_.erase(found);
    const uint64_t epoch = entry.position.epoch;
    const bool more = !entries_.empty() && entries_.front().position.epoch == epoch;
    entry.position.ends_epoch = !more && whole_epoch_ >= epoch;
    trail_.Give(entry.position.ordinal);
    return entry;
  }
  bool HasReady() { return FindReady() != entries_.end(); }

 private:
  auto FindReady() {
    if (order_ == RecordOrder::kInOrder) {
      return !empty() && front().IsReady() ? entries_.begin() : entries_.end();
    }
    return std::ranges::find_if(entries_, [this](const Entry& entry) {
      return entry.IsReady() && entry.position.epoch == front().position.epoch;
    });
  }

  RecordOrder order_;
  SourceTrail& trail_;
  std::list<Entry> entries_;
  std::optional<uint64_t> whole_epoch_;  // the last of which every position was added
};

}  // namespace echopipe::internal
