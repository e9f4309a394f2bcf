#include <algorithm>
#include <iterator>
#include <utility>

#include <echopipe/io/shard_source.h>

namespace echopipe::internal {

ShardSource::ShardSource(std::vector<std::string> uris, std::unique_ptr<const ShardFormat> format,
                         const EpochOptions& options, const SourceState& start,
                         std::shared_ptr<Storage> storage, BufferPool& pool,
                         const SourceLimits& limits, std::function<void()> wake)
    : options_(options),
      format_(std::move(format)),
      reads_(std::move(storage), pool, limits, std::move(wake)),
      trail_(start, [options](uint64_t epoch) { return WindowOptions(options, epoch); }),
      stream_(std::move(uris), *format_, options, start, limits, reads_),
      loader_(*format_, RereadsAtOnce(limits), reads_),
      epoch_(start.epoch),
      drawn_(start.next_ordinal),
      good_(start.records) {
  RestoreWindow(start);
}

void ShardSource::RestoreWindow(const SourceState& start) {
  std::vector<std::shared_ptr<const Entry>> residents;
  for (const SourceState::Resident& resident : start.residents) {
    auto entry = std::make_shared<Entry>(Entry{.item = {.place = resident.place,
                                                        .uri = stream_.uri(resident.place.file),
                                                        .key = resident.key,
                                                        .error = resident.error},
                                               .loaded = resident.error.has_value()});
    residents.push_back(entry);
    if (entry->loaded) continue;
    loader_.Add(entry->item.uri, entry->item.place, [this, entry](Sample sample, uint64_t held) {
      entry->item.key = std::move(sample.key);
      entry->item.record = std::move(sample.record);
      entry->item.error = std::move(sample.error);
      entry->loaded = true;
      reads_.Release(held);
    });
  }
  window_.emplace(WindowOptions(options_, epoch_), start.window, std::move(residents));
}

void ShardSource::Poll(uint64_t wanted, std::vector<SourceItem>* out) {
  TakeArrivals();
  std::ranges::move(std::exchange(reread_, {}), std::back_inserter(*out));
  reads_.Release(std::exchange(reread_bytes_, 0));
  uint64_t given = 0;
  for (; given < wanted; ++given) {
    std::optional<SourceItem> item = NextItem();
    if (!item) break;
    out->push_back(*std::move(item));
  }
  if (fatal_) {
    if (given == 0) throw *fatal_;
    return;
  }
  loader_.StartReads();
  if (!Ended()) stream_.StartReads((wanted - given) * options_.shard.world);
}

void ShardSource::Reread(std::vector<RecordPlace> places) {
  for (uint64_t i = 0; i < places.size(); ++i) {
    const RecordPlace& place = places[i];
    if (place.file >= stream_.shards()) {
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "no such shard",
                   .where = "source state",
                   .got = std::to_string(place.file),
                   .wanted = "less than " + std::to_string(stream_.shards())});
    }
    const std::shared_ptr<const std::string>& uri = stream_.uri(place.file);
    loader_.Add(uri, place, [this, i, place, uri](Sample sample, uint64_t held) {
      reread_bytes_ += held;
      reread_.push_back({.place = place,
                         .uri = uri,
                         .key = std::move(sample.key),
                         .record = std::move(sample.record),
                         .error = std::move(sample.error),
                         .reread = i});
    });
  }
}

bool ShardSource::AtEnd() const { return Ended() && !fatal_; }

void ShardSource::TakeArrivals() {
  for (ReadQueue::Arrival& arrival : reads_.TakeArrivals()) {
    if (stream_.Take(arrival) || loader_.Take(arrival)) continue;
    // Of a shard that was left early.
    if (arrival.result.ok()) reads_.Release(arrival.result.value().data->size());
  }
}

std::optional<SourceItem> ShardSource::NextItem() {
  const uint64_t world = options_.shard.world;
  while (!fatal_ && !Ended()) {
    const uint64_t ordinal = due_ ? drawn_ - 1 : NextOrdinal();
    const uint64_t round_end = (ordinal / world + 1) * world;
    LookAhead(round_end + world);
    if (!EndIsKnown() && Known() < round_end + world) return std::nullopt;
    if (Known() < round_end) {
      FinishEpoch();
      continue;
    }
    if (!DrawUpTo(ordinal) || !due_->loaded) return std::nullopt;
    SourceItem item = due_->item;
    due_ = nullptr;
    item.epoch = epoch_;
    item.ordinal = ordinal;
    item.ends_epoch = Known() < round_end + world;
    trail_.EndItem(ordinal, item.place);
    trail_.Give(ordinal);
    if (item.ends_epoch) FinishEpoch();
    return item;
  }
  return std::nullopt;
}

// The first position of this rank's that is not drawn yet.
uint64_t ShardSource::NextOrdinal() const {
  const uint64_t world = options_.shard.world;
  const uint64_t round = drawn_ / world * world;
  const uint64_t ordinal = round + options_.shard.rank;
  return ordinal >= drawn_ ? ordinal : ordinal + world;
}

// Positions that the epoch has for certain.
uint64_t ShardSource::Known() const {
  const uint64_t known = drawn_ + window_->order().residents() + ahead_.size();
  return options_.take == 0 ? known : std::min(known, options_.take);
}

bool ShardSource::EndIsKnown() const {
  return stream_ended_ || (options_.take != 0 && Known() == options_.take);
}

void ShardSource::LookAhead(uint64_t positions) {
  while (Known() < positions && !EndIsKnown()) {
    if (!PullSample()) return;
  }
}

// False if the stream has ended or has to wait.
bool ShardSource::PullSample() {
  ShardSample sample;
  const ShardStream::Status status = stream_.Next(&sample);
  stream_ended_ = status == ShardStream::Status::kEndOfEpoch;
  if (status != ShardStream::Status::kSample) return false;
  if (window_->order().closed()) {  // as restored
    fatal_ = Error({.code = ErrorCode::kInvalidArgument,
                    .what = "the state is not one of this data: samples follow its end",
                    .where = "source state"});
    return false;
  }
  if (sample.sample.error && !first_error_) first_error_ = sample.sample.error;
  ahead_.push_back(std::move(sample));
  return true;
}

// False if samples have to arrive first. Precondition: the epoch has that position.
bool ShardSource::DrawUpTo(uint64_t ordinal) {
  for (; drawn_ <= ordinal; ++drawn_) {
    if (!FillWindow()) return false;
    const std::shared_ptr<const Entry> entry = window_->Draw()->item;
    trail_.Draw();
    good_ += entry->item.error ? 0 : 1;
    if (drawn_ == ordinal) due_ = entry;  // the others are for other ranks
  }
  return true;
}

bool ShardSource::FillWindow() {
  while (window_->HasRoom()) {
    if (ahead_.empty() && !stream_ended_ && !PullSample() && !stream_ended_) return false;
    if (ahead_.empty()) {
      window_->Close();
      trail_.CloseWindow();
      return true;
    }
    Admit(std::move(ahead_.front()));
    ahead_.pop_front();
  }
  return true;
}

void ShardSource::Admit(ShardSample sample) {
  Sample& found = sample.sample;
  if (found.record) reads_.Release(found.record->size());
  SourceTrail::Entry entry{.resident = {.place = sample.place, .error = found.error},
                           .shard = sample.shard,
                           .next_shard = sample.next_shard,
                           .next_byte_offset = sample.next_byte_offset};
  if (found.error) entry.resident.key = found.key;
  entry.key_hash = found.key_hash;
  trail_.Admit(std::move(entry));
  window_->Offer(std::make_shared<const Entry>(Entry{.item = {.place = sample.place,
                                                              .uri = std::move(sample.uri),
                                                              .key = std::move(found.key),
                                                              .record = std::move(found.record),
                                                              .error = std::move(found.error)}}));
}

void ShardSource::FinishEpoch() {
  if (Known() < options_.shard.world && Known() > 0) {
    fatal_ = Error({.code = ErrorCode::kInvalidArgument,
                    .what = "an epoch has fewer records than there are ranks",
                    .where = "source",
                    .got = std::to_string(Known()),
                    .wanted = "at least " + std::to_string(options_.shard.world)});
  } else if (good_ == 0) {
    fatal_ = Error({.code = ErrorCode::kEmpty,
                    .what = "an epoch has no good record",
                    .where = *stream_.uri(0) + (stream_.shards() > 1 ? " and further shards" : ""),
                    .got = first_error_ ? first_error_->what() : ""});
  }
  for (const ShardSample& left : ahead_) {
    if (left.sample.record) reads_.Release(left.sample.record->size());
  }
  ahead_.clear();
  stream_.NextEpoch();
  stream_ended_ = false;
  first_error_.reset();
  drawn_ = 0;
  good_ = 0;
  window_.emplace(WindowOptions(options_, ++epoch_));
  trail_.BeginEpoch(epoch_);
}

}  // namespace echopipe::internal
