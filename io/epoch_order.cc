#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/io/epoch_order.h>

namespace echopipe::internal {
namespace {

// Tell the random numbers of one seed apart.
constexpr uint64_t kPermutationTag = 0x7065726d757465;  // "permute"
constexpr uint64_t kWindowTag = 0x77696e646f77;         // "window"

}  // namespace

RandomKey PermutationKey(uint64_t seed, uint64_t epoch) {
  return HashToKey(std::array<uint64_t, 3>{kPermutationTag, seed, epoch});
}

EchoOptions WindowOptions(const EpochOptions& options, uint64_t epoch) {
  const RandomKey key = HashToKey(std::array<uint64_t, 3>{kWindowTag, options.seed, epoch});
  const bool shuffled = options.shuffle == EpochOptions::Shuffle::kWindow;
  const uint64_t window = shuffled ? options.window : 1;
  // The fill target begins at the spacing. An item that is used once cannot come too soon again, so
  // this only has the window filled before the first draw.
  return {.shuffle_buffer = window, .spacing = window, .seed = key.low, .point = key.high};
}

ListingOrder::ListingOrder(uint64_t records, const EpochOptions& options, const SourceState& start,
                           SourceTrail& trail)
    : records_(records), options_(options), trail_(trail) {
  const uint64_t positions = options.take == 0 ? records : std::min(options.take, records);
  rounds_ = positions / options.shard.world;
  if (rounds_ == 0) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "an epoch has fewer records than there are ranks",
                 .where = "source",
                 .got = std::to_string(positions),
                 .wanted = "at least " + std::to_string(options.shard.world)});
  }
  Restore(start);
}

void ListingOrder::Restore(const SourceState& start) {
  BeginEpoch(start.epoch);
  next_ordinal_ = start.next_ordinal;
  // In a window each record has its draw.
  const EchoState& window = start.window;
  bool possible = options_.shuffle != EpochOptions::Shuffle::kWindow ||
                  (window.draws == start.next_ordinal && window.admitted <= records_ &&
                   (!window.closed || window.admitted == records_));
  std::vector<std::shared_ptr<const uint64_t>> residents;
  for (const SourceState::Resident& resident : start.residents) {
    possible = possible && resident.place.file < records_;
    residents.push_back(std::make_shared<const uint64_t>(resident.place.file));
  }
  for (const SourceState::Late& late : start.late) {
    possible = possible && late.place.file < records_ && late.ordinal < start.next_ordinal &&
               late.ordinal < rounds_ * options_.shard.world &&
               late.ordinal % options_.shard.world == options_.shard.rank &&
               (late_.empty() || late_.back().ordinal < late.ordinal);
    late_.push_back(late);
  }
  if (!possible) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "the state is not one of this data",
                 .where = "source state"});
  }
  window_.emplace(WindowOptions(options_, start.epoch), start.window, std::move(residents));
}

std::optional<ListingOrder::Position> ListingOrder::Next() {
  const Shard& shard = options_.shard;
  if (!late_.empty()) return NextLate();
  while (!AtEnd()) {
    const uint64_t ordinal = NextOrdinal();
    if (ordinal >= rounds_ * shard.world) {
      BeginEpoch(epoch_ + 1);
      continue;
    }
    const Position position{.epoch = epoch_,
                            .ordinal = ordinal,
                            .record = RecordAt(ordinal),
                            .ends_epoch = ordinal + shard.world >= rounds_ * shard.world};
    next_ordinal_ = ordinal + 1;
    trail_.EndItem(ordinal, {.file = position.record});
    if (position.ends_epoch) EndEpoch();
    return position;
  }
  return std::nullopt;
}

// The trail knows of it from the state.
ListingOrder::Position ListingOrder::NextLate() {
  const SourceState::Late late = late_.front();
  late_.pop_front();
  const Position position{
      .epoch = epoch_,
      .ordinal = late.ordinal,
      .record = late.place.file,
      .ends_epoch = late_.empty() && NextOrdinal() >= rounds_ * options_.shard.world};
  if (position.ends_epoch) EndEpoch();
  return position;
}

// The first position of this rank's at or behind next_ordinal_.
uint64_t ListingOrder::NextOrdinal() const {
  const Shard& shard = options_.shard;
  const uint64_t behind = next_ordinal_ % shard.world;
  return next_ordinal_ + (shard.rank + (behind > shard.rank ? shard.world : 0) - behind);
}

void ListingOrder::EndEpoch() {
  BeginEpoch(epoch_ + 1);
  trail_.BeginEpoch(epoch_);
}

void ListingOrder::BeginEpoch(uint64_t epoch) {
  epoch_ = epoch;
  next_ordinal_ = 0;
  if (options_.shuffle == EpochOptions::Shuffle::kFull) {
    permutation_.emplace(records_, PermutationKey(options_.seed, epoch));
  }
  window_.emplace(WindowOptions(options_, epoch));
}

uint64_t ListingOrder::RecordAt(uint64_t ordinal) {
  if (permutation_) return (*permutation_)(ordinal);
  if (options_.shuffle == EpochOptions::Shuffle::kNone) return ordinal;
  uint64_t record = 0;
  for (; next_ordinal_ <= ordinal; ++next_ordinal_) record = DrawFromWindow();
  return record;
}

uint64_t ListingOrder::DrawFromWindow() {
  while (window_->HasRoom()) {
    const uint64_t record = window_->order().admitted();
    if (record == records_) {
      window_->Close();
      trail_.CloseWindow();
      break;
    }
    window_->Offer(std::make_shared<const uint64_t>(record));
    trail_.Admit({.resident = {.place = {.file = record}}});
  }
  trail_.Draw();
  return *window_->Draw()->item;
}

}  // namespace echopipe::internal
