// Samples of tar shards. The first line holds the size of the pieces that are fed (0: all at once);
// the rest is the shard.
//
// Parses: io/formats/webdataset.cc

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/formats/webdataset.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::BufferPool;
using echopipe::Record;
using echopipe::internal::Sample;
using echopipe::internal::SampleReader;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

const auto kShard = std::make_shared<const std::string>("shard");

std::vector<Sample> SamplesOf(std::string_view shard, size_t piece, BufferPool& pool,
                              uint64_t offset = 0, std::span<const uint64_t> keys = {}) {
  SampleReader reader(kShard, {}, pool, offset, keys);
  reader.SetShardSize(shard.size());
  std::vector<Sample> samples;
  for (size_t fed = std::min<size_t>(offset, shard.size()); !reader.at_end();) {
    if (std::optional<Sample> sample = reader.Next()) {
      samples.push_back(std::move(*sample));
    } else if (fed < shard.size()) {
      const std::string_view next = shard.substr(fed, piece);
      reader.Feed({reinterpret_cast<const uint8_t*>(next.data()), next.size()});
      fed += next.size();
    } else {
      reader.Finish();
    }
  }
  return samples;
}

bool AreEqual(const Record& a, const Record& b) {
  const auto equal = [](const Record::Member& one, const Record::Member& other) {
    return one.name == other.name && std::ranges::equal(one.bytes->bytes(), other.bytes->bytes());
  };
  return a.key == b.key && a.label == b.label && std::ranges::equal(a.members, b.members, equal);
}

bool AreEqual(const Sample& a, const Sample& b) {
  if (a.key != b.key || a.offset != b.offset || a.next_offset != b.next_offset ||
      a.ends_shard != b.ends_shard || a.error.has_value() != b.error.has_value()) {
    return false;
  }
  return a.error ? std::string_view(a.error->what()) == b.error->what()
                 : AreEqual(*a.record, *b.record);
}

bool AreEqual(std::span<const Sample> a, std::span<const Sample> b) {
  return std::ranges::equal(
      a, b, [](const Sample& one, const Sample& other) { return AreEqual(one, other); });
}

void CheckSamples(const std::vector<Sample>& samples) {
  uint64_t end = 0;
  for (const Sample& sample : samples) {
    Require((sample.record == nullptr) == sample.error.has_value());
    Require(end <= sample.offset && sample.offset <= sample.next_offset);
    Require(sample.ends_shard == (&sample == &samples.back()));
    end = sample.next_offset;
  }
}

// A restored run begins at a sample.
void CheckGoingOn(std::string_view shard, const std::vector<Sample>& samples, BufferPool& pool) {
  if (samples.size() < 2) return;
  const size_t at = samples.size() / 2;
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < at; ++i) keys.push_back(samples[i].key_hash);
  const auto rest =
      SamplesOf(shard, std::max<size_t>(shard.size(), 1), pool, samples[at - 1].next_offset, keys);
  Require(AreEqual(std::span(samples).subspan(at), rest));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto piece = static_cast<size_t>(input.TakeNumber() % 2000);
  const std::string_view shard = input.TakeRest();
  BufferPool pool;
  const std::vector<Sample> samples = SamplesOf(shard, std::max<size_t>(shard.size(), 1), pool);
  CheckSamples(samples);
  if (piece > 0) Require(AreEqual(SamplesOf(shard, piece, pool), samples));
  CheckGoingOn(shard, samples, pool);
  return 0;
}
