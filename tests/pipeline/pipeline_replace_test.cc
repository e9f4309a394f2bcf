// Bad examples whose places are taken by the next good ones.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/graph_run.h>
#include <echopipe/tests/support/random_pipeline.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using testing::FakeStorage;
using testing::GraphRun;
using ::testing::HasSubstr;
using testing::SpecWithFunctions;
using testing::SyntheticSource;

using Throws = std::function<bool(const Identity&)>;

PipelineSpec Spec(const std::string& stages, const Throws& throws = nullptr) {
  return PipelineSpec::FromText("seed: 7 source { uri: 'synthetic' } " + stages +
                                " bad_examples { policy: REPLACE }")
      .WithMap("decode",
               [throws](Example& example) {
                 if (throws(example.provenance().identity)) throw std::runtime_error("bad");
               })
      .WithFilter("odd", [](const Example& example) { return *example.label() % 2 == 1; });
}

const char* const kDecode = "stage { map { function: 'decode' } } ";
const char* const kRepeatInPlace = "stage { echo { factor: 2 shuffle_buffer: 1 spacing: 0 } } ";

Throws AtOrdinals(std::set<uint64_t> ordinals) {
  return [ordinals = std::move(ordinals)](const Identity& identity) {
    return ordinals.contains(identity.ordinal);
  };
}

/// "epoch.ordinal[uses]", and "<epoch.ordinal" of the record that stands in there.
std::string NameOf(const Batch& batch, size_t i) {
  const Provenance provenance = batch.provenance(i);
  const Identity& identity = provenance.identity;
  std::string name = std::to_string(identity.epoch) + "." + std::to_string(identity.ordinal);
  for (const uint32_t use : identity.uses()) name += "[" + std::to_string(use) + "]";
  uint64_t ordinal = identity.ordinal;
  if (provenance.stands_in) {
    ordinal = provenance.stands_in->ordinal;
    name += "<" + std::to_string(provenance.stands_in->epoch) + "." + std::to_string(ordinal);
  }
  // Whose all else is.
  EXPECT_EQ(provenance.key, "item-" + std::to_string(ordinal)) << name;
  EXPECT_EQ(batch.labels()[i], static_cast<int64_t>(ordinal)) << name;
  EXPECT_EQ(batch.bytes_features()[0].values[i].bytes()[0], ordinal % 256) << name;
  return name;
}

std::string Describe(const std::vector<Batch>& batches) {
  std::string text;
  for (const Batch& batch : batches) {
    text += "(";
    for (size_t i = 0; i < batch.size(); ++i) text += (i > 0 ? " " : "") + NameOf(batch, i);
    text += batch.end_of_epoch() ? ")|" : ")";
  }
  return text;
}

std::string Deliver(const PipelineSpec& spec, const SyntheticSource::Options& source,
                    const RuntimeOptions& options = {}) {
  GraphRun run(spec, source, options);
  return Describe(run.Drain());
}

TEST(PipelineReplaceTest, TheNextGoodRecordTakesThePlaceOfOneThatCannotBeRead) {
  EXPECT_EQ(Deliver(Spec("stage { batch { size: 3 } }"), {.records = 5, .bad = {1}}),
            "(0.0 0.1<0.2 0.2)(0.3 0.4)|");
}

TEST(PipelineReplaceTest, SoItDoesWhereOneCannotBeDecoded) {
  EXPECT_EQ(Deliver(Spec(std::string(kDecode) + "stage { batch { size: 5 } }", AtOrdinals({0, 3})),
                    {.records = 5}),
            "(0.0<0.1 0.1 0.2 0.3<0.4 0.4)|");
}

TEST(PipelineReplaceTest, ABadRunIsFilledByOne) {
  EXPECT_EQ(Deliver(Spec(std::string(kDecode) + "stage { batch { size: 5 } }", AtOrdinals({2})),
                    {.records = 5, .bad = {1, 3}}),
            "(0.0 0.1<0.4 0.2<0.4 0.3<0.4 0.4)|");
}

// What an echo point repeats is bad at each use, and replaced at each.
TEST(PipelineReplaceTest, BehindAnEchoEachUseIsReplaced) {
  const std::string stages = std::string(kRepeatInPlace) + kDecode + "stage { batch { size: 6 } }";
  EXPECT_EQ(Deliver(Spec(stages, AtOrdinals({1})), {.records = 3}),
            "(0.0[0] 0.0[1] 0.1[0]<0.2 0.1[1]<0.2 0.2[0] 0.2[1])|");
  // Perhaps by a good use of the record itself.
  EXPECT_EQ(Deliver(Spec(stages, [](const Identity& identity) { return identity.use[0] == 0; }),
                    {.records = 2}),
            "(0.0[0]<0.0 0.0[1] 0.1[0]<0.1 0.1[1])|");
}

TEST(PipelineReplaceTest, InFrontOfAnEchoTheStandInIsRepeatedLikeAnyOther) {
  EXPECT_EQ(Deliver(Spec(std::string(kRepeatInPlace) + "stage { batch { size: 6 } }"),
                    {.records = 3, .bad = {1}}),
            "(0.0[0] 0.0[1] 0.1[0]<0.2 0.1[1]<0.2 0.2[0] 0.2[1])|");
}

TEST(PipelineReplaceTest, ABatchMayEndBetweenAStandInAndItsOriginal) {
  EXPECT_EQ(Deliver(Spec("stage { batch { size: 2 } }"), {.records = 4, .bad = {1}}),
            "(0.0 0.1<0.2)(0.2 0.3)|");
}

TEST(PipelineReplaceTest, AnEpochsLastPlaceIsFilledFromTheNextEpoch) {
  for (const char* echo : {"", "stage { echo { factor: 1 } } "}) {
    SCOPED_TRACE(echo);
    GraphRun run(Spec(echo + std::string("stage { batch { size: 2 } }")),
                 {.records = 4, .epochs = 2, .bad = {0, 3}});
    const std::vector<Batch> batches = run.Drain();
    ASSERT_EQ(batches.size(), 4u);
    EXPECT_EQ(batches[1].provenance(1).stands_in, (RecordOrigin{.epoch = 1, .ordinal = 1}));
    EXPECT_EQ(batches[1].provenance(1).identity.epoch, 0u);
    EXPECT_TRUE(batches[1].end_of_epoch());
    EXPECT_EQ(batches[1].epoch(), 0u);
    EXPECT_EQ(batches[2].epoch(), 1u);
    EXPECT_EQ(batches[3].size(), 1u) << "the last of all has none behind it";
    EXPECT_TRUE(batches[3].end_of_epoch());
  }
}

TEST(PipelineReplaceTest, AtTheEndOfTheDataWhatNoGoodOneFollowsIsSkippedAndNamed) {
  std::vector<std::string> told;
  GraphRun run(Spec("stage { batch { size: 2 } }"), {.records = 5, .bad = {1, 3, 4}},
               {.log = [&](std::string_view message) { told.emplace_back(message); }});
  EXPECT_EQ(Describe(run.Drain()), "(0.0 0.1<0.2)(0.2)|");
  EXPECT_EQ(run.graph().Stats().bad_count, 3u);
  EXPECT_THAT(told,
              ElementsAre(::testing::StartsWith("replaced "), ::testing::StartsWith("skipped "),
                          ::testing::StartsWith("skipped ")));
}

TEST(PipelineReplaceTest, WhatIsFilteredOutIsNotReplaced) {
  EXPECT_EQ(Deliver(Spec("stage { filter { function: 'odd' } } stage { batch { size: 9 } }"),
                    {.records = 6, .bad = {1, 4}}),
            "(0.1<0.3 0.3 0.4<0.5 0.5)|");
}

// A good one behind many more than any window holds, and room for few of those that stand in.
TEST(PipelineReplaceTest, ARunLongerThanAllWindowsIsFilledWithinThem) {
  SyntheticSource::Options source{.records = 3001};
  std::set<uint64_t> ordinals;
  for (uint64_t i = 1; i < 3000; ++i) ordinals.insert(i);
  for (const char* echo : {"", "stage { echo { factor: 1 } } ", kRepeatInPlace}) {
    for (const int size : {1, 7}) {
      SCOPED_TRACE(echo + std::to_string(size));
      const std::string stages =
          echo + std::string(kDecode) + "stage { batch { size: " + std::to_string(size) + " } }";
      GraphRun run(Spec(stages, AtOrdinals(ordinals)), source,
                   {.threads = 1, .reads_in_flight = 1, .prefetch = 2});
      uint64_t examples = 0;
      for (const Batch& batch : run.Drain()) examples += batch.size();
      EXPECT_EQ(examples, echo == kRepeatInPlace ? 6002u : 3001u);
      for (const WindowStats& window : run.graph().Stats().windows) {
        EXPECT_LE(window.peak_in_flight, window.window) << window.name;
      }
    }
  }
}

TEST(PipelineReplaceTest, OfManyStandInsNoMoreAreMadeAheadThanOfOthers) {
  std::set<uint64_t> ordinals;
  for (uint64_t i = 1; i < 3000; ++i) ordinals.insert(i);
  const PipelineSpec spec =
      Spec(std::string(kDecode) + "stage { map { function: 'tensor' } } " +
               "stage { batch { size: 1 } }",
           AtOrdinals(ordinals))
          .WithMap("tensor", [](Example& example) {
            BufferPool pool;
            example.Set("pixel", TensorBuilder(DType::kUint8, {1}, pool).Finish());
          });
  std::atomic<uint64_t> made = 0;
  const auto allocator = [&](size_t bytes) {
    ++made;
    return std::shared_ptr<uint8_t>(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  };
  GraphRun run(spec, {.records = 3001}, {.threads = 1, .allocator = allocator});
  ASSERT_TRUE(run.graph().Take());
  ASSERT_TRUE(run.graph().Take());
  run.graph().Drive();
  EXPECT_GT(made, 2u);
  EXPECT_LE(made, 2 + run.graph().Stats().windows.back().window);
  EXPECT_EQ(run.Drain().size(), 2999u);
}

TEST(PipelineReplaceTest, AStandInSharesItsOriginalsDataAndIsAugmentedAnew) {
  GraphRun run(Spec("stage { batch { size: 3 } }"), {.records = 3, .bad = {1}});
  const std::vector<Batch> batches = run.Drain();
  const std::vector<Tensor>& values = batches.at(0).bytes_features()[0].values;
  EXPECT_EQ(values[1].bytes().data(), values[2].bytes().data());

  auto storage = std::make_shared<FakeStorage>();
  for (int i = 0; i < 40; ++i) {
    storage->Put("root/c/" + std::to_string(10 + i) + ".jpg",
                 i % 2 == 0 ? "" : "x" + std::to_string(i));
  }
  const auto pipeline = Pipeline::Open(
      SpecWithFunctions(
          "source { uri: 'root' } bad_examples { policy: REPLACE } "
          "stage { echo { factor: 1 } } stage { map { function: 'pixels' } } "
          "stage { random_crop { height: 3 width: 3 } } stage { batch { size: 40 } }"),
      {.storage = storage});
  const std::optional<Batch> batch = pipeline->Next();
  ASSERT_EQ(batch->size(), 40u);
  const std::span<const uint8_t> pixels = batch->Get("image").bytes();
  int alike = 0;
  for (size_t i = 0; i < 40; i += 2) {
    alike += std::ranges::equal(pixels.subspan(27 * i, 27), pixels.subspan(27 * i + 27, 27));
  }
  EXPECT_LT(alike, 10);
}

// ---- ends

std::optional<Error> EndOf(GraphRun& run) {
  try {
    run.Drain();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

TEST(PipelineReplaceTest, AnEpochWithoutAGoodRecordEndsItAsUnderSkip) {
  const auto in_second_epoch = [](const Identity& identity) { return identity.epoch == 1; };
  for (const char* echo : {"", "stage { echo { factor: 1 } } ", kRepeatInPlace}) {
    for (const uint64_t epochs : {uint64_t{1}, uint64_t{0}}) {
      SCOPED_TRACE(echo + std::to_string(epochs));
      const std::string batch = "stage { batch { size: 2 } }";
      GraphRun unreadable(Spec(echo + batch), {.records = 2, .epochs = epochs, .bad = {0, 1}});
      GraphRun undecodable(Spec(echo + std::string(kDecode) + batch, AtOrdinals({0, 1})),
                           {.records = 2, .epochs = epochs});
      GraphRun later(Spec(std::string(kDecode) + echo + batch, in_second_epoch),
                     {.records = 2, .epochs = epochs == 1 ? 2 : epochs});
      for (GraphRun* run : {&unreadable, &undecodable, &later}) {
        const std::optional<Error> error = EndOf(*run);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), ErrorCode::kEmpty) << error->what();
        EXPECT_THAT(error->what(), HasSubstr("were bad and 0 filtered out"));
        EXPECT_EQ(run->graph().Stats().bad_count, 2u);
      }
      EXPECT_EQ(later.graph().Stats().examples, echo == kRepeatInPlace ? 4u : 2u);
    }
  }
}

TEST(PipelineReplaceTest, WhatEndsUpstreamComesBehindAllThatWasGood) {
  GraphRun run(Spec("stage { batch { size: 1 } }"), {.records = 9, .bad = {1, 4}, .fails_at = 5});
  std::vector<Batch> batches;
  std::optional<Error> error;
  try {
    while (std::optional<Batch> batch = run.graph().Take()) batches.push_back(*std::move(batch));
  } catch (const Error& thrown) {
    error = thrown;
  }
  EXPECT_EQ(Describe(batches), "(0.0)(0.1<0.2)(0.2)(0.3)");
  ASSERT_TRUE(error);
  EXPECT_NE(error->code(), ErrorCode::kEmpty);
}

// ---- counting

/// What a policy counts and names, and whether a limit ends it.
struct Counted {
  uint64_t count = 0;
  std::vector<std::string> named = {};
  bool too_many = false;
  bool operator==(const Counted&) const = default;
};

Counted CountUnder(const std::string& policy, const std::string& stages) {
  const PipelineSpec spec = PipelineSpec::FromText("source { uri: 'synthetic' } " + stages +
                                                   " bad_examples { " + policy + " }")
                                .WithMap("decode", [](Example& example) {
                                  if (example.label() == 5) throw std::runtime_error("bad");
                                });
  GraphRun run(spec, {.records = 9, .epochs = 3, .bad = {1, 4}});
  const std::optional<Error> error = EndOf(run);
  Counted counted{.count = run.graph().Stats().bad_count, .too_many = error.has_value()};
  if (error) {
    EXPECT_EQ(error->code(), ErrorCode::kLimitExceeded);
  }
  for (const BadExample& bad : run.graph().Stats().bad_examples) {
    counted.named.push_back(bad.key + bad.stage);
  }
  return counted;
}

TEST(PipelineReplaceTest, LimitsAndCountsAreThoseOfSkip) {
  for (const std::string echo : {"", kRepeatInPlace}) {
    // Behind the echo, 4 has the data of 5, and that of 6 in the end: 5 is bad, once.
    const std::string stages = echo + kDecode + "stage { batch { size: 4 } }";
    for (const std::string limit : {"", "max_count: 2", "max_count: 3", "max_fraction: 0.3",
                                    "max_fraction: 0.34", "max_count: 0"}) {
      SCOPED_TRACE(stages + limit);
      const Counted skipped = CountUnder("policy: SKIP " + limit, stages);
      EXPECT_EQ(CountUnder("policy: REPLACE " + limit, stages), skipped);
      const bool is_enough =
          limit.empty() || limit == "max_count: 3" || limit == "max_fraction: 0.34";
      EXPECT_NE(skipped.too_many, is_enough);
    }
  }
}

// ---- ranks

TEST(PipelineReplaceTest, EachRankGivesAsManyStepsAsWithoutBadRecords) {
  auto storage = std::make_shared<FakeStorage>();
  auto whole = std::make_shared<FakeStorage>();
  for (int i = 0; i < 120; ++i) {
    const std::string path = "root/c/" + std::to_string(1000 + i) + ".jpg";
    // A third of one rank's records, and a run of another's; the last ones are good.
    const bool bad = i < 117 && ((i % 3 == 0 && i % 9 == 0) || (i % 3 == 1 && i > 30 && i < 70));
    storage->Put(path, bad ? "" : "record " + std::to_string(i));
    whole->Put(path, "record " + std::to_string(i));
  }
  const auto steps = [](const std::shared_ptr<FakeStorage>& data, const std::string& policy,
                        uint64_t rank) {
    const auto pipeline = Pipeline::Open(
        SpecWithFunctions("source { uri: 'root' epochs: 2 } bad_examples { policy: " + policy +
                          " } stage { map { function: 'pixels' } } "
                          "stage { echo { factor: 1.5 shuffle_buffer: 8 spacing: 3 } } "
                          "stage { batch { size: 3 remainder: DROP } }"),
        {.storage = data}, {.rank = rank, .world = 3});
    int count = 0;
    while (pipeline->Next()) ++count;
    return count;
  };
  const int wanted = steps(whole, "SKIP", 0);
  EXPECT_EQ(wanted, 40);
  EXPECT_LT(steps(storage, "SKIP", 1), wanted);
  for (uint64_t rank = 0; rank < 3; ++rank) EXPECT_EQ(steps(storage, "REPLACE", rank), wanted);
}

// ---- threads and restores

class PipelineReplaceRunTest : public ::testing::Test {
 protected:
  PipelineReplaceRunTest() {
    for (int i = 0; i < 90; ++i) {
      storage_->Put("root/c/" + std::to_string(100 + i) + ".jpg",
                    i % 5 == 2 || (i > 40 && i < 60) ? "" : "record " + std::to_string(i));
    }
  }
  PipelineSpec Spec() const {
    return SpecWithFunctions(
        "seed: 4 source { uri: 'root' epochs: 3 shuffle { full {} } } "
        "bad_examples { policy: REPLACE } "
        "stage { echo { factor: 1.5 shuffle_buffer: 9 spacing: 2 } } "
        "stage { map { function: 'pixels' } } stage { map { function: 'throws at some' } } "
        "stage { random_crop { height: 5 width: 5 } } "
        "stage { echo { factor: 2 shuffle_buffer: 8 spacing: 4 } } "
        "stage { map { function: 'throws at some' } } stage { random_flip {} } "
        "stage { batch { size: 4 } } stage { echo { factor: 1.15 shuffle_buffer: 3 } }");
  }
  std::string HashOn(int threads) const {
    BatchHash hash;
    const auto pipeline = Pipeline::Open(
        Spec(), {.threads = threads, .reads_in_flight = 1 + 3 * threads, .storage = storage_});
    for (const Batch& batch : *pipeline) hash.Add(batch);
    return hash.Hex();
  }

  std::shared_ptr<FakeStorage> storage_ = std::make_shared<FakeStorage>();
};

TEST_F(PipelineReplaceRunTest, TheRunIsTheSameOnAnyThreads) {
  constexpr const char* kGolden = "0c14612235265c46cc66ad77c747acb8";
  for (const int threads : {1, 2, 8}) EXPECT_EQ(HashOn(threads), kGolden) << threads;
}

TEST_F(PipelineReplaceRunTest, EveryCheckpointGoesOnAlike) {
  const auto pipeline = Pipeline::Open(Spec(), {.storage = storage_});
  std::vector<std::string> hashes;
  std::vector<PipelineCheckpoint> checkpoints;
  uint64_t ahead = 0;
  while (const std::optional<Batch> batch = pipeline->Next()) {
    hashes.push_back(testing::HashOf(*batch));
    checkpoints.push_back(pipeline->Checkpoint());
    for (const proto::StandIns& edge : checkpoints.back().message().stand_ins()) {
      ahead += edge.item().epoch_size() > 0;
    }
  }
  ASSERT_GT(ahead, 20u) << "hardly a checkpoint stands in front of a stand-in or its original";
  for (size_t step = 0; step < checkpoints.size(); step += 3) {
    SCOPED_TRACE(step);
    const auto restored = Pipeline::Restore(Spec(), checkpoints[step], {.storage = storage_});
    ASSERT_EQ(restored->Checkpoint().ToBytes(), checkpoints[step].ToBytes());
    for (size_t next = step + 1; next < std::min(step + 12, hashes.size()); ++next) {
      const std::optional<Batch> batch = restored->Next();
      ASSERT_TRUE(batch);
      ASSERT_EQ(testing::HashOf(*batch), hashes[next]) << next;
      ASSERT_TRUE(restored->Checkpoint().ToBytes() == checkpoints[next].ToBytes()) << next;
    }
  }
}

// Behind each step of a run whose epochs end with bad ones.
TEST(PipelineReplaceRestoreTest, EpochsEndWhereTheyWouldHaveEnded) {
  auto storage = std::make_shared<FakeStorage>();
  for (int i = 0; i < 5; ++i) {
    storage->Put("root/c/" + std::to_string(i) + ".jpg", i > 1 ? "" : std::to_string(i));
  }
  for (const std::string echo : {"", "stage { echo { factor: 1 } } ", kRepeatInPlace}) {
    for (const char* batch : {"size: 1", "size: 2", "size: 3 across_epochs: true"}) {
      SCOPED_TRACE(echo + batch);
      const PipelineSpec spec = SpecWithFunctions(
          "source { uri: 'root' epochs: 4 } bad_examples { policy: REPLACE } " + echo +
          "stage { map { function: 'pixels' } } stage { batch { " + batch + " } }");
      const auto pipeline = Pipeline::Open(spec, {.storage = storage});
      std::vector<std::string> wanted;
      std::vector<PipelineCheckpoint> checkpoints;
      while (const std::optional<Batch> next = pipeline->Next()) {
        wanted.push_back(testing::HashOf(*next));
        checkpoints.push_back(pipeline->Checkpoint());
      }
      for (size_t step = 0; step < checkpoints.size(); ++step) {
        SCOPED_TRACE(step);
        const auto restored = Pipeline::Restore(spec, checkpoints[step], {.storage = storage});
        std::vector<std::string> got(wanted.begin(),
                                     wanted.begin() + static_cast<std::ptrdiff_t>(step) + 1);
        while (const std::optional<Batch> next = restored->Next()) {
          got.push_back(testing::HashOf(*next));
        }
        ASSERT_EQ(got, wanted);
      }
    }
  }
}

// A checkpoint between a stand-in and its original, which cannot be read any more.
TEST(PipelineReplaceRestoreTest, WhatAPlaceWaitsForMayHaveBecomeBadItself) {
  for (const char* echo : {"", "stage { echo { factor: 1 } } "}) {
    SCOPED_TRACE(echo);
    auto storage = std::make_shared<FakeStorage>();
    for (int i = 0; i < 9; ++i) {
      storage->Put("root/c/" + std::to_string(i) + ".jpg",
                   i == 1 || i == 2 ? "" : std::to_string(i));
    }
    const PipelineSpec spec = SpecWithFunctions(
        "source { uri: 'root' } bad_examples { policy: REPLACE } " + std::string(echo) +
        "stage { map { function: 'pixels' } } stage { batch { size: 2 } }");
    const auto pipeline = Pipeline::Open(spec, {.storage = storage});
    ASSERT_TRUE(pipeline->Next());  // 0, and 1 with the data of 3
    const PipelineCheckpoint checkpoint = pipeline->Checkpoint();
    ASSERT_EQ(checkpoint.message().stand_ins(0).held(), 1u);
    ASSERT_EQ(checkpoint.message().stand_ins(0).item().epoch_size(), 2);
    pipeline->Stop();
    storage->FailAlways("root/c/3.jpg", Error({.code = ErrorCode::kIo, .what = "gone"}));
    const auto restored = Pipeline::Restore(spec, checkpoint, {.storage = storage});
    std::vector<std::string> names;
    while (const std::optional<Batch> batch = restored->Next()) {
      for (size_t i = 0; i < batch->size(); ++i) {
        const Provenance from = batch->provenance(i);
        names.push_back(std::to_string(from.identity.ordinal) + "=" + from.key);
      }
      // It can be gone on from there, too.
      const auto again = Pipeline::Restore(spec, restored->Checkpoint(), {.storage = storage});
      EXPECT_EQ(again->Checkpoint().ToBytes(), restored->Checkpoint().ToBytes());
    }
    EXPECT_THAT(names, ElementsAre("2=c/4.jpg", "3=c/4.jpg", "4=c/4.jpg", "5=c/5.jpg", "6=c/6.jpg",
                                   "7=c/7.jpg", "8=c/8.jpg"));
  }
}

}  // namespace
}  // namespace echopipe
