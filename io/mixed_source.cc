#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <echopipe/base/random.h>
#include <echopipe/io/mixed_source.h>

namespace echopipe::internal {
namespace {

// "mix": no other random numbers have this name.
constexpr uint64_t kMixName = 0x6d6978;

}  // namespace

MixedSource::MixedSource(std::vector<Part> parts, uint64_t seed, const Shard& shard,
                         const SourceState& start)
    : seed_(seed),
      shard_(shard),
      next_{.epoch = start.epoch, .round = start.next_ordinal / shard.world},
      advanced_(next_) {
  for (Part& part : parts) {
    total_weight_ += part.weight;
    parts_.push_back({.part = std::move(part)});
  }
}

size_t MixedSource::PartAt(const Cursor& cursor) const {
  RandomStream random(HashToKey(std::array{kMixName, seed_, cursor.epoch, cursor.round}));
  uint64_t drawn = random.Below(static_cast<uint32_t>(total_weight_));
  size_t part = 0;
  for (; drawn >= parts_[part].part.weight; ++part) drawn -= parts_[part].part.weight;
  return part;
}

void MixedSource::Poll(uint64_t wanted, std::vector<SourceItem>* out) {
  PlanTo(wanted);
  for (Mixed& mixed : parts_) PollPart(mixed, out);
  for (uint64_t given = 0; given < wanted && !AtEnd(); ++given) {
    PlanTo(std::max<uint64_t>(plan_.size(), 1));
    const size_t part = plan_.front();
    if (parts_[part].ready.empty()) {
      if (parts_[part].failed && given == 0) throw *parts_[part].failed;
      return;
    }
    out->push_back(TakeNext());
  }
}

// Where the epoch ends is not known: beyond its end the plan is not what will come.
void MixedSource::PlanTo(uint64_t items) {
  for (; plan_.size() > items; plan_.pop_back()) --parts_[plan_.back()].planned;
  while (plan_.size() < items) {
    plan_.push_back(PartAt({.epoch = next_.epoch, .round = next_.round + plan_.size()}));
    ++parts_[plan_.back()].planned;
  }
}

// Once it has failed, or as long as enough waits, it is only asked for what is read again.
void MixedSource::PollPart(Mixed& mixed, std::vector<SourceItem>* rereads) {
  if (mixed.failed) return;
  std::vector<SourceItem> arrived;
  const uint64_t waiting = mixed.ready.size();
  try {
    mixed.part.source->Poll(mixed.planned > waiting ? mixed.planned - waiting : 0, &arrived);
  } catch (const Error& error) {
    mixed.failed = error;
  }
  const auto index = static_cast<uint64_t>(&mixed - parts_.data());
  for (SourceItem& item : arrived) {
    item.place.file = item.place.file * parts_.size() + index;
    if (item.reread) {
      item.reread = mixed.rereads[*item.reread];
      rereads->push_back(std::move(item));
    } else {
      mixed.ready.push_back(std::move(item));
    }
  }
}

SourceItem MixedSource::TakeNext() {
  const size_t part = plan_.front();
  --parts_[part].planned;
  plan_.pop_front();
  SourceItem item = std::move(parts_[part].ready.front());
  parts_[part].ready.pop_front();
  item.epoch = next_.epoch;
  item.ordinal = next_.round * shard_.world + shard_.rank;
  item.ends_epoch = part == 0 && item.ends_epoch;
  next_.Pass(item.ends_epoch);
  if (item.ends_epoch) PlanTo(0);
  MutexLock lock(mutex_);
  given_.push_back({.part = part, .ends_epoch = item.ends_epoch});
  return item;
}

void MixedSource::Reread(std::vector<RecordPlace> places) {
  std::vector<std::vector<RecordPlace>> of_parts(parts_.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t part = places[i].file % parts_.size();
    places[i].file /= parts_.size();
    of_parts[part].push_back(places[i]);
    parts_[part].rereads.push_back(i);
  }
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].part.source->Reread(std::move(of_parts[i]));
}

bool MixedSource::AtEnd() const {
  return parts_[0].ready.empty() && !parts_[0].failed && parts_[0].part.source->AtEnd();
}

void MixedSource::Advance(uint64_t items) {
  MutexLock lock(mutex_);
  for (; items > 0 && !given_.empty(); --items) {
    advanced_.Pass(given_.front().ends_epoch);
    parts_[given_.front().part].part.source->Advance(1);
    given_.pop_front();
  }
}

SourceState MixedSource::state() const {
  MutexLock lock(mutex_);
  SourceState state{.epoch = advanced_.epoch, .next_ordinal = advanced_.round * shard_.world};
  for (const Mixed& mixed : parts_) state.mixed.push_back(mixed.part.source->state());
  return state;
}

uint64_t MixedSource::fingerprint() const {
  uint64_t hash = 0;
  for (const Mixed& mixed : parts_) {
    hash = HashToKey(std::array{hash, mixed.part.source->fingerprint()}).low;
  }
  return hash;
}

SourceCounters MixedSource::counters() const {
  SourceCounters sum;
  for (const Mixed& mixed : parts_) {
    const SourceCounters counters = mixed.part.source->counters();
    sum.reads_in_flight += counters.reads_in_flight;
    sum.bytes_in_flight += counters.bytes_in_flight;
    sum.peak_reads_in_flight += counters.peak_reads_in_flight;
    sum.peak_bytes_in_flight += counters.peak_bytes_in_flight;
  }
  return sum;
}

uint64_t MixedSource::window_records() const {
  uint64_t records = 0;
  for (const Mixed& mixed : parts_) records += mixed.part.source->window_records();
  return records;
}

}  // namespace echopipe::internal
