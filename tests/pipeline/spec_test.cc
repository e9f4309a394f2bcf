// Specs as text, what they may say, and what open leaves to the runtime.

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using testing::FakeStorage;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

template <class Body>
std::optional<Error> ErrorOf(const Body& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

const char* const kWhole =
    "seed: 7 source { uri: 'a' uri: 'b/{0,1}' shuffle { full {} } epochs: 90 take: 5 } "
    "stage { decode { color: GRAY } } stage { echo { factor: 1.5 shuffle_buffer: 4096 } } "
    "stage { random_resized_crop { height: 224 width: 224 min_scale: 0.5 } } "
    "stage { random_flip {} } stage { normalize { mean: 0.5 std: 0.25 } } "
    "stage { batch { size: 256 remainder: DROP } } stage { echo { factor: 2 } } "
    "bad_examples { policy: SKIP max_count: 9 max_fraction: 0.5 } steps_per_epoch: 10";

TEST(SpecTest, TextComesBackAsItWent) {
  const PipelineSpec spec = PipelineSpec::FromText(kWhole);
  spec.Validate();
  const std::string text = spec.ToText();
  EXPECT_EQ(PipelineSpec::FromText(text).ToText(), text);
  EXPECT_EQ(PipelineSpec::FromText(text).message().SerializeAsString(),
            spec.message().SerializeAsString());
  EXPECT_EQ(PipelineSpec(spec.message()).ToText(), text);
  EXPECT_THAT(text, HasSubstr("min_scale: 0.5"));
}

TEST(SpecTest, ParseErrorsTellNameLineAndColumn) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"seed: 7\nstage { batch { sise: 3 } }", "my.spec:2:21: "},
      {"seed: 'seven'", "my.spec:1:7: "},
      {"seed: 1\nseed: 2", "my.spec:2:"},
      {"stage {", "my.spec:1:8: "},
      {"source { shuffle { full {} window: 3 } }", "my.spec:1:"},
      {"stage { batch { size: -1 } }", "my.spec:1:23: "},
      {"stage { batch { remainder: SOMETIMES } }", "my.spec:1:38: "}};
  for (const auto& [text, where] : wrong) {
    const auto error = ErrorOf([&] { PipelineSpec::FromText(text, "my.spec"); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->what(), StartsWith(where)) << text;
  }
}

TEST(SpecTest, NoTextIsASpecThatDoesNotValidate) {
  const auto error = ErrorOf([] { PipelineSpec::FromText("").Validate(); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), StartsWith("source: "));
}

struct Wrong {
  const char* text;
  const char* where;   ///< how the message begins
  const char* reason;  ///< in it
};

class SpecErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(SpecErrors, NameFieldAndReason) {
  const PipelineSpec spec =
      PipelineSpec::FromText(GetParam().text).WithMap("known", [](Example&) {});
  const auto error = ErrorOf([&] { spec.Validate(); });
  ASSERT_TRUE(error) << "validated: " << GetParam().text;
  EXPECT_THAT(error->what(), StartsWith(GetParam().where)) << GetParam().text;
  EXPECT_THAT(error->what(), HasSubstr(GetParam().reason)) << GetParam().text;
}

#define SOURCE "source { uri: 'a' } "
#define BATCH "stage { batch { size: 4 } } "

INSTANTIATE_TEST_SUITE_P(
    Sources, SpecErrors,
    ::testing::Values(
        Wrong{BATCH, "source: ", "has a source"},
        Wrong{SOURCE "source { uri: 'b' epochs: 2 } " BATCH, "source[1]: source.epochs: ", "first"},
        Wrong{SOURCE "source { uri: 'b' weight: 0 } " BATCH, "source[1]: source.weight: ", "0"},
        Wrong{"source { uri: 'a' weight: 1000001 } " BATCH,
              "source[0]: source.weight: ", "1000001"},
        Wrong{SOURCE "source {} " BATCH, "source[1]: source.uri: ", "no uri"},
        Wrong{"source {} " BATCH, "source[0]: source.uri: ", "no uri"},
        Wrong{"source { uri: '' } " BATCH, "source[0]: source.uri: ", "empty"},
        Wrong{"source { uri: 'a{b' } " BATCH, "source[0]: source.uri: ", "a{b"},
        Wrong{"source { uri: 'a' format: 7 } " BATCH, "source[0]: source.format: ", "7"},
        Wrong{"source { uri: 'a.tar' uri: 'b' } " BATCH, "source[0]: source.uri: ", "a.tar and b"},
        Wrong{"source { uri: 'a.tar.gz' } " BATCH, "source[0]: source.uri: ", "compressed"},
        Wrong{"source { uri: 'a' shuffle { window: 0 } } " BATCH,
              "source[0]: source.shuffle.window: ", "got 0"},
        Wrong{"source { uri: 'a' shuffle { window: 18446744073709551615 } } " BATCH,
              "source[0]: source.shuffle.window: ", "out of range"},
        Wrong{"source { uri: 'a' epochs: 18446744073709551615 } " BATCH,
              "source[0]: source.epochs: ", "out of range"},
        Wrong{"source { uri: 'a' take: 18446744073709551615 } " BATCH,
              "source[0]: source.take: ", "out of range"},
        Wrong{"source { uri: 'a.tar' tar { image: 'jpg;;png' } } " BATCH,
              "source[0]: source.tar.image: ", "empty"},
        Wrong{"source { uri: 'a.tar' tar { image: 'cls' } } " BATCH,
              "source[0]: source.tar.label: ", "image member"}));

INSTANTIATE_TEST_SUITE_P(
    Stages, SpecErrors,
    ::testing::Values(
        Wrong{SOURCE, "stage: ", "one batch stage"}, Wrong{SOURCE BATCH BATCH, "stage: ", "got 2"},
        Wrong{SOURCE "stage {} " BATCH, "stage[0]: stage: ", "no kind"},
        Wrong{SOURCE "stage { batch {} }", "batch.size: ", "got 0"},
        Wrong{SOURCE "stage { batch { size: 1048577 } }", "batch.size: ", "1048577"},
        Wrong{SOURCE "stage { batch { size: 4 remainder: 7 } }", "batch.remainder: ", "7"},
        Wrong{SOURCE BATCH "stage { decode {} }", "stage[1]: decode: ", "after batch"},
        Wrong{SOURCE "stage { decode { color: 9 } } " BATCH, "stage[0]: color: ", "9"},
        Wrong{SOURCE "stage { decode { max_pixels: 0 } } " BATCH, "stage[0]: max_pixels: ", "0"},
        Wrong{SOURCE "stage { resize {} } " BATCH, "stage[0]: ", "wanted"},
        Wrong{SOURCE "stage { center_crop { height: 5 } } " BATCH, "stage[0]: width: ", "got 0"},
        Wrong{SOURCE "stage { random_crop { width: 5 } } " BATCH, "stage[0]: height: ", "got 0"},
        Wrong{SOURCE "stage { random_resized_crop { height: 5 width: 5 min_scale: 2 } } " BATCH,
              "stage[0]: min_scale: ", "out of range"},
        Wrong{SOURCE "stage { random_resized_crop { height: 5 width: 5 max_ratio: nan } } " BATCH,
              "stage[0]: max_ratio: ", "nan"},
        Wrong{SOURCE "stage { random_flip { probability: 1.5 } } " BATCH,
              "stage[0]: probability: ", "1.5"},
        Wrong{SOURCE "stage { normalize { type: 2 } } " BATCH, "stage[0]: type: ", "FLOAT16"},
        Wrong{SOURCE
              "stage { resize { shorter_side: 9 interpolation: AREA antialias: true } } " BATCH,
              "stage[0]: antialias: ", "AREA"},
        Wrong{SOURCE "stage { color_jitter { hue: 0.7 } } " BATCH, "stage[0]: hue: ", "0..0.5"},
        Wrong{SOURCE "stage { gaussian_blur {} } " BATCH, "stage[0]: kernel_size: ", "got 0"},
        Wrong{SOURCE "stage { random_erasing { value: 300 } } " BATCH, "stage[0]: value: ", "300"},
        Wrong{SOURCE "stage { random_rotation {} } " BATCH, "stage[0]: degrees: ", "no value"},
        Wrong{SOURCE "stage { random_affine { shear: 90 } } " BATCH, "stage[0]: shear: ", "0..89"},
        Wrong{SOURCE "stage { random_posterize {} } " BATCH, "stage[0]: bits: ", "1..8"},
        Wrong{SOURCE "stage { random_solarize {} } " BATCH, "stage[0]: threshold: ", "not given"},
        Wrong{SOURCE "stage { rand_augment { magnitude: 31 } } " BATCH,
              "stage[0]: magnitude: ", "less than 31"},
        Wrong{SOURCE "stage { trivial_augment_wide { interpolation: BICUBIC } } " BATCH,
              "stage[0]: interpolation: ", "NEAREST or BILINEAR"},
        Wrong{SOURCE "stage { normalize { std: 0 } } " BATCH, "stage[0]: std: ", "out of range"},
        Wrong{SOURCE "stage { normalize { mean: [1, 2] } } " BATCH, "stage[0]: mean: ", "number"},
        Wrong{SOURCE "stage { map {} } " BATCH, "stage[0]: function: ", "no name"},
        Wrong{SOURCE "stage { map { function: 'unknown' } } " BATCH,
              "stage[0]: function: ", "got unknown, wanted one of known"},
        Wrong{SOURCE "stage { filter { function: 'known' } } " BATCH,
              "stage[0]: function: ", "there are none"}));

#define GRAY "stage { decode { color: GRAY } } "

INSTANTIATE_TEST_SUITE_P(
    Channels, SpecErrors,
    ::testing::Values(Wrong{SOURCE GRAY "stage { normalize {} } " BATCH,
                            "stage[1]: normalize.mean: ", "default of 3 values"},
                      Wrong{SOURCE GRAY "stage { random_flip {} } stage { echo { factor: 2 } } "
                                        "stage { normalize { mean: 0.5 std: [1, 2, 3] } } " BATCH,
                            "stage[3]: normalize.std: ", "got 3 values, wanted 1"},
                      Wrong{SOURCE
                            "stage { decode { feature: 'mask' color: GRAY } } stage { decode {} } "
                            "stage { normalize {} } stage { normalize { feature: 'mask' } } " BATCH,
                            "stage[3]: normalize.mean: ", "one channel"}));

TEST(SpecTest, ThreeMeansAreForPicturesThatMayHaveThreeChannels) {
  for (const std::string stages :
       {GRAY "stage { normalize { mean: 0.5 std: 0.2 } } ",
        "stage { decode {} } stage { normalize {} } ",
        GRAY "stage { map { function: 'known' } } stage { normalize {} } ",
        "stage { decode { feature: 'mask' color: GRAY } } stage { normalize {} } "}) {
    PipelineSpec::FromText(SOURCE + stages + BATCH).WithMap("known", [](Example&) {}).Validate();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Echoes, SpecErrors,
    ::testing::Values(
        Wrong{SOURCE "stage { echo {} } " BATCH, "stage[0]: echo.factor: ", "got 0"},
        Wrong{SOURCE "stage { echo { factor: 0.5 } } " BATCH, "stage[0]: echo.factor: ", "0.5"},
        Wrong{SOURCE "stage { echo { factor: 1001 } } " BATCH, "stage[0]: echo.factor: ", "1001"},
        Wrong{SOURCE "stage { echo { factor: nan } } " BATCH, "stage[0]: echo.factor: ", "nan"},
        Wrong{SOURCE "stage { echo { factor: 1.0000001 } } " BATCH,
              "stage[0]: echo.factor: ", "six places"},
        Wrong{SOURCE BATCH "stage { echo { factor: 0 } }", "stage[1]: echo.factor: ", "got 0"},
        Wrong{SOURCE "stage { echo { factor: 2 shuffle_buffer: 0 } } " BATCH,
              "stage[0]: echo.shuffle_buffer: ", "got 0"},
        Wrong{SOURCE "stage { echo { factor: 2 shuffle_buffer: 3 } } " BATCH,
              "stage[0]: echo.spacing: ", "got 4"},
        Wrong{SOURCE "stage { echo { factor: 2 shuffle_buffer: 8 spacing: 9 } } " BATCH,
              "stage[0]: echo.spacing: ", "at most"},
        Wrong{SOURCE "stage { echo { factor: 2 spacing: 1 grouped: true } } " BATCH,
              "stage[0]: echo.spacing: ", "0 with grouped"},
        Wrong{SOURCE "stage { echo { factor: 1 } } stage { echo { factor: 1 } } "
                     "stage { echo { factor: 1 } } stage { echo { factor: 1 } } "
                     "stage { echo { factor: 1 } } stage { echo { factor: 1 } } "
                     "stage { echo { factor: 1 } } stage { echo { factor: 1 } } " BATCH
                     "stage { echo { factor: 1 } }",
              "stage[9]: echo: ", "too many"},
        Wrong{SOURCE BATCH "bad_examples { max_count: 4 }", "bad_examples: ", "SKIP"},
        Wrong{SOURCE BATCH "bad_examples { policy: 7 }", "bad_examples.policy: ", "7"},
        Wrong{SOURCE BATCH "bad_examples { policy: SKIP max_fraction: 0 }",
              "bad_examples.max_fraction: ", "out of range"},
        Wrong{SOURCE BATCH "bad_examples { policy: SKIP max_fraction: nan }",
              "bad_examples.max_fraction: ", "nan"}));

EchoOptions EchoOf(const std::string& echo, const std::string& more = "", bool of_batches = false) {
  const std::string stage = "stage { echo { " + echo + " } } ";
  const internal::Plan plan = internal::MakePlan(
      PipelineSpec::FromText(SOURCE + (of_batches ? BATCH + stage : stage + BATCH) + more));
  return of_batches ? plan.batch_echoes.at(0).options : plan.echoes.at(0).options;
}

TEST(SpecTest, EchoSettingsHaveDefaultsThatKeepABatchFreeOfRepeats) {
  EXPECT_EQ(EchoOf("factor: 2").spacing, 4u);
  EXPECT_EQ(EchoOf("factor: 2").shuffle_buffer, 16u);
  // Twice the batch where a stage may skip.
  EXPECT_EQ(EchoOf("factor: 2", "bad_examples { policy: SKIP }").spacing, 8u);
  EXPECT_EQ(EchoOf("factor: 2", "bad_examples { policy: SKIP }").shuffle_buffer, 16u);
  // Replaced ones leave no gaps.
  EXPECT_EQ(EchoOf("factor: 2", "bad_examples { policy: REPLACE }").spacing, 4u);
  // B = max(4 batches, S).
  EXPECT_EQ(EchoOf("factor: 2 spacing: 40").shuffle_buffer, 40u);
  EXPECT_EQ(EchoOf("factor: 2 spacing: 0").shuffle_buffer, 16u);
  EXPECT_EQ(EchoOf("factor: 2 shuffle_buffer: 1 spacing: 0").shuffle_buffer, 1u);
  // Neither at factor 1 nor behind the batch is there anything to keep apart.
  EXPECT_EQ(EchoOf("factor: 1").spacing, 0u);
  EXPECT_EQ(EchoOf("factor: 1").shuffle_buffer, 1u);
  EXPECT_EQ(EchoOf("factor: 2", "", true).spacing, 0u);
  EXPECT_EQ(EchoOf("factor: 2", "", true).shuffle_buffer, 1u);
  EXPECT_EQ(EchoOf("factor: 2 shuffle_buffer: 3", "", true).shuffle_buffer, 3u);
  EXPECT_EQ(EchoOf("factor: 2 grouped: true").spacing, 0u);
  EXPECT_EQ(EchoOf("factor: 2 grouped: true").shuffle_buffer, 16u);
}

// Opening.

std::shared_ptr<FakeStorage> ImageStorage(int count = 60) {
  auto storage = std::make_shared<FakeStorage>();
  for (const auto& [name, bytes] : testing::MakeImages(count, 5))
    storage->Put("data/" + name, bytes);
  return storage;
}

PipelineSpec DataSpec(const std::string& source, const std::string& rest) {
  return PipelineSpec::FromText("seed: 7 source { uri: 'data' " + source + " } " + rest);
}

TEST(OpenTest, OptionsOutOfRangeAreNamed) {
  const PipelineSpec spec = DataSpec("", BATCH);
  const auto storage = ImageStorage(5);
  struct Case {
    RuntimeOptions options;
    Rank rank;
    const char* field;
  };
  const std::vector<Case> cases = {
      {{.threads = -1}, {}, "RuntimeOptions.threads: "},
      {{.threads = 1025}, {}, "RuntimeOptions.threads: "},
      {{.reads_in_flight = 0}, {}, "RuntimeOptions.reads_in_flight: "},
      {{.reads_in_flight = 1025}, {}, "RuntimeOptions.reads_in_flight"},
      {{.prefetch = 1}, {}, "RuntimeOptions.prefetch: "},
      {{.prefetch = 1025}, {}, "RuntimeOptions.prefetch: "},
      {{}, {.rank = 2, .world = 2}, "Rank.rank: "},
      {{}, {.rank = 0, .world = 0}, "Rank.rank: "}};
  for (Case one : cases) {
    one.options.storage = storage;
    const auto error = ErrorOf([&] { Pipeline::Open(spec, one.options, one.rank); });
    ASSERT_TRUE(error) << one.field;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->what(), StartsWith(one.field));
  }
}

TEST(OpenTest, MoreRanksThanRecordsAreRefused) {
  const auto error = ErrorOf([] {
    Pipeline::Open(DataSpec("", BATCH), {.storage = ImageStorage(5)}, {.rank = 0, .world = 6});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
}

std::optional<Error> ErrorOfDraining(Pipeline& pipeline) {
  return ErrorOf([&] {
    while (pipeline.Next()) {
    }
  });
}

/// An allocator of its own that counts.
struct CountingAllocator {
  std::atomic<int> made = 0;
  std::atomic<int> alive = 0;
  std::function<std::shared_ptr<uint8_t>(size_t)> Function() {
    return [this](size_t bytes) {
      ++made;
      ++alive;
      return std::shared_ptr<uint8_t>(new uint8_t[bytes], [this](const uint8_t* memory) {
        delete[] memory;
        --alive;
      });
    };
  }
};

const char* const kPixels =
    "stage { decode {} } stage { center_crop { height: 8 width: 8 } } stage { normalize {} "
    "} " BATCH;

TEST(OpenTest, BatchTensorsComeFromTheUsersAllocator) {
  CountingAllocator allocator;
  {
    const auto pipeline = Pipeline::Open(
        DataSpec("", kPixels), {.allocator = allocator.Function(), .storage = ImageStorage()});
    uint64_t batches = 0;
    for (const Batch& batch : *pipeline) batches += batch.size() == 4;
    EXPECT_EQ(batches, 15u);
  }
  EXPECT_EQ(allocator.made, 15);
  EXPECT_EQ(allocator.alive, 0);
}

TEST(OpenTest, AnAllocatorThatFailsEndsThePipelineWithAClearError) {
  const std::vector<std::pair<const char*, std::function<std::shared_ptr<uint8_t>(size_t)>>>
      failing = {
          {"null", [](size_t) { return nullptr; }},
          {"std::bad_alloc", [](size_t) -> std::shared_ptr<uint8_t> { throw std::bad_alloc(); }},
          {"no exception", [](size_t) -> std::shared_ptr<uint8_t> { throw 42; }}};
  for (const auto& [name, allocator] : failing) {
    const auto pipeline =
        Pipeline::Open(DataSpec("", kPixels), {.allocator = allocator, .storage = ImageStorage()});
    const std::optional<Error> error = ErrorOfDraining(*pipeline);
    ASSERT_TRUE(error) << name;
    EXPECT_EQ(error->code(), ErrorCode::kResourceExhausted) << name;
    EXPECT_THAT(error->what(), StartsWith("RuntimeOptions.allocator: ")) << name;
  }
}

// Ranks, epochs, filters.

struct RankRun {
  std::set<std::string> keys;
  std::vector<std::pair<size_t, bool>> batches;  // size, end of epoch
};

RankRun RunRank(const PipelineSpec& spec, Rank rank) {
  RankRun run;
  const auto pipeline = Pipeline::Open(spec, {.storage = ImageStorage()}, rank);
  for (const Batch& batch : *pipeline) {
    run.batches.emplace_back(batch.size(), batch.end_of_epoch());
    for (size_t i = 0; i < batch.size(); ++i) run.keys.insert(batch.provenance(i).key);
  }
  return run;
}

TEST(OpenTest, RanksShareAnEpochOutAndTakeEquallyManySteps) {
  const PipelineSpec spec = DataSpec("shuffle { full {} }", BATCH);
  std::set<std::string> all;
  size_t sum = 0;
  const RankRun first = RunRank(spec, {.rank = 0, .world = 7});
  for (uint64_t rank = 0; rank < 7; ++rank) {
    const RankRun run = RunRank(spec, {.rank = rank, .world = 7});
    EXPECT_EQ(run.batches, first.batches) << rank;
    EXPECT_THAT(run.keys, SizeIs(8));
    sum += run.keys.size();
    all.insert(run.keys.begin(), run.keys.end());
  }
  EXPECT_EQ(first.batches, (std::vector<std::pair<size_t, bool>>{{4, false}, {4, true}}));
  EXPECT_EQ(all.size(), sum) << "two ranks got the same record";
}

std::vector<std::pair<size_t, bool>> ShapeOf(const std::string& source, const std::string& rest) {
  return RunRank(DataSpec(source, rest), {}).batches;
}
using Batches = std::vector<std::pair<size_t, bool>>;

TEST(OpenTest, RemaindersAreKeptDroppedOrGoIntoTheNextEpoch) {
  const std::string source = "take: 10 epochs: 2";
  EXPECT_EQ(ShapeOf(source, "stage { batch { size: 4 } }"),
            (Batches{{4, false}, {4, false}, {2, true}, {4, false}, {4, false}, {2, true}}));
  EXPECT_EQ(ShapeOf(source, "stage { batch { size: 4 remainder: DROP } }"),
            (Batches{{4, false}, {4, true}, {4, false}, {4, true}}));
  EXPECT_EQ(ShapeOf(source, "stage { batch { size: 4 across_epochs: true } }"),
            (Batches{{4, false}, {4, false}, {4, true}, {4, false}, {4, true}}));
  EXPECT_EQ(ShapeOf("take: 9 epochs: 2",
                    "stage { batch { size: 4 across_epochs: true remainder: "
                    "DROP } }"),
            (Batches{{4, false}, {4, false}, {4, true}, {4, false}}));
  EXPECT_EQ(ShapeOf(source, "stage { batch { size: 4 } } steps_per_epoch: 2"),
            (Batches{{4, false}, {4, true}, {4, false}, {4, true}, {4, false}}));
}

TEST(OpenTest, DrainEachEpochKeepsEpochsApartAndCountsThemAsTheSourceDoes) {
  const auto pipeline = Pipeline::Open(
      DataSpec("epochs: 3 shuffle { full {} }",
               "stage { decode {} } stage { echo { factor: 1.5 drain_each_epoch: true } } "
               "stage { center_crop { height: 8 width: 8 } } " BATCH),
      {.storage = ImageStorage()});
  uint64_t epoch = 0;
  uint64_t examples = 0;
  for (const Batch& batch : *pipeline) {
    EXPECT_EQ(batch.epoch(), epoch);
    for (size_t i = 0; i < batch.size(); ++i) EXPECT_EQ(batch.provenance(i).identity.epoch, epoch);
    examples += batch.size();
    if (!batch.end_of_epoch()) continue;
    EXPECT_EQ(examples, 90 * ++epoch);
  }
  EXPECT_EQ(epoch, 3u);
}

TEST(OpenTest, EndlessEpochsGoOn) {
  const auto pipeline =
      Pipeline::Open(DataSpec("epochs: 0 take: 7", BATCH), {.storage = ImageStorage()});
  uint64_t epochs = 0;
  for (int i = 0; i < 200; ++i) {
    const std::optional<Batch> batch = pipeline->Next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->epoch(), epochs);
    epochs += batch->end_of_epoch();
  }
  EXPECT_EQ(epochs, 100u);
}

TEST(OpenTest, AFilterLeavesOutAndCountsNothingAsBad) {
  const PipelineSpec spec =
      DataSpec("epochs: 2",
               "stage { filter { function: 'even' } } stage { decode {} } "
               "stage { echo { factor: 2 } } stage { center_crop { height: 8 width: 8 } } " BATCH)
          .WithFilter("even", [](const Example& example) { return *example.label() % 2 == 0; });
  const auto pipeline = Pipeline::Open(spec, {.storage = ImageStorage()});
  std::map<std::string, int> uses;
  uint64_t epochs = 0;
  for (const Batch& batch : *pipeline) {
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(batch.labels()[i] % 2, 0);
      ++uses[batch.provenance(i).key];
    }
    epochs += batch.end_of_epoch();
  }
  EXPECT_THAT(uses, SizeIs(36));  // classes 0, 2 and 4 of five
  for (const auto& [key, count] : uses) EXPECT_EQ(count, 4) << key;
  EXPECT_EQ(epochs, 2u);
  EXPECT_EQ(pipeline->Stats().bad_count, 0u);
}

TEST(OpenTest, UnlabelledExamplesHaveLabelMinusOne) {
  auto storage = std::make_shared<FakeStorage>();
  storage->Put("data/a.jpg", "bytes");
  storage->Put("data/b.jpg", "other");
  const auto pipeline = Pipeline::Open(DataSpec("", BATCH), {.storage = storage});
  const std::optional<Batch> batch = pipeline->Next();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->labels(), ElementsAre(-1, -1));
}

const char* const kAdaptive = "echo { adaptive {} }";

internal::AdaptivePoint AdaptiveOf(const std::string& echo, bool of_batches = false) {
  const std::string batch = "stage { batch { size: 4 } }";
  const std::string stage = "stage { " + echo + " }";
  return *internal::MakePlan(PipelineSpec::FromText("source { uri: 'a' } " +
                                                    (of_batches ? batch + stage : stage + batch)))
              .adaptive()
              ->adaptive;
}

TEST(SpecTest, AnAdaptiveEchoNeedsNoSettings) {
  EXPECT_EQ(AdaptiveOf(kAdaptive).options.max_factor, 8u);
  EXPECT_EQ(AdaptiveOf(kAdaptive).options.spacing, 4u);
  EXPECT_EQ(AdaptiveOf(kAdaptive).options.shuffle_buffer, 16u);
  EXPECT_FALSE(AdaptiveOf(kAdaptive).low_water);
  EXPECT_EQ(AdaptiveOf("echo { adaptive {} spacing: 40 }").options.shuffle_buffer, 40u);
  EXPECT_EQ(AdaptiveOf(kAdaptive, true).options.shuffle_buffer, 4u);
  EXPECT_EQ(AdaptiveOf(kAdaptive, true).options.spacing, 2u);
  EXPECT_EQ(AdaptiveOf("echo { adaptive { low_water_ms: 1.5 } }").low_water,
            std::chrono::microseconds(1500));
}

TEST(SpecTest, WhatContradictsAnAdaptiveEchoIsNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"echo { factor: 2 adaptive {} }", "echo.factor"},
      {"echo { grouped: true adaptive {} }", "echo.grouped"},
      {"echo { drain_each_epoch: true adaptive {} }", "echo.drain_each_epoch"},
      {"echo { adaptive { max_factor: 0 } }", "echo.adaptive.max_factor"},
      {"echo { adaptive { max_factor: 1001 } }", "echo.adaptive.max_factor"},
      {"echo { adaptive { low_water_ms: -1 } }", "echo.adaptive.low_water_ms"},
      {"echo { adaptive { low_water_ms: nan } }", "echo.adaptive.low_water_ms"},
      {"echo { adaptive { max_age: 3 } }", "echo.adaptive.max_age"},
      {"echo { adaptive {} spacing: 3 shuffle_buffer: 2 }", "echo.spacing"},
      {"echo { adaptive {} } } stage { echo { adaptive {} }", "stage[1]: echo.adaptive"}};
  for (const auto& [stage, field] : wrong) {
    const auto error = ErrorOf([&] { AdaptiveOf(stage); });
    ASSERT_TRUE(error) << stage;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->what(), HasSubstr(field));
  }
}

}  // namespace
}  // namespace echopipe
