// The law of resume: what a pipeline gives after a restore is what it would have given.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/random_echo.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe {
namespace {

using testing::FakeStorage;
using testing::kEchoFactors;
using testing::Number;
using testing::RandomEcho;
using testing::TarBuilder;

/// A pipeline, its data and its rank.
struct Case {
  std::string text;
  std::shared_ptr<FakeStorage> storage;
  Rank rank;
};

bool OneIn(RandomStream& random, uint32_t n) { return random.Below(n) == 0; }

// Records of a few bytes; some of them empty, which makes them bad.
std::string PutFolder(RandomStream& random, FakeStorage& storage, uint64_t records, bool bad) {
  for (uint64_t i = 0; i < records; ++i) {
    storage.Put("root/c" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg",
                bad && OneIn(random, 6) ? "" : "record " + std::to_string(i));
  }
  static constexpr std::array kShuffles = {"", " shuffle { full {} }", " shuffle { window: 7 }"};
  return std::string("uri: 'root'") + kShuffles[random.Below(kShuffles.size())];
}

// Shards of unequal sizes; some samples lack their label, which makes them bad.
std::string PutShards(RandomStream& random, FakeStorage& storage, uint64_t records, bool bad) {
  uint64_t shard = 0;
  for (uint64_t i = 0; i < records; ++shard) {
    TarBuilder tar;
    for (uint64_t left = 1 + random.Below(12); left > 0 && i < records; --left, ++i) {
      const std::string key = "s" + std::to_string(i);
      tar.AddFile(key + ".jpg", "record " + std::to_string(i));
      if (!bad || !OneIn(random, 6)) tar.AddFile(key + ".cls", std::to_string(i));
    }
    storage.Put("s" + std::to_string(shard) + ".tar", tar.AddEnd().bytes());
  }
  static constexpr std::array kShuffles = {"", " shuffle { window: 1 }", " shuffle { window: 9 }"};
  return "uri: 's{0.." + std::to_string(shard - 1) + "}.tar'" +
         kShuffles[random.Below(kShuffles.size())];
}

std::string AnyEcho(RandomStream& random) {
  const char* factor = kEchoFactors[random.Below(kEchoFactors.size())];
  return RandomEcho(random, factor);
}

Case MakeCase(RandomStream& random) {
  Case made{.text = {}, .storage = std::make_shared<FakeStorage>(), .rank = {}};
  made.rank.world = OneIn(random, 3) ? 1 + random.Below(3) : 1;
  made.rank.rank = random.Below(static_cast<uint32_t>(made.rank.world));
  const uint64_t records = 3 * made.rank.world + random.Below(60);
  const bool bad = OneIn(random, 3);
  made.text = "source { " + (OneIn(random, 2) ? PutFolder(random, *made.storage, records, bad)
                                              : PutShards(random, *made.storage, records, bad));
  made.text += Number("epochs", random.Below(4));
  if (OneIn(random, 5)) made.text += Number("take", records - random.Below(3));
  made.text += " } " + Number("seed", random.Below(1000)) + " ";
  if (bad) {
    made.text += "bad_examples { policy: SKIP";
    if (OneIn(random, 3)) made.text += Number("max_count", random.Below(12));
    if (OneIn(random, 3)) made.text += " max_fraction: 0.2";
    made.text += " } ";
  }
  made.text += "stage { map { function: 'pixels' } } ";
  for (uint32_t stages = random.Below(6); stages > 0; --stages) {
    switch (random.Below(4)) {
      case 0:
        made.text += "stage { random_flip {} } ";
        break;
      case 1:
        made.text += "stage { random_crop { height: 6 width: 6 padding: 2 } } ";
        break;
      case 2:
        made.text += AnyEcho(random);
        break;
      case 3:
        if (OneIn(random, 2)) made.text += "stage { filter { function: 'most' } } ";
        if (bad) made.text += "stage { map { function: 'throws at some' } } ";
        break;
    }
  }
  if (OneIn(random, 3)) made.text += "stage { normalize {} } ";
  made.text += "stage { batch {" + Number("size", 1 + random.Below(12)) +
               (OneIn(random, 3) ? " remainder: DROP" : "") +
               (OneIn(random, 3) ? " across_epochs: true" : "") + " } } ";
  for (uint32_t echoes = random.Below(8) / 3; echoes > 0 && OneIn(random, 2); --echoes) {
    made.text += AnyEcho(random);
  }
  if (OneIn(random, 4)) made.text += Number("steps_per_epoch", 1 + random.Below(5)) + " ";
  return made;
}

// [6, 8, 3] uint8 that differ with each record.
void MakePixels(Example& example) {
  const Tensor& bytes = example.Get("image");
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes().data()),
                              bytes.bytes().size());
  RandomStream random({.low = HashBytes(text), .high = 1});
  BufferPool pool;
  TensorBuilder pixels(DType::kUint8, {6, 8, 3}, pool);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels.data()[i] = static_cast<uint8_t>(random.Below(256));
  }
  example.Set("image", std::move(pixels).Finish());
}

PipelineSpec SpecOf(const Case& the_case) {
  return PipelineSpec::FromText(the_case.text)
      .WithMap("pixels", MakePixels)
      .WithMap("throws at some",
               [](Example& example) {
                 const Identity& identity = example.provenance().identity;
                 uint64_t hash = HashBytes(example.provenance().key, example.provenance().age);
                 for (const uint32_t use : identity.uses()) hash += 7 * use;
                 if (hash % 9 == 0) throw std::runtime_error("not this one");
               })
      .WithFilter("most", [](const Example& example) {
        return HashBytes(example.provenance().key) % 5 != 1;
      });
}

RuntimeOptions RandomOptions(RandomStream& random, const Case& the_case) {
  return {.threads = static_cast<int>(random.Between(1, 4)),
          .reads_in_flight = static_cast<int>(random.Between(1, 20)),
          .prefetch = static_cast<int>(random.Between(2, 6)),
          .storage = the_case.storage};
}

std::string HashOf(const Batch& batch) {
  BatchHash hash;
  hash.Add(batch);
  return hash.Hex() + (batch.end_of_epoch() ? " ends epoch " : " of epoch ") +
         std::to_string(batch.epoch());
}

/// The rest of a run: a hash of each step, and the checkpoint behind it.
struct Rest {
  std::map<uint64_t, std::string> hashes = {};
  std::map<uint64_t, std::string> checkpoints = {};
  std::string error = {};
};

constexpr uint64_t kMostSteps = 60;  // of a random case

Rest DeliverUntil(uint64_t last_step, Pipeline& pipeline) {
  Rest rest;
  try {
    for (uint64_t step = pipeline.Checkpoint().steps(); step < last_step; ++step) {
      const std::optional<Batch> batch = pipeline.Next();
      if (!batch) break;
      EXPECT_EQ(batch->step(), step);
      rest.hashes[step] = HashOf(*batch);
      rest.checkpoints[step + 1] = pipeline.Checkpoint().ToBytes();
    }
  } catch (const Error& error) {
    rest.error = error.what();
  }
  return rest;
}

std::map<uint64_t, std::string> From(const std::map<uint64_t, std::string>& all, uint64_t step) {
  return {all.lower_bound(step), all.end()};
}

/// The number of restores tried.
int CheckCase(RandomStream& random) {
  const Case the_case = MakeCase(random);
  SCOPED_TRACE(the_case.text + " rank " + std::to_string(the_case.rank.rank) + " of " +
               std::to_string(the_case.rank.world));
  const PipelineSpec spec = SpecOf(the_case);
  const Rest whole = DeliverUntil(
      kMostSteps, *Pipeline::Open(spec, RandomOptions(random, the_case), the_case.rank));
  if (whole.checkpoints.empty()) return 0;

  // Three restores one of the other; each also goes on to the end.
  std::map<uint64_t, std::string> checkpoints = whole.checkpoints;
  int restores = 0;
  for (int link = 0; link < 3 && !checkpoints.empty(); ++link) {
    const auto chosen =
        std::next(checkpoints.begin(), random.Below(static_cast<uint32_t>(checkpoints.size())));
    const auto [begin, checkpoint] = *chosen;
    SCOPED_TRACE("restored behind step " + std::to_string(begin - 1));
    const std::unique_ptr<Pipeline> restored =
        Pipeline::Restore(spec, PipelineCheckpoint::FromBytes(checkpoint),
                          RandomOptions(random, the_case), the_case.rank);
    EXPECT_EQ(restored->Checkpoint().ToBytes(), checkpoint);
    const Rest rest = DeliverUntil(kMostSteps, *restored);
    ++restores;
    EXPECT_EQ(rest.hashes, From(whole.hashes, begin));
    EXPECT_TRUE(rest.checkpoints == From(whole.checkpoints, begin + 1));
    EXPECT_EQ(rest.error, whole.error);
    if (::testing::Test::HasFailure()) break;
    checkpoints = rest.checkpoints;
  }
  return restores;
}

// Sanitizers are slow; the other builds try them all.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kCases = 300;
#else
constexpr uint64_t kCases = 2000;
#endif

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// ECHOPIPE_RESUME_CASES and ECHOPIPE_RESUME_SEED choose how many cases, from which on.
TEST(ResumeTest, WhatFollowsARestoreIsWhatWouldHaveFollowed) {
  const uint64_t first = NumberFrom("ECHOPIPE_RESUME_SEED", 0);
  const uint64_t cases = NumberFrom("ECHOPIPE_RESUME_CASES", kCases);
  int restores = 0;
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE("ECHOPIPE_RESUME_CASES=1 ECHOPIPE_RESUME_SEED=" + std::to_string(seed));
    RandomStream random(HashToKey(std::array<uint64_t, 2>{0x726573756d65, seed}));
    restores += CheckCase(random);
    if (::testing::Test::HasFailure()) return;
  }
  RecordProperty("restores", restores);
  if (cases > 100) {
    EXPECT_GT(restores, static_cast<int>(cases));
  }
}

// ---- what a restore reads

/// A folder of files, or shards of samples, of 3,000 bytes each.
std::string PutEqualRecords(FakeStorage& storage, bool shards) {
  constexpr int kRecords = 600;
  TarBuilder tar;
  for (int i = 0; i < kRecords; ++i) {
    std::string bytes = "record " + std::to_string(i);
    bytes.resize(3000, '.');
    if (!shards) storage.Put("root/c/" + std::to_string(i) + ".jpg", bytes);
    tar.AddFile("s" + std::to_string(i) + ".jpg", bytes);
    tar.AddFile("s" + std::to_string(i) + ".cls", "1");
  }
  if (shards) storage.Put("s.tar", tar.AddEnd().bytes());
  return shards ? "uri: 's.tar'" : "uri: 'root' shuffle { full {} }";
}

class RestoreReads : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Sources, RestoreReads, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Tar" : "Folder"; });

// Two echo points and one of batches hold records in common.
TEST_P(RestoreReads, EachResidentOnceAndThenAsFarAheadAsAnyPipeline) {
  Case the_case{.text = {}, .storage = std::make_shared<FakeStorage>(), .rank = {}};
  the_case.text = "source { " + PutEqualRecords(*the_case.storage, GetParam()) +
                  " } stage { echo { factor: 3 shuffle_buffer: 60 spacing: 8 } } "
                  "stage { map { function: 'pixels' } } "
                  "stage { echo { factor: 2 shuffle_buffer: 40 spacing: 8 } } "
                  "stage { batch { size: 8 } } "
                  "stage { echo { factor: 1.5 shuffle_buffer: 2 spacing: 1 } }";
  const PipelineSpec spec = SpecOf(the_case);
  const RuntimeOptions options{
      .threads = 1, .reads_in_flight = 8, .prefetch = 2, .storage = the_case.storage};
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options);
  for (int step = 0; step < 150; ++step) ASSERT_TRUE(pipeline->Next());
  const PipelineCheckpoint checkpoint = pipeline->Checkpoint();
  pipeline->Stop();

  std::set<std::pair<uint64_t, uint64_t>> records;
  const auto add = [&](const proto::Places& places) {
    for (int i = 0; i < places.file_size(); ++i) records.emplace(places.file(i), places.offset(i));
  };
  uint64_t residents = 0;
  for (const proto::ExampleEcho& echo : checkpoint.message().example_echo()) {
    add(echo.resident().place());
    residents += static_cast<uint64_t>(echo.resident().epoch_size());
  }
  for (const proto::BatchEcho& echo : checkpoint.message().batch_echo()) {
    for (const proto::BatchEcho::Batch& batch : echo.resident()) {
      add(batch.item().place());
      residents += static_cast<uint64_t>(batch.item().epoch_size());
    }
  }
  ASSERT_GT(residents, records.size()) << "nothing in common";
  ASSERT_GE(records.size(), 50u);

  const uint64_t before = the_case.storage->Stats().bytes_read;
  const size_t requests_before = the_case.storage->requests().size();
  const std::unique_ptr<Pipeline> restored = Pipeline::Restore(spec, checkpoint, options);
  for (int step = 0; step < 100; ++step) ASSERT_TRUE(restored->Next());
  restored->Stop();
  // A record, or a sample with its headers; read ahead are a window of records, or two pieces of
  // the shard.
  const uint64_t record_bytes = GetParam() ? 512 + 3072 + 512 + 512 : 3000;
  const uint64_t ahead = GetParam() ? 2 * (uint64_t{1} << 20) : 12 * record_bytes;
  const uint64_t fresh = restored->Stats().records;
  EXPECT_LE(the_case.storage->Stats().bytes_read - before,
            (records.size() + fresh) * record_bytes + ahead);

  std::map<std::pair<std::string, uint64_t>, int> reads;
  const std::vector<ReadRequest> requests = the_case.storage->requests();
  for (size_t i = requests_before; i < requests.size(); ++i) {
    const std::pair read(requests[i].path, requests[i].offset);
    EXPECT_EQ(++reads[read], 1) << read.first;
  }
}

// The residents that are drawn late are still to be read when the first batch comes.
TEST(RestoreReadsTest, TheFirstBatchNeedNotWaitForAllResidents) {
  Case the_case{.text = {}, .storage = std::make_shared<FakeStorage>(), .rank = {}};
  the_case.text = "source { " + PutEqualRecords(*the_case.storage, false) +
                  " } stage { echo { factor: 4 shuffle_buffer: 200 spacing: 8 } } "
                  "stage { map { function: 'pixels' } } stage { batch { size: 8 } }";
  const PipelineSpec spec = SpecOf(the_case);
  const RuntimeOptions options{.threads = 1, .reads_in_flight = 2, .storage = the_case.storage};
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options);
  for (int step = 0; step < 250; ++step) ASSERT_TRUE(pipeline->Next());
  const PipelineCheckpoint checkpoint = pipeline->Checkpoint();
  pipeline->Stop();
  ASSERT_GT(checkpoint.message().example_echo(0).resident().epoch_size(), 100);

  // Half of the reads are the residents': so the gate lets a few of either through.
  const auto gated = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
  PutEqualRecords(*gated, false);
  RuntimeOptions gated_options = options;
  gated_options.storage = gated;
  const std::unique_ptr<Pipeline> restored = Pipeline::Restore(spec, checkpoint, gated_options);
  std::atomic<bool> came = false;
  std::atomic<int> reads = 0;
  std::jthread gate([&] {
    while (!came) reads += gated->CompleteNext() ? 1 : 0;
  });
  ASSERT_TRUE(restored->Next());
  came = true;
  EXPECT_LT(reads, 60);
  restored->Stop();
}

// ---- residents that are not there any more, and ends

class ResumeEndsTest : public ::testing::Test {
 protected:
  ResumeEndsTest() {
    the_case_.storage = std::make_shared<FakeStorage>();
    source_ = "source { " + PutEqualRecords(*the_case_.storage, false) + " } ";
  }

  PipelineSpec Spec(const std::string& more = "") {
    the_case_.text = source_ + "stage { echo { factor: 2 shuffle_buffer: 20 spacing: 4 } } " +
                     "stage { map { function: 'pixels' } } stage { batch { size: 4 } } " + more;
    return SpecOf(the_case_);
  }
  RuntimeOptions Options() const { return {.threads = 2, .storage = the_case_.storage}; }

  /// Behind so many steps.
  PipelineCheckpoint CheckpointAfter(const PipelineSpec& spec, int steps) {
    const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, Options());
    for (int i = 0; i < steps; ++i) pipeline->Next();
    return pipeline->Checkpoint();
  }
  /// The first resident's file is there, but cannot be read.
  void LoseResident(const PipelineCheckpoint& checkpoint) {
    const std::vector<FolderEntry> files = the_case_.storage->List("root/c").value();
    const uint64_t file = checkpoint.message().example_echo(0).resident().place().file(0);
    lost_ = "root/c/" + files[file].name;
    the_case_.storage->FailAlways(
        lost_, Error({.code = ErrorCode::kIo, .what = "a bad sector", .where = lost_}));
  }

  Case the_case_ = {};
  std::string source_;
  std::string lost_;
};

TEST_F(ResumeEndsTest, AResidentThatCannotBeReadFailsWithItsName) {
  const PipelineCheckpoint checkpoint = CheckpointAfter(Spec(), 30);
  LoseResident(checkpoint);
  const std::unique_ptr<Pipeline> restored = Pipeline::Restore(Spec(), checkpoint, Options());
  try {
    while (restored->Next()) continue;
    FAIL() << "it came to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(lost_));
  }
}

TEST_F(ResumeEndsTest, AResidentThatCannotBeReadIsATombstoneUnderSkip) {
  const PipelineSpec spec = Spec("bad_examples { policy: SKIP }");
  const PipelineCheckpoint checkpoint = CheckpointAfter(spec, 30);
  std::map<std::string, int> uses;
  const std::unique_ptr<Pipeline> whole = Pipeline::Restore(spec, checkpoint, Options());
  while (const std::optional<Batch> batch = whole->Next()) {
    for (size_t i = 0; i < batch->size(); ++i) ++uses[batch->provenance(i).key];
  }
  LoseResident(checkpoint);
  const std::unique_ptr<Pipeline> restored = Pipeline::Restore(spec, checkpoint, Options());
  while (const std::optional<Batch> batch = restored->Next()) {
    for (size_t i = 0; i < batch->size(); ++i) --uses[batch->provenance(i).key];
  }
  EXPECT_EQ(restored->Stats().bad_count, 1u);
  for (const auto& [key, more] : uses) {
    EXPECT_EQ(more > 0, "root/" + key == lost_) << key << " " << more;
  }
}

TEST_F(ResumeEndsTest, AfterStopWhatWasNotDeliveredIsInTheCheckpoint) {
  const PipelineSpec spec = Spec();
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, Options());
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(pipeline->Next());
  const std::string before = pipeline->Checkpoint().ToBytes();
  pipeline->Stop();
  EXPECT_EQ(pipeline->Checkpoint().ToBytes(), before);
  EXPECT_EQ(pipeline->Checkpoint().steps(), 7u);
}

TEST_F(ResumeEndsTest, AtTheEndThereIsNothingMoreToGive) {
  const PipelineSpec spec = Spec();
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, Options());
  while (pipeline->Next()) continue;
  const std::unique_ptr<Pipeline> restored =
      Pipeline::Restore(spec, pipeline->Checkpoint(), Options());
  EXPECT_FALSE(restored->Next());
  EXPECT_EQ(restored->Checkpoint().ToBytes(), pipeline->Checkpoint().ToBytes());
}

// The buffer is emptied by the failure alone: another run would not have drawn like that.
TEST_F(ResumeEndsTest, WhatCameAboutByAFailureCannotBeGoneOnFrom) {
  const PipelineSpec spec = Spec();
  const std::vector<FolderEntry> files = the_case_.storage->List("root/c").value();
  const std::string bad = "root/c/" + files[300].name;
  the_case_.storage->FailAlways(
      bad, Error({.code = ErrorCode::kIo, .what = "a bad sector", .where = bad}));
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, Options());
  std::optional<PipelineCheckpoint> last;
  int refused = 0;
  try {
    while (pipeline->Next()) {
      try {
        last = pipeline->Checkpoint();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kStopped);
        ++refused;
      }
    }
    FAIL() << "it came to its end";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(bad));
  }
  ASSERT_TRUE(last);
  EXPECT_GT(refused, 0);
  // Once it can be read again, nothing is lost.
  the_case_.storage = std::make_shared<FakeStorage>();
  PutEqualRecords(*the_case_.storage, false);
  const std::unique_ptr<Pipeline> whole = Pipeline::Open(spec, Options());
  const std::unique_ptr<Pipeline> restored = Pipeline::Restore(spec, *last, Options());
  for (uint64_t step = 0; step < last->steps(); ++step) ASSERT_TRUE(whole->Next());
  EXPECT_EQ(DeliverUntil(~uint64_t{0}, *restored).hashes,
            DeliverUntil(~uint64_t{0}, *whole).hashes);
}

}  // namespace
}  // namespace echopipe
