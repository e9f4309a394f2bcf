#include <string>
#include <utility>

#include <echopipe/io/indexed_source.h>

namespace echopipe::internal {
namespace {

// Start() asks the queue for room itself. The loader counts reads until it has taken them, so with
// a limit of its own it might not start what the queue has room for.
constexpr uint64_t kNoLimit = ~uint64_t{0};

// Several of a shard may be bad and without a key: they are told apart by their places. The first
// has none in the stream either.
Sample Named(Sample sample, const RecordPlace& place) {
  const bool is_nameless = sample.error && sample.key.empty() && place.offset > 0;
  if (is_nameless) sample.key = "@" + std::to_string(place.offset);
  return sample;
}

}  // namespace

IndexedSource::IndexedSource(IndexedShards shards, std::unique_ptr<const ShardFormat> format,
                             const EpochOptions& options, RecordOrder order,
                             const SourceState& start, std::shared_ptr<Storage> storage,
                             BufferPool& pool, const SourceLimits& limits,
                             std::function<void()> wake)
    : shards_(std::move(shards)),
      format_(std::move(format)),
      trail_(start, [options](uint64_t epoch) { return WindowOptions(options, epoch); }),
      order_(shards_.samples(), options, start, trail_),
      fingerprint_(shards_.Fingerprint()),
      reads_(std::move(storage), pool, limits, std::move(wake)),
      loader_(*format_, kNoLimit, reads_),
      rereader_(*format_, RereadsAtOnce(limits), reads_),
      entries_(order, trail_) {}

void IndexedSource::Poll(uint64_t wanted, std::vector<SourceItem>* out) {
  TakeArrivals();
  for (Entry& entry : std::exchange(reread_, {})) Give(std::move(entry), out);
  rereader_.StartReads();
  // Lost samples are there at once: nothing that arrives would wake the caller for them.
  do {
    while (wanted > 0) {
      std::optional<Entry> entry = entries_.TakeReady();
      if (!entry) break;
      Give(*std::move(entry), out);
      --wanted;
    }
    StartReads(wanted);
  } while (wanted > 0 && entries_.HasReady());
}

void IndexedSource::Give(Entry entry, std::vector<SourceItem>* out) {
  reads_.Release(entry.held_bytes);
  entry.item.epoch = entry.position.epoch;
  entry.item.ordinal = entry.position.ordinal;
  entry.item.ends_epoch = entry.position.ends_epoch;
  out->push_back(std::move(entry.item));
}

void IndexedSource::Reread(std::vector<RecordPlace> places) {
  for (uint64_t i = 0; i < places.size(); ++i) {
    const RecordPlace& place = places[i];
    if (!shards_.Has(place)) {
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "no such sample",
                   .where = "source state",
                   .got = "byte " + std::to_string(place.offset) + " of shard " +
                          std::to_string(place.file)});
    }
    const std::shared_ptr<const std::string>& uri = shards_.uri(place.file);
    rereader_.Add(uri, place, [this, i, place, uri](Sample sample, uint64_t held_bytes) {
      reread_.push_back({.item = {.place = place, .uri = uri, .reread = i}});
      Receive(reread_.back(), Named(std::move(sample), place), held_bytes);
    });
  }
}

void IndexedSource::TakeArrivals() {
  for (const ReadQueue::Arrival& arrival : reads_.TakeArrivals()) {
    if (!loader_.Take(arrival)) rereader_.Take(arrival);
  }
}

void IndexedSource::StartReads(uint64_t wanted) {
  if (!entries_.empty() && entries_.back().stage == Entry::Stage::kWaiting &&
      !Start(entries_.back())) {
    return;
  }
  while (entries_.size() < wanted) {
    const std::optional<ListingOrder::Position> position = order_.Next();
    if (!position || !Add(*position)) return;
  }
}

// False if it has to wait.
bool IndexedSource::Add(const ListingOrder::Position& position) {
  const RecordPlace place = shards_.PlaceOf(position.record);
  const std::shared_ptr<const std::string>& uri = shards_.uri(place.file);
  Entry& entry = entries_.Add({.position = position, .item = {.place = place, .uri = uri}});
  const ShardIndex::Lost* lost = shards_.LostAt(position.record);
  if (lost == nullptr) return Start(entry);
  const std::string where = lost->key.empty() ? *uri : *uri + ": sample " + lost->key;
  Receive(
      entry,
      {.key = lost->key, .error = Error({.code = lost->code, .what = lost->what, .where = where})},
      0);
  return true;
}

// False if the limits do not allow it. The sample due next may always be read.
bool IndexedSource::Start(Entry& entry) {
  const bool is_next = entries_.size() == 1;
  if (!reads_.HasRoom(entry.item.place.length) && !(is_next && reads_.HasReadRoom())) return false;
  entry.stage = Entry::Stage::kReading;
  loader_.Add(entry.item.uri, entry.item.place, [this, &entry](Sample sample, uint64_t held_bytes) {
    Receive(entry, Named(std::move(sample), entry.item.place), held_bytes);
  });
  loader_.StartReads();
  return true;
}

void IndexedSource::Receive(Entry& entry, Sample sample, uint64_t held_bytes) {
  entry.item.key = std::move(sample.key);
  entry.item.record = std::move(sample.record);
  entry.item.error = std::move(sample.error);
  entry.held_bytes = held_bytes;
  entry.stage = Entry::Stage::kReady;
}

}  // namespace echopipe::internal
