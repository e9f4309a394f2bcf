#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/index_shard.h>
#include <echopipe/io/read_all.h>
#include <echopipe/io/sample_loader.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

void AddProbes(const ShardIndex& index, const std::string& shard,
               std::vector<ReadRequest>* requests) {
  for (const ShardIndex::Place& probe : index.Probes()) {
    requests->push_back({.path = shard, .offset = probe.offset, .length = probe.length});
  }
}

// Nothing if the shard has another size.
std::optional<uint32_t> FingerprintOf(std::span<const Result<ReadResult>> probes,
                                      uint64_t shard_size) {
  std::vector<uint8_t> bytes;
  for (const Result<ReadResult>& probe : probes) {
    if (probe.value().object_size != shard_size) return std::nullopt;
    const std::span<const uint8_t> data = probe.value().data->bytes();
    bytes.insert(bytes.end(), data.begin(), data.end());
  }
  return Crc32c(bytes);
}

/// Reads one shard from its begin to its end.
class ShardLister {
 public:
  ShardLister(const std::string& shard, proto::Source::Format format, const ShardFormat& shards,
              Storage& storage, BufferPool& pool)
      : shard_(std::make_shared<const std::string>(shard)),
        shards_(shards),
        storage_(storage),
        pool_(pool),
        reader_(shards.Read(shard_, pool)) {
    index_.format = format;
    index_.modified_ns = ModifiedAt();
  }

  ShardIndex List(const OnBytes& on_bytes) {
    uint64_t offset = 0;
    do {
      const ReadResult piece = ReadPiece(offset);
      offset += piece.data->size();
      reader_->SetShardSize(index_.shard_size);
      reader_->Feed(piece.data->bytes());
      if (offset == index_.shard_size) reader_->Finish();
      while (std::optional<Sample> sample = reader_->Next()) Add(*std::move(sample));
      if (on_bytes) on_bytes(piece.data->size());
    } while (!reader_->at_end() && offset < index_.shard_size);
    SetFingerprint();
    if (ModifiedAt() != index_.modified_ns) ThrowChanged();
    return std::move(index_);
  }

 private:
  int64_t ModifiedAt() const { return storage_.ModifiedAt(*shard_).value_or(0); }

  ReadResult ReadPiece(uint64_t offset) {
    const ReadResult piece =
        ReadAll({{.path = *shard_, .offset = offset, .length = kPieceBytes}}, storage_, pool_)
            .at(0)
            .value();
    if (offset == 0) index_.shard_size = piece.object_size;
    const uint64_t wanted = std::min(kPieceBytes, index_.shard_size - offset);
    if (piece.object_size != index_.shard_size || piece.data->size() != wanted) ThrowChanged();
    return piece;
  }

  void Add(Sample sample) {
    const RecordPlace place{.offset = sample.offset, .length = sample.next_offset - sample.offset};
    // It could not be read in one piece.
    if (place.length > ShardIndex::kMaxSampleBytes && !sample.error) {
      sample.error = Error({.code = ErrorCode::kLimitExceeded,
                            .what = "the sample at byte " + std::to_string(place.offset) +
                                    " is too large to be read alone"});
    }
    if (sample.error && IsLost(sample, place)) {
      index_.lost.push_back({.sample = index_.samples.size(),
                             .key = std::move(sample.key),
                             .code = sample.error->code(),
                             .what = sample.error->details().what});
    }
    index_.samples.push_back({.offset = place.offset, .length = place.length});
  }

  // Its own bytes tell nothing of a key that came before, nor always that the shard breaks off.
  bool IsLost(const Sample& bad, const RecordPlace& place) {
    const bool is_large = place.length > ShardIndex::kMaxSampleBytes;
    if (is_large || bad.error->code() == ErrorCode::kLimitExceeded) return true;
    const std::vector<Result<ReadResult>> bytes = ReadAll(
        {{.path = *shard_, .offset = place.offset, .length = place.length}}, storage_, pool_);
    const Sample alone = ParseSample(shards_, shard_, place, bytes[0], pool_);
    return !alone.error || alone.key != bad.key ||
           alone.error->details().what != bad.error->details().what;
  }

  void SetFingerprint() {
    std::vector<ReadRequest> probes;
    AddProbes(index_, *shard_, &probes);
    const std::optional<uint32_t> fingerprint =
        FingerprintOf(ReadAll(std::move(probes), storage_, pool_), index_.shard_size);
    if (!fingerprint) ThrowChanged();
    index_.fingerprint = *fingerprint;
  }

  [[noreturn]] void ThrowChanged() const {
    throw Error({.code = ErrorCode::kIo,
                 .what = "the shard was changed while its index was made",
                 .where = *shard_});
  }

  std::shared_ptr<const std::string> shard_;
  const ShardFormat& shards_;
  Storage& storage_;
  BufferPool& pool_;
  std::unique_ptr<SampleReader> reader_;
  ShardIndex index_;
};

}  // namespace

ShardIndex IndexShard(const std::string& shard, proto::Source::Format format,
                      const ShardFormat& shards, Storage& storage, BufferPool& pool,
                      const OnBytes& on_bytes) {
  return ShardLister(shard, format, shards, storage, pool).List(on_bytes);
}

std::vector<bool> FitToShards(std::span<const ShardIndex> indexes,
                              std::span<const std::string> shards, Storage& storage,
                              BufferPool& pool) {
  std::vector<bool> fit(indexes.size());
  std::vector<size_t> unknown;
  std::vector<ReadRequest> probes;
  for (size_t i = 0; i < indexes.size(); ++i) {
    const std::optional<int64_t> modified = storage.ModifiedAt(shards[i]);
    if (modified.value_or(0) != 0 && *modified == indexes[i].modified_ns) {
      fit[i] = storage.Size(shards[i]).value() == indexes[i].shard_size;
      continue;
    }
    unknown.push_back(i);
    AddProbes(indexes[i], shards[i], &probes);
  }
  const std::vector<Result<ReadResult>> results = ReadAll(std::move(probes), storage, pool);
  auto result = results.begin();
  for (const size_t i : unknown) {
    const auto end = result + static_cast<std::ptrdiff_t>(indexes[i].Probes().size());
    fit[i] = FingerprintOf({result, end}, indexes[i].shard_size) == indexes[i].fingerprint;
    result = end;
  }
  return fit;
}

}  // namespace echopipe::internal
