#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/formats/shard_index.h>
#include <echopipe/proto/index.pb.h>

namespace echopipe::internal {
namespace {

constexpr std::string_view kEnding = ".echopipe-index";
constexpr std::string_view kUnfinishedEnding = ".echopipe-index.tmp";
// As long as names in tar shards may be.
constexpr size_t kMaxKeyBytes = size_t{64} << 10;
constexpr size_t kMaxWhatBytes = size_t{4} << 10;

/// In front of the message, little-endian.
struct Header {
  std::array<char, 8> magic = {};
  uint32_t version = ShardIndex::kVersion;
  uint32_t checksum = 0;  ///< of all that follows
  uint64_t size = 0;      ///< of the message, in bytes
};
static_assert(sizeof(Header) == 24 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
constexpr size_t kChecked = offsetof(Header, size);  // from here on

[[noreturn]] void Throw(ErrorCode code, std::string_view name, std::string what,
                        std::string got = {}, std::string wanted = {}) {
  throw Error({.code = code,
               .what = std::move(what),
               .where = std::string(name),
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

[[noreturn]] void ThrowImpossible(std::string_view name, std::string what) {
  Throw(ErrorCode::kCorrupt, name, "the index cannot be meant: " + std::move(what));
}

uint32_t ChecksumOf(std::string_view bytes) {
  return Crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// Of a whole file that is what it seems to be.
proto::ShardIndex MessageIn(std::string_view bytes, std::string_view name) {
  const size_t magic = std::min(bytes.size(), ShardIndex::kMagic.size());
  if (bytes.substr(0, magic) != ShardIndex::kMagic.substr(0, magic)) {
    Throw(ErrorCode::kCorrupt, name, "this is not an index of echopipe's");
  }
  Header header;
  if (bytes.size() < sizeof(header)) {
    Throw(ErrorCode::kTruncated, name, "the index is cut off",
          std::to_string(bytes.size()) + " bytes");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version > ShardIndex::kVersion) {
    Throw(ErrorCode::kUnsupported, name, "the index is of a newer version of echopipe",
          "version " + std::to_string(header.version),
          "at most " + std::to_string(ShardIndex::kVersion));
  }
  const std::string_view rest = bytes.substr(sizeof(header));
  if (rest.size() < header.size) {
    Throw(ErrorCode::kTruncated, name, "the index is cut off",
          std::to_string(bytes.size()) + " bytes");
  }
  proto::ShardIndex message;
  if (header.version != ShardIndex::kVersion || bytes.size() > ShardIndex::kMaxBytes ||
      rest.size() > header.size || ChecksumOf(bytes.substr(kChecked)) != header.checksum ||
      !message.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) {
    Throw(ErrorCode::kCorrupt, name, "the index is damaged: its checksum is wrong");
  }
  return message;
}

std::vector<ShardIndex::Place> SamplesIn(const proto::ShardIndex& message, std::string_view name) {
  if (message.gap_size() != message.length_size()) {
    ThrowImpossible(name, "columns of different sizes");
  }
  std::vector<ShardIndex::Place> samples;
  samples.reserve(static_cast<size_t>(message.gap_size()));
  uint64_t left = message.shard_size();  // of the shard, behind the samples so far
  for (int i = 0; i < message.gap_size(); ++i) {
    const uint64_t gap = message.gap(i);
    const uint64_t length = message.length(i);
    if (gap > left || length > left - gap) ThrowImpossible(name, "a sample behind the shard's end");
    samples.push_back({.offset = message.shard_size() - left + gap, .length = length});
    left -= gap + length;
  }
  return samples;
}

std::optional<ErrorCode> CodeOf(std::string_view name) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    if (ToString(static_cast<ErrorCode>(code)) == name) return static_cast<ErrorCode>(code);
  }
  return std::nullopt;
}

std::vector<ShardIndex::Lost> LostIn(const proto::ShardIndex& message, std::string_view name) {
  std::vector<ShardIndex::Lost> lost;
  lost.reserve(static_cast<size_t>(message.lost_size()));
  for (const proto::LostSample& sample : message.lost()) {
    const std::optional<ErrorCode> code = CodeOf(sample.code());
    const uint64_t least = lost.empty() ? 0 : lost.back().sample + 1;
    if (!code || sample.sample() < least ||
        sample.sample() >= static_cast<uint64_t>(message.gap_size()) ||
        sample.key().size() > kMaxKeyBytes || sample.what().size() > kMaxWhatBytes) {
      ThrowImpossible(name, "a lost sample");
    }
    lost.push_back(
        {.sample = sample.sample(), .key = sample.key(), .code = *code, .what = sample.what()});
  }
  return lost;
}

void CheckLargeOnesAreLost(const ShardIndex& index, std::string_view name) {
  auto lost = index.lost.begin();
  for (uint64_t i = 0; i < index.samples.size(); ++i) {
    const bool is_lost = lost != index.lost.end() && lost->sample == i;
    if (is_lost) ++lost;
    if (!is_lost && index.samples[i].length > ShardIndex::kMaxSampleBytes) {
      ThrowImpossible(name, "a sample that is too large");
    }
  }
}

}  // namespace

ShardIndex ShardIndex::FromBytes(std::string_view bytes, std::string_view name) {
  const proto::ShardIndex message = MessageIn(bytes, name);
  if (message.format() != proto::Source::TAR && message.format() != proto::Source::TFRECORD) {
    ThrowImpossible(name, "of no format of shards");
  }
  ShardIndex index{.format = static_cast<proto::Source::Format>(message.format()),
                   .shard_size = message.shard_size(),
                   .modified_ns = message.modified_ns(),
                   .fingerprint = message.fingerprint(),
                   .samples = SamplesIn(message, name),
                   .lost = LostIn(message, name)};
  CheckLargeOnesAreLost(index, name);
  return index;
}

std::string ShardIndex::ToBytes(std::string_view name) const {
  proto::ShardIndex message;
  message.set_format(static_cast<uint32_t>(format));
  message.set_shard_size(shard_size);
  message.set_modified_ns(modified_ns);
  message.set_fingerprint(fingerprint);
  uint64_t end = 0;
  for (const Place& place : samples) {
    message.add_gap(place.offset - end);
    message.add_length(place.length);
    end = place.offset + place.length;
  }
  for (const Lost& sample : lost) {
    proto::LostSample& to = *message.add_lost();
    to.set_sample(sample.sample);
    to.set_key(sample.key.substr(0, kMaxKeyBytes));
    to.set_code(std::string(ToString(sample.code)));
    to.set_what(sample.what.substr(0, kMaxWhatBytes));
  }
  const size_t size = message.ByteSizeLong();
  if (size > kMaxBytes - sizeof(Header)) {
    Throw(ErrorCode::kLimitExceeded, name, "the index is too large",
          std::to_string(samples.size()) + " samples", "smaller shards");
  }
  std::string bytes(sizeof(Header), '\0');
  message.AppendToString(&bytes);
  Header header{.size = size};
  std::ranges::copy(kMagic, header.magic.begin());
  std::memcpy(bytes.data(), &header, sizeof(header));
  header.checksum = ChecksumOf(std::string_view(bytes).substr(kChecked));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

std::vector<ShardIndex::Place> ShardIndex::Probes() const {
  constexpr size_t kSamples = 3;
  std::vector<Place> probes = {{.length = std::min(kProbeBytes, shard_size)}};
  for (size_t i = 1; i <= kSamples && !samples.empty(); ++i) {
    Place probe = samples[(samples.size() - 1) * i / kSamples];
    probe.length = std::min(kProbeBytes, probe.length);
    probes.push_back(probe);
  }
  return probes;
}

std::string IndexNameOf(std::string_view shard) {
  return std::string(shard) + std::string(kEnding);
}

bool IsIndexName(std::string_view name) {
  return name.ends_with(kEnding) || name.ends_with(kUnfinishedEnding);
}

}  // namespace echopipe::internal
