#include <algorithm>
#include <utility>

#include <echopipe/io/shard_stream.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kMaxPiece = uint64_t{1} << 20;
constexpr uint64_t kMinPiece = uint64_t{64} << 10;
// Shards whose size is not known yet, opened one behind the other.
constexpr size_t kMaxUnknownShards = 8;
// Read ahead, however few samples are wanted: small ones alone would not fill a link with a delay.
constexpr uint64_t kLeastAhead = uint64_t{8} << 20;
// The serial number of none.
constexpr uint64_t kNoRead = ~uint64_t{0};
// Of a sample, before one has been seen.
constexpr uint64_t kGuessedBytes = uint64_t{64} << 10;

}  // namespace

ShardStream::ShardStream(std::vector<std::string> uris, const ShardFormat& format,
                         const EpochOptions& options, const SourceState& start,
                         const SourceLimits& limits, ReadQueue& reads)
    : format_(format),
      options_(options),
      piece_bytes_(std::clamp(limits.bytes_in_flight / 4, kMinPiece, kMaxPiece)),
      least_ahead_(std::min(kLeastAhead, limits.bytes_in_flight / 2)),
      most_ahead_(limits.bytes_in_flight / 2),
      reads_(reads),
      epoch_(start.epoch),
      place_(start.shard),
      keys_(start.keys),
      start_offset_(start.byte_offset) {
  for (std::string& uri : uris) {
    uris_.push_back(std::make_shared<const std::string>(std::move(uri)));
  }
  if (place_ < shards()) Open(epoch_, place_, start_offset_);
}

uint64_t ShardStream::fingerprint() const {
  uint64_t hash = 0;
  for (const std::shared_ptr<const std::string>& uri : uris_) hash = HashBytes(*uri, hash);
  return hash;
}

uint64_t ShardStream::FileAt(uint64_t epoch, uint64_t place) const {
  if (options_.shuffle != EpochOptions::Shuffle::kWindow) return place;
  return Permutation(shards(), PermutationKey(options_.seed, epoch))(place);
}

void ShardStream::Open(uint64_t epoch, uint64_t place, uint64_t offset) {
  shards_.push_back(
      {.epoch = epoch, .place = place, .file = FileAt(epoch, place), .next_offset = offset});
}

// The shard behind the last one opened; false if there is none.
bool ShardStream::OpenNext() {
  uint64_t epoch = shards_.empty() ? epoch_ : shards_.back().epoch;
  uint64_t place = shards_.empty() ? place_ : shards_.back().place + 1;
  if (place >= shards()) {
    place = 0;
    ++epoch;
  }
  if (options_.epochs != 0 && epoch >= options_.epochs) return false;
  Open(epoch, place, 0);
  return true;
}

bool ShardStream::Take(ReadQueue::Arrival& arrival) {
  for (OpenShard& shard : shards_) {
    for (Piece& piece : shard.pieces) {
      if (piece.serial != arrival.serial) continue;
      if (arrival.result.ok()) {
        piece.bytes = arrival.result.value().data;
        bytes_ahead_ -= piece.length - piece.bytes->size();
        if (!shard.size) shard.size = arrival.result.value().object_size;
      } else {
        piece.error = arrival.result.error();
        shard.failed = true;
      }
      return true;
    }
  }
  return false;
}

ShardStream::Status ShardStream::Next(ShardSample* out) {
  while (place_ < shards()) {
    if (shards_.empty()) OpenNext();
    if (!reader_) {
      reader_ = format_.Read(uris_[shards_.front().file], reads_.pool(), start_offset_, keys_);
      parsed_end_ = start_offset_;
      start_offset_ = 0;
      keys_.clear();
    }
    if (const std::optional<Sample> sample = Step()) {
      Fill(*sample, out);
      if (sample->ends_shard) Close();
      return Status::kSample;
    }
    if (reader_->at_end()) {
      Close();
    } else if (!FeedNextPiece()) {
      return Status::kWaiting;
    }
  }
  return Status::kEndOfEpoch;
}

std::optional<Sample> ShardStream::Step() {
  const std::deque<Piece>& pieces = shards_.front().pieces;
  std::optional<Sample> sample = reader_->Next();
  const bool needs_bytes = !sample && !reader_->at_end();
  if (needs_bytes && !pieces.empty() && pieces.front().error) {
    sample = reader_->Fail(*pieces.front().error);
  }
  Account(sample);
  return sample;
}

// The bytes of the piece go over into the sample; those of a complete one are the caller's. A
// record may have more than came for it (numbers are stored in fewer bytes): then these are added.
void ShardStream::Account(const std::optional<Sample>& sample) {
  const uint64_t given = sample && sample->record ? sample->record->size() : 0;
  const uint64_t left = reader_->at_end() ? 0 : parsed_end_ - reader_->offset();
  const uint64_t kept = left + reader_->held_bytes();
  reads_.Release(counted_ - kept - given);
  counted_ = kept;
  if (!sample) return;
  ++samples_;
  sample_bytes_ += given;
}

void ShardStream::Fill(const Sample& sample, ShardSample* out) const {
  const OpenShard& shard = shards_.front();
  out->sample = sample;
  out->uri = uris_[shard.file];
  out->epoch = epoch_;
  out->place = {
      .file = shard.file, .offset = sample.offset, .length = sample.next_offset - sample.offset};
  out->shard = place_;
  out->next_shard = sample.ends_shard ? place_ + 1 : place_;
  out->next_byte_offset = sample.ends_shard ? 0 : sample.next_offset;
}

// Precondition: the reader needs bytes. False if they have not arrived.
bool ShardStream::FeedNextPiece() {
  OpenShard& shard = shards_.front();
  parsed_ = nullptr;
  if (shard.pieces.empty()) {
    // All pieces of the size first told have been parsed.
    if (!shard.size || HasMore(shard)) return false;
    reader_->Finish();
    return true;
  }
  Piece& piece = shard.pieces.front();
  if (!piece.arrived()) {
    ReadFurtherAhead();
    return false;
  }
  if (piece.error) return true;
  reader_->SetShardSize(*shard.size);
  reader_->Feed(piece.bytes->bytes());
  parsed_end_ = piece.offset + piece.bytes->size();
  counted_ += piece.bytes->size();
  bytes_ahead_ -= piece.bytes->size();
  const bool is_short = piece.bytes->size() < piece.length;
  parsed_ = std::move(piece.bytes);
  shard.pieces.pop_front();
  if (is_short && parsed_end_ < *shard.size) {
    FailShrunk(shard);
  } else if (is_short) {
    reader_->Finish();
  }
  return true;
}

// One piece is late while most others have come: next time there are to be more of these.
void ShardStream::ReadFurtherAhead() {
  uint64_t arrived = 0;
  for (const OpenShard& shard : shards_) {
    for (const Piece& piece : shard.pieces) arrived += piece.bytes ? piece.bytes->size() : 0;
  }
  if (2 * arrived > least_ahead_) least_ahead_ = std::min(2 * least_ahead_, most_ahead_);
}

// Bytes that should be there were not: what has come is parsed, then the shard is a broken one.
void ShardStream::FailShrunk(OpenShard& shard) {
  shard.failed = true;
  shard.pieces.push_front({.serial = kNoRead,
                           .error = Error({.code = ErrorCode::kTruncated,
                                           .what = "the shard shrank while it was read, at byte " +
                                                   std::to_string(parsed_end_),
                                           .where = *uris_[shard.file]})});
}

// What was read of the front shard and not parsed is dropped.
void ShardStream::Close() {
  for (Piece& piece : shards_.front().pieces) {
    bytes_ahead_ -= piece.bytes ? piece.bytes->size() : piece.length;
    if (piece.bytes) reads_.Release(piece.bytes->size());
    if (!piece.arrived()) reads_.Cancel(piece.serial);
  }
  reads_.Release(counted_);
  counted_ = 0;
  parsed_ = nullptr;
  reader_.reset();
  shards_.pop_front();
  ++place_;
}

void ShardStream::NextEpoch() {
  while (!shards_.empty() && shards_.front().epoch == epoch_) Close();
  ++epoch_;
  place_ = 0;
  start_offset_ = 0;
  keys_.clear();
}

bool ShardStream::HasMore(const OpenShard& shard) const {
  if (shard.failed) return false;
  if (!shard.size) return shard.pieces.empty();
  return shard.next_offset < *shard.size;
}

void ShardStream::StartReads(uint64_t samples) {
  if (samples == 0) return;
  const uint64_t sample_bytes = samples_ == 0 ? kGuessedBytes : sample_bytes_ / samples_ + 1024;
  const uint64_t most_bytes =
      std::max(least_ahead_, std::min<uint64_t>(samples, uint64_t{1} << 32) * sample_bytes);
  size_t unknown = 0;
  for (size_t i = 0; i < shards_.size() || OpenNext(); ++i) {
    if (!StartPieces(shards_[i], most_bytes)) return;
    if (!shards_[i].size && !shards_[i].failed && ++unknown == kMaxUnknownShards) return;
  }
}

// False if the limits do not allow another piece. The one needed next may always be read.
bool ShardStream::StartPieces(OpenShard& shard, uint64_t most_bytes) {
  while (HasMore(shard)) {
    const uint64_t length =
        shard.size ? std::min(piece_bytes_, *shard.size - shard.next_offset) : piece_bytes_;
    const bool needed = &shard == &shards_.front() && shard.pieces.empty();
    const bool allowed = bytes_ahead_ < most_bytes && reads_.HasRoom(length);
    if (!allowed && !(needed && reads_.HasReadRoom())) return false;
    const uint64_t serial =
        reads_.Start({.path = *uris_[shard.file], .offset = shard.next_offset, .length = length});
    shard.pieces.push_back({.serial = serial, .offset = shard.next_offset, .length = length});
    shard.next_offset += length;
    bytes_ahead_ += length;
    if (!shard.size) return true;
  }
  return bytes_ahead_ < most_bytes;
}

}  // namespace echopipe::internal
