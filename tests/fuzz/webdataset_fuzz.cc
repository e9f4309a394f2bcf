// Samples of tar shards.
//
// Lines: the size of the pieces that are fed (0: all at once), the bytes to be cut from the shard's
// end, then for each member its name and its data. In front of the name stands how the archive
// tells it: '0' in the header, 'L' and 'x' in an extension header of GNU's or pax's, 'g' in a
// global one (without a member).
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
#include <echopipe/tests/support/tar_builder.h>

namespace {

using echopipe::BufferPool;
using echopipe::Record;
using echopipe::internal::Sample;
using echopipe::internal::WebDatasetReader;
using echopipe::testing::FuzzInput;
using echopipe::testing::PaxRecord;
using echopipe::testing::Require;
using echopipe::testing::TarBuilder;

const auto kShard = std::make_shared<const std::string>("shard");

std::vector<Sample> SamplesOf(std::string_view shard, size_t piece, BufferPool& pool,
                              uint64_t offset = 0, std::span<const uint64_t> keys = {}) {
  WebDatasetReader reader(kShard, {}, pool, offset, keys);
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
  for (size_t i = 0; i < at; ++i) {
    if (samples[i].key_hash) keys.push_back(*samples[i].key_hash);
  }
  const auto rest = SamplesOf(shard, shard.size() + 1, pool, samples[at - 1].next_offset, keys);
  Require(AreEqual(std::span(samples).subspan(at), rest));
}

// ---- Shards

void AddMember(std::string_view how_and_name, std::string_view data, TarBuilder* tar) {
  constexpr size_t kLongestName = 100;
  const std::string name(how_and_name.substr(std::min<size_t>(1, how_and_name.size())));
  switch (how_and_name.empty() ? '0' : how_and_name[0]) {
    case 'L':
      tar->AddExtension('L', name).AddFile("short", data);
      return;
    case 'x':
      tar->AddExtension('x', PaxRecord("path", name)).AddFile("short", data);
      return;
    case 'g':
      tar->AddExtension('g', PaxRecord("path", name));
      return;
    default:
      tar->AddFile(name.substr(0, kLongestName), data);
  }
}

std::string MakeShard(FuzzInput* input) {
  const uint64_t cut = input->TakeNumber();
  TarBuilder tar;
  while (!input->empty()) {
    const std::string_view how_and_name = input->TakeLine();
    AddMember(how_and_name, input->TakeLine(), &tar);
  }
  const std::string shard = tar.AddEnd().bytes();
  return shard.substr(0, shard.size() - std::min<uint64_t>(cut, shard.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto piece = static_cast<size_t>(input.TakeNumber() % 2000);
  const std::string shard = MakeShard(&input);
  BufferPool pool;
  const std::vector<Sample> samples = SamplesOf(shard, shard.size() + 1, pool);
  CheckSamples(samples);
  if (piece > 0) Require(AreEqual(SamplesOf(shard, piece, pool), samples));
  CheckGoingOn(shard, samples, pool);
  return 0;
}
