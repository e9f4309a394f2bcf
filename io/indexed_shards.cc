#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/io/index_shard.h>
#include <echopipe/io/indexed_shards.h>
#include <echopipe/io/read_all.h>

namespace echopipe::internal {
namespace {

// Indexes read at once; most of them whole by the first read.
constexpr size_t kAtOnce = 64;
constexpr uint64_t kFirstRead = uint64_t{256} << 10;
constexpr size_t kMostShardsNamed = 3;

/// Reads and checks indexes, some at a time.
class IndexLoader {
 public:
  IndexLoader(proto::Source::Format format, std::string_view command, Storage& storage)
      : format_(format), command_(command), storage_(storage) {}

  std::vector<ShardIndex> Load(const std::vector<std::string>& shards) {
    for (size_t begin = 0; begin < shards.size(); begin += kAtOnce) {
      LoadSome(std::span(shards).subspan(begin, std::min(kAtOnce, shards.size() - begin)));
    }
    if (!missing_.empty()) ThrowMissing(shards.size());
    return std::move(indexes_);
  }

 private:
  void LoadSome(std::span<const std::string> shards) {
    std::vector<ReadRequest> requests;
    for (const std::string& shard : shards) {
      requests.push_back({.path = IndexNameOf(shard), .length = kFirstRead});
    }
    std::vector<Result<ReadResult>> first = ReadAll(std::move(requests), storage_, pool_);
    for (size_t i = 0; i < shards.size(); ++i) {
      if (first[i].ok()) {
        indexes_.push_back(Parse(shards[i], Whole(IndexNameOf(shards[i]), first[i].value())));
      } else if (first[i].error().code() == ErrorCode::kNotFound) {
        missing_.push_back(shards[i]);
      } else {
        throw first[i].error();
      }
    }
    if (missing_.empty()) CheckAll(shards);
  }

  std::string Whole(const std::string& name, const ReadResult& first) {
    if (first.object_size > ShardIndex::kMaxBytes) {
      throw Error({.code = ErrorCode::kLimitExceeded,
                   .what = "the index is too large",
                   .where = name,
                   .got = std::to_string(first.object_size) + " bytes",
                   .wanted = "at most " + std::to_string(ShardIndex::kMaxBytes)});
    }
    std::string bytes(reinterpret_cast<const char*>(first.data->data()), first.data->size());
    if (bytes.size() < first.object_size) {
      const ReadResult rest =
          ReadAll(
              {{.path = name, .offset = bytes.size(), .length = first.object_size - bytes.size()}},
              storage_, pool_)
              .at(0)
              .value();
      bytes.append(reinterpret_cast<const char*>(rest.data->data()), rest.data->size());
    }
    return bytes;
  }

  ShardIndex Parse(const std::string& shard, const std::string& bytes) const {
    try {
      ShardIndex index = ShardIndex::FromBytes(bytes, IndexNameOf(shard));
      if (index.format != format_) ThrowUnfit(shard, "it is of a shard of another format");
      return index;
    } catch (const Error& error) {
      Error::Details details = error.details();
      if (details.code == ErrorCode::kUnsupported) throw;
      details.wanted = command_;
      throw Error(details);
    }
  }

  // The newest of all indexes read are these shards'.
  void CheckAll(std::span<const std::string> shards) {
    const std::vector<bool> fit =
        FitToShards(std::span(indexes_).last(shards.size()), shards, storage_, pool_);
    const auto unfit = std::ranges::find(fit, false);
    if (unfit == fit.end()) return;
    const std::string& shard = shards[static_cast<size_t>(unfit - fit.begin())];
    ThrowUnfit(shard, shard + " is not what it was when the index was made");
  }

  [[noreturn]] void ThrowUnfit(const std::string& shard, std::string what) const {
    throw Error({.code = ErrorCode::kCorrupt,
                 .what = "the index does not fit to its shard: " + std::move(what),
                 .where = IndexNameOf(shard),
                 .wanted = command_});
  }

  [[noreturn]] void ThrowMissing(size_t shards) const {
    std::string named = missing_[0];
    for (size_t i = 1; i < std::min(missing_.size(), kMostShardsNamed); ++i) {
      named += ", " + missing_[i];
    }
    if (missing_.size() > kMostShardsNamed) named += ", ...";
    throw Error({.code = ErrorCode::kNotFound,
                 .what = "a full shuffle of shards needs their indexes, and " +
                         std::to_string(missing_.size()) + " of " + std::to_string(shards) +
                         " have none: " + named,
                 .where = "source.shuffle.full",
                 .wanted = command_});
  }

  proto::Source::Format format_;
  std::string command_;
  Storage& storage_;
  BufferPool pool_;  // what it keeps is not needed again
  std::vector<ShardIndex> indexes_;
  std::vector<std::string> missing_;
};

}  // namespace

IndexedShards::IndexedShards(std::vector<std::string> uris, std::vector<ShardIndex> indexes)
    : indexes_(std::move(indexes)) {
  for (std::string& uri : uris) {
    uris_.push_back(std::make_shared<const std::string>(std::move(uri)));
  }
  for (const ShardIndex& index : indexes_) ends_.push_back(ends_.back() + index.samples.size());
}

IndexedShards::Spot IndexedShards::SpotOf(uint64_t position) const {
  const auto next = std::ranges::upper_bound(ends_, position);
  const auto shard = static_cast<size_t>(next - ends_.begin()) - 1;
  return {.shard = shard, .sample = position - ends_[shard]};
}

RecordPlace IndexedShards::PlaceOf(uint64_t position) const {
  const Spot spot = SpotOf(position);
  const ShardIndex::Place& place = indexes_[spot.shard].samples[spot.sample];
  return {.file = spot.shard, .offset = place.offset, .length = place.length};
}

const ShardIndex::Lost* IndexedShards::LostAt(uint64_t position) const {
  const Spot spot = SpotOf(position);
  const std::vector<ShardIndex::Lost>& lost = indexes_[spot.shard].lost;
  const auto found = std::ranges::lower_bound(lost, spot.sample, {}, &ShardIndex::Lost::sample);
  return found != lost.end() && found->sample == spot.sample ? &*found : nullptr;
}

bool IndexedShards::Has(const RecordPlace& place) const {
  if (place.file >= shards()) return false;
  const std::vector<ShardIndex::Place>& samples = indexes_[place.file].samples;
  const auto [first, last] =
      std::ranges::equal_range(samples, place.offset, {}, &ShardIndex::Place::offset);
  return std::any_of(first, last,
                     [&](const auto& sample) { return sample.length == place.length; });
}

uint64_t IndexedShards::Fingerprint() const {
  uint64_t hash = 0;
  for (size_t shard = 0; shard < indexes_.size(); ++shard) {
    const std::vector<ShardIndex::Place>& samples = indexes_[shard].samples;
    hash = HashBytes(*uris_[shard], hash);
    hash = HashBytes(
        {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(ShardIndex::Place)},
        hash);
  }
  return hash;
}

IndexedShards LoadIndexedShards(std::vector<std::string> shards, proto::Source::Format format,
                                std::string_view command, Storage& storage) {
  std::vector<ShardIndex> indexes = IndexLoader(format, command, storage).Load(shards);
  return {std::move(shards), std::move(indexes)};
}

}  // namespace echopipe::internal
