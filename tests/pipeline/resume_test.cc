// The law of resume: what a pipeline gives after a restore is what it would have given.

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/random_pipeline.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe {
namespace {

using testing::FakeStorage;
using testing::HashOf;
using testing::MakeRandomPipeline;
using testing::RandomPipeline;
using testing::SpecWithFunctions;
using testing::TarBuilder;

/// A pipeline, its data and its rank.
struct Case {
  std::string text;
  std::shared_ptr<FakeStorage> storage;
  Rank rank;
};

Case MakeCase(RandomStream& random) {
  const RandomPipeline made = MakeRandomPipeline(random);
  Case the_case{.text = made.Text(), .storage = std::make_shared<FakeStorage>(), .rank = made.rank};
  for (const auto& [path, bytes] : made.objects) the_case.storage->Put(path, bytes);
  return the_case;
}

RuntimeOptions RandomOptions(RandomStream& random, const Case& the_case) {
  return {.threads = static_cast<int>(random.Between(1, 4)),
          .reads_in_flight = static_cast<int>(random.Between(1, 20)),
          .prefetch = static_cast<int>(random.Between(2, 6)),
          .storage = the_case.storage};
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
  const PipelineSpec spec = SpecWithFunctions(the_case.text);
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
  const PipelineSpec spec = SpecWithFunctions(the_case.text);
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
  const PipelineSpec spec = SpecWithFunctions(the_case.text);
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
    return SpecWithFunctions(the_case_.text);
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
