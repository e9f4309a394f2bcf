// Indexes of shards: as they are, and with size and checksum mended, since no fuzzer guesses these.
//
// Parses: io/formats/shard_index.cc

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/formats/shard_index.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::internal::ShardIndex;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

// One behind the other, within the shard.
void CheckPlaces(const ShardIndex& index) {
  uint64_t end = 0;
  for (const ShardIndex::Place& place : index.samples) {
    Require(place.offset >= end && place.length <= index.shard_size - place.offset);
    end = place.offset + place.length;
    Require(end <= index.shard_size);
  }
  for (const ShardIndex::Place& probe : index.Probes()) {
    Require(probe.length <= ShardIndex::kProbeBytes && probe.offset <= index.shard_size &&
            probe.length <= index.shard_size - probe.offset);
  }
}

// What is not lost is read in one piece.
void CheckLost(const ShardIndex& index) {
  size_t next = 0;
  for (uint64_t i = 0; i < index.samples.size(); ++i) {
    const bool is_lost = next < index.lost.size() && index.lost[next].sample == i;
    if (is_lost) ++next;
    Require(is_lost || index.samples[i].length <= ShardIndex::kMaxSampleBytes);
  }
  Require(next == index.lost.size());
}

void Check(std::string_view bytes) {
  std::optional<ShardIndex> index;
  try {
    index = ShardIndex::FromBytes(bytes, "index");
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTruncated ||
            error.code() == ErrorCode::kUnsupported);
    Require(error.details().where == "index");
    return;
  }
  CheckPlaces(*index);
  CheckLost(*index);
  Require(ShardIndex::FromBytes(index->ToBytes("index"), "index") == *index);
}

std::string Mended(std::string bytes) {
  constexpr size_t kChecksum = 12;
  constexpr size_t kSize = 16;
  constexpr size_t kMessage = 24;
  if (bytes.size() < kMessage) return bytes;
  const uint64_t size = bytes.size() - kMessage;
  std::memcpy(bytes.data() + kSize, &size, sizeof(size));
  const uint32_t checksum = echopipe::internal::Crc32c(
      {reinterpret_cast<const uint8_t*>(bytes.data()) + kSize, bytes.size() - kSize});
  std::memcpy(bytes.data() + kChecksum, &checksum, sizeof(checksum));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = FuzzInput(data, size).TakeRest();
  Check(bytes);
  Check(Mended(std::string(bytes)));
  return 0;
}
