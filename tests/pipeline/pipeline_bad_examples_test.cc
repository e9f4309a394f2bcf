// Folders with files that are no pictures, or only almost.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JpegOptions;
using testing::MakeJpeg;
using testing::MakePicture;
using testing::MakePng;
using ::testing::Not;
using ::testing::SizeIs;
using testing::TempFolder;
using ::testing::UnorderedElementsAre;

// The size that a JPEG's frame header tells, replaced.
std::string WithSize(std::string jpeg, uint16_t width, uint16_t height) {
  const size_t frame = jpeg.find("\xFF\xC0");
  for (const auto& [offset, value] : {std::pair(5, height), std::pair(7, width)}) {
    jpeg[frame + static_cast<size_t>(offset)] = static_cast<char>(value >> 8);
    jpeg[frame + static_cast<size_t>(offset) + 1] = static_cast<char>(value & 0xFF);
  }
  return jpeg;
}

/// 20 good photos, three unusual good ones and four bad files, in three classes.
class MixedFolder {
 public:
  MixedFolder() {
    for (int i = 0; i < 20; ++i) {
      folder_.Write("a/good-" + std::to_string(i) + ".jpg",
                    MakeJpeg(MakePicture(40, 30, 3, static_cast<uint32_t>(i))));
    }
    folder_.Write("b/cmyk.jpg", MakeJpeg(40, 30, {.color = JpegOptions::Color::kCmyk}));
    folder_.Write("b/deep.png",
                  MakePng(40, 30, std::vector<uint8_t>(40 * 30 * 3 * 2, 77), {.bit_depth = 16}));
    folder_.Write("b/really-a-png.jpg", MakePng(MakePicture(40, 30, 3)));
    const std::string whole = MakeJpeg(MakePicture(40, 30, 3, 99));
    folder_.Write("c/truncated.jpg", whole.substr(0, whole.size() / 2));
    folder_.Write("c/empty.jpg", "");
    folder_.Write("c/huge.jpg", WithSize(whole, 20000, 20000));
    folder_.Write("c/text.jpg", "This is not a picture at all.\n");
  }
  std::string path() const { return folder_.path().string(); }

 private:
  TempFolder folder_;
};

PipelineSpec Spec(const std::string& folder, const std::string& source, const std::string& stages,
                  const std::string& policy) {
  return PipelineSpec::FromText("seed: 3 source { uri: '" + folder + "' " + source + " } " +
                                stages + " bad_examples { " + policy + " }");
}

const char* const kStages =
    "stage { decode {} } stage { random_resized_crop { height: 8 width: 8 } } "
    "stage { batch { size: 5 } }";

std::map<std::string, int> CountKeys(Pipeline& pipeline) {
  std::map<std::string, int> keys;
  for (const Batch& batch : pipeline) {
    for (size_t i = 0; i < batch.size(); ++i) ++keys[batch.provenance(i).key];
  }
  return keys;
}

struct Variant {
  const char* name;
  const char* source;
  const char* stages;
  int uses;
};

class PipelineSkipping : public ::testing::TestWithParam<Variant> {};

TEST_P(PipelineSkipping, BadFilesAreLeftOutCountedOnceAndNamedWithStageAndKind) {
  const MixedFolder folder;
  const auto pipeline =
      Pipeline::Open(Spec(folder.path(), GetParam().source, GetParam().stages, "policy: SKIP"));
  const std::map<std::string, int> keys = CountKeys(*pipeline);
  EXPECT_THAT(keys, SizeIs(23));
  for (const auto& [key, count] : keys) {
    EXPECT_EQ(count, GetParam().uses) << key;
    EXPECT_FALSE(key.starts_with("c/")) << key;
  }
  const PipelineStats stats = pipeline->Stats();
  EXPECT_EQ(stats.bad_count, 4u);
  std::vector<std::tuple<std::string, std::string, ErrorCode>> bad;
  for (const BadExample& example : stats.bad_examples) {
    bad.emplace_back(example.key, example.stage, example.error.code());
    EXPECT_EQ(example.uri, folder.path() + "/" + example.key);
  }
  EXPECT_THAT(bad,
              UnorderedElementsAre(std::tuple("c/truncated.jpg", "decode", ErrorCode::kTruncated),
                                   std::tuple("c/empty.jpg", "source", ErrorCode::kEmpty),
                                   std::tuple("c/huge.jpg", "decode", ErrorCode::kLimitExceeded),
                                   std::tuple("c/text.jpg", "decode", ErrorCode::kUnsupported)));
}

INSTANTIATE_TEST_SUITE_P(
    Variants, PipelineSkipping,
    ::testing::Values(
        Variant{"Once", "", kStages, 1}, Variant{"ThreeEpochs", "epochs: 3", kStages, 3},
        Variant{"Shuffled", "shuffle { full {} }", kStages, 1},
        Variant{"EchoedBeforeDecode", "shuffle { full {} }",
                "stage { echo { factor: 3 } } stage { decode {} } "
                "stage { random_resized_crop { height: 8 width: 8 } } stage { batch { size: 5 } }",
                3},
        Variant{"EchoedAfterDecode", "shuffle { full {} }",
                "stage { decode {} } stage { echo { factor: 3 } } "
                "stage { random_resized_crop { height: 8 width: 8 } } stage { batch { size: 5 } }",
                3},
        Variant{"EchoedTwice", "shuffle { full {} }",
                "stage { echo { factor: 2 } } stage { decode {} } stage { echo { factor: 2 } } "
                "stage { center_crop { height: 8 width: 8 } } stage { batch { size: 5 } }",
                4}),
    [](const auto& variant) { return variant.param.name; });

TEST(PipelineBadExamplesTest, UnderFailTheFirstBadFileEndsItWithItsName) {
  const MixedFolder folder;
  // In the order of the listing c/empty.jpg is the first.
  const auto pipeline = Pipeline::Open(Spec(folder.path(), "", kStages, "policy: FAIL"));
  std::map<std::string, int> keys;
  try {
    while (const std::optional<Batch> batch = pipeline->Next()) {
      for (size_t i = 0; i < batch->size(); ++i) ++keys[batch->provenance(i).key];
    }
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEmpty);
    EXPECT_THAT(error.what(), HasSubstr(folder.path() + "/c/empty.jpg"));
  }
  EXPECT_THAT(keys, SizeIs(23)) << "what came before is delivered";
}

class PipelineFailing : public ::testing::TestWithParam<std::pair<const char*, ErrorCode>> {};

TEST_P(PipelineFailing, EachKindOfBadFileIsNamedOnce) {
  const auto& [name, code] = GetParam();
  const MixedFolder mixed;
  const TempFolder folder;
  folder.Write("c/before.jpg", MakeJpeg(40, 30));
  const std::string path =
      folder.Write("c/" + std::string(name), testing::ReadFile(mixed.path() + "/c/" + name));
  const auto pipeline = Pipeline::Open(Spec(folder.path().string(), "", kStages, "policy: FAIL"));
  try {
    while (pipeline->Next()) {
    }
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    const std::string what = error.what();
    const size_t first = what.find(path);
    ASSERT_NE(first, std::string::npos) << what;
    EXPECT_EQ(what.find(path, first + 1), std::string::npos) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineFailing,
                         ::testing::Values(std::pair("truncated.jpg", ErrorCode::kTruncated),
                                           std::pair("empty.jpg", ErrorCode::kEmpty),
                                           std::pair("huge.jpg", ErrorCode::kLimitExceeded),
                                           std::pair("text.jpg", ErrorCode::kUnsupported)),
                         [](const auto& param) {
                           const std::string name = param.param.first;
                           return name.substr(0, name.find('.'));
                         });

TEST(PipelineBadExamplesTest, TheBudgetIsInRecordsHoweverOftenTheyAreEchoed) {
  const MixedFolder folder;
  const std::string stages =
      "stage { echo { factor: 5 } } stage { decode {} } stage { center_crop { height: 8 width: 8 } "
      "} stage { batch { size: 5 } }";
  const auto enough =
      Pipeline::Open(Spec(folder.path(), "epochs: 2", stages, "policy: SKIP max_count: 4"));
  EXPECT_THAT(CountKeys(*enough), SizeIs(23));
  const auto too_few =
      Pipeline::Open(Spec(folder.path(), "epochs: 2", stages, "policy: SKIP max_count: 3"));
  try {
    CountKeys(*too_few);
    FAIL() << "the end came without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimitExceeded);
    EXPECT_THAT(error.what(), HasSubstr("too many bad examples"));
    EXPECT_THAT(error.what(), HasSubstr("got 4 in "));
    EXPECT_THAT(error.what(), HasSubstr("c/"));
  }
}

/// The error that ends a pipeline, and how many examples came before it.
std::pair<std::optional<Error>, uint64_t> EndOf(Pipeline& pipeline) {
  uint64_t examples = 0;
  try {
    for (const Batch& batch : pipeline) examples += batch.size();
    return {std::nullopt, examples};
  } catch (const Error& error) {
    return {error, examples};
  }
}

TEST(PipelineBadExamplesTest, AnEpochWithoutAGoodFileEndsThePipelineWithTheReason) {
  const TempFolder folder;
  for (int i = 0; i < 5; ++i) folder.Write("c/" + std::to_string(i) + ".jpg", "no picture");
  for (const std::string source : {"epochs: 1", "epochs: 0"}) {
    const auto pipeline =
        Pipeline::Open(Spec(folder.path().string(), source, kStages, "policy: SKIP"));
    const auto [error, examples] = EndOf(*pipeline);
    ASSERT_TRUE(error) << source;
    EXPECT_EQ(error->code(), ErrorCode::kEmpty);
    EXPECT_THAT(error->what(), HasSubstr("of 5, 5 were bad and 0 filtered out"));
    EXPECT_THAT(error->what(), HasSubstr("c/4.jpg"));
    EXPECT_EQ(examples, 0u);
    EXPECT_EQ(pipeline->Stats().bad_count, 5u);
  }
}

TEST(PipelineBadExamplesTest, AFractionIsCheckedOfTheRecordsThereAreAtEachEpochsEnd) {
  const MixedFolder folder;  // four bad ones of 27, which is 0.148
  const auto end = [&](const std::string& source, const std::string& fraction) {
    return EndOf(*Pipeline::Open(
        Spec(folder.path(), source, kStages, "policy: SKIP max_fraction: " + fraction)));
  };
  EXPECT_FALSE(end("epochs: 2", "0.15").first);
  for (const std::string source : {"epochs: 1", "epochs: 2", "epochs: 0"}) {
    const auto [error, examples] = end(source, "0.14");
    ASSERT_TRUE(error) << source;
    EXPECT_EQ(error->code(), ErrorCode::kLimitExceeded);
    EXPECT_THAT(error->what(), HasSubstr("got 4 in 27 records"));
    EXPECT_EQ(examples, 23u) << "what came before it is delivered";
  }
}

// Echoes cross the epochs' borders, and a record that is bad is so in each epoch.
TEST(PipelineBadExamplesTest, BehindAnEchoTheFractionIsThatOfTheRecordsToo) {
  const MixedFolder folder;  // 4 bad ones in 27
  for (const auto& [fraction, fails] : {std::pair("0.14", true), std::pair("0.3", false)}) {
    const auto pipeline = Pipeline::Open(
        Spec(folder.path(), "epochs: 3",
             "stage { echo { factor: 2 shuffle_buffer: 4 spacing: 0 } }" + std::string(kStages),
             std::string("policy: SKIP max_fraction: ") + fraction));
    EXPECT_EQ(EndOf(*pipeline).first.has_value(), fails) << fraction;
  }
}

TEST(PipelineBadExamplesTest, WithinAnEpochFewRecordsDoNotMakeAFraction) {
  const TempFolder folder;  // the first of ten is bad
  folder.Write("c/0.jpg", "no picture");
  for (int i = 1; i < 10; ++i) {
    folder.Write("c/" + std::to_string(i) + ".jpg", MakeJpeg(MakePicture(40, 30, 3)));
  }
  const auto pipeline =
      Pipeline::Open(Spec(folder.path().string(), "", kStages, "policy: SKIP max_fraction: 0.1"));
  const auto [error, examples] = EndOf(*pipeline);
  EXPECT_FALSE(error);
  EXPECT_EQ(examples, 9u);
}

TEST(PipelineBadExamplesTest, WhatIsSkippedIsLogged) {
  const MixedFolder folder;
  std::vector<std::string> messages;
  const auto pipeline = Pipeline::Open(Spec(folder.path(), "epochs: 2", kStages, "policy: SKIP"),
                                       {.log = [&](std::string_view message) {
                                         if (message.starts_with("skipped "))
                                           messages.emplace_back(message);
                                       }});
  CountKeys(*pipeline);
  EXPECT_THAT(messages, SizeIs(4));
  EXPECT_THAT(messages, Contains(HasSubstr("c/huge.jpg")));
  for (const std::string& message : messages) {
    EXPECT_EQ(message.find(".jpg"), message.rfind(".jpg")) << "named twice: " << message;
  }
}

TEST(PipelineBadExamplesTest, EachBadRecordIsToldOnceInTheOrderOfTheStream) {
  const MixedFolder folder;
  std::vector<std::string> told;
  const auto pipeline = Pipeline::Open(
      Spec(folder.path(), "epochs: 2",
           "stage { echo { factor: 2 shuffle_buffer: 4 spacing: 0 } }" + std::string(kStages),
           "policy: SKIP"),
      {.on_bad_example = [&](const BadExample& bad) { told.push_back(bad.uri + bad.stage); }});
  CountKeys(*pipeline);
  std::vector<std::string> named;
  for (const BadExample& bad : pipeline->Stats().bad_examples) named.push_back(bad.uri + bad.stage);
  EXPECT_THAT(told, SizeIs(4));
  EXPECT_EQ(told, named);
}

// ---- Truncated, and accepted ----

/// Ten photos; of two of them (and of a third, too much) the end is missing.
class CutFolder {
 public:
  CutFolder() {
    for (int i = 0; i < 10; ++i) {
      const std::string jpeg = MakeJpeg(MakePicture(40, 64, 3, static_cast<uint32_t>(i)));
      const size_t keep = i == 3 || i == 7 ? jpeg.size() * 2 / 3 : i == 8 ? 100 : jpeg.size();
      folder_.Write("c/" + std::to_string(i) + ".jpg", jpeg.substr(0, keep));
    }
  }
  std::string path() const { return folder_.path().string(); }

 private:
  TempFolder folder_;
};

const std::string kAccept = "stage { decode { accept_truncated: true } }";
const std::string kCropAndBatch =
    "stage { random_resized_crop { height: 8 width: 8 } } stage { batch { size: 5 } }";
const std::string kEcho = "stage { echo { factor: 3 shuffle_buffer: 4 spacing: 2 } }";

/// Keys of the examples that say of themselves that they are partial.
std::map<std::string, int> PartialKeys(Pipeline& pipeline) {
  std::map<std::string, int> keys;
  for (const Batch& batch : pipeline) {
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch.provenance(i).partial) ++keys[batch.provenance(i).key];
    }
  }
  return keys;
}

class PipelineAcceptingTruncated : public ::testing::TestWithParam<std::pair<std::string, int>> {};

TEST_P(PipelineAcceptingTruncated, TruncatedRecordsAreUsedCountedOnceNamedOnceAndNotBad) {
  const CutFolder folder;
  const auto& [stages, uses] = GetParam();
  std::vector<std::string> logged;
  std::vector<std::string> bad;
  const auto pipeline = Pipeline::Open(
      Spec(folder.path(), "epochs: 2", stages, "policy: SKIP"),
      {.log =
           [&](std::string_view message) {
             if (message.starts_with("truncated, ")) logged.emplace_back(message);
           },
       .on_bad_example = [&](const BadExample& example) { bad.push_back(example.key); }});
  const std::map<std::string, int> partial = PartialKeys(*pipeline);
  EXPECT_EQ(partial, (std::map<std::string, int>{{"c/3.jpg", uses}, {"c/7.jpg", uses}}));
  EXPECT_EQ(pipeline->Stats().partial_images, 2u);
  EXPECT_EQ(pipeline->Stats().bad_count, 1u);
  EXPECT_THAT(bad, ::testing::ElementsAre("c/8.jpg"));
  EXPECT_THAT(logged, SizeIs(2));
  EXPECT_THAT(logged, Contains(HasSubstr(folder.path() + "/c/3.jpg")));
}

INSTANTIATE_TEST_SUITE_P(Positions, PipelineAcceptingTruncated,
                         ::testing::Values(std::pair(kAccept + kCropAndBatch, 2),
                                           std::pair(kEcho + kAccept + kCropAndBatch, 6),
                                           std::pair(kAccept + kEcho + kCropAndBatch, 6)));

TEST(PipelineBadExamplesTest, TruncatedRecordsAreBadUnlessTheyAreAccepted) {
  const CutFolder folder;
  const auto pipeline = Pipeline::Open(
      Spec(folder.path(), "", "stage { decode {} }" + kCropAndBatch, "policy: SKIP"));
  EXPECT_THAT(PartialKeys(*pipeline), IsEmpty());
  EXPECT_EQ(pipeline->Stats().partial_images, 0u);
  EXPECT_EQ(pipeline->Stats().bad_count, 3u);
}

// A crop right behind decode has its box decoded alone; a map in between keeps them apart.
TEST(PipelineBadExamplesTest, TruncatedPicturesAreTheSameByBoxesAndWhole) {
  const CutFolder folder;
  const auto pixels = [&](const std::string& decode) {
    std::vector<uint8_t> all;
    const PipelineSpec spec =
        Spec(folder.path(), "epochs: 5",
             decode + "stage { random_crop { height: 20 width: 20 } } stage { batch { size: 5 } }",
             "policy: SKIP");
    const auto pipeline = Pipeline::Open(spec.WithMap("nothing", [](Example&) {}));
    for (const Batch& batch : *pipeline) {
      const auto bytes = batch.Get("image").bytes();
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  };
  // The crop is the third stage in both, as that names its random numbers.
  const std::string nothing = "stage { map { function: 'nothing' } }";
  const std::vector<uint8_t> fused = pixels(nothing + kAccept);
  EXPECT_THAT(fused, SizeIs(5 * 9 * 20 * 20 * 3));
  EXPECT_EQ(fused, pixels(kAccept + nothing));
}

TEST(PipelineBadExamplesTest, ARestoredPipelineCountsWhatItUsesItself) {
  const CutFolder folder;
  const PipelineSpec spec = Spec(folder.path(), "", kAccept + kCropAndBatch, "policy: SKIP");
  const auto first = Pipeline::Open(spec);
  ASSERT_TRUE(first->Next());  // with the first of the two
  const auto second = Pipeline::Restore(spec, first->Checkpoint());
  EXPECT_THAT(PartialKeys(*second), SizeIs(1));
  EXPECT_EQ(second->Stats().partial_images, 1u);
  EXPECT_EQ(second->Stats().bad_count, 1u);
  EXPECT_THAT(PartialKeys(*first), SizeIs(1));
  EXPECT_EQ(first->Stats().partial_images, 2u);
}

TEST(PipelineBadExamplesTest, AThrowingLogEndsThePipelineWithAnError) {
  const MixedFolder folder;
  const auto pipeline = Pipeline::Open(Spec(folder.path(), "", kStages, "policy: SKIP"),
                                       {.log = [](std::string_view message) {
                                         if (message.starts_with("skipped ")) throw 42;
                                       }});
  EXPECT_THROW(CountKeys(*pipeline), Error);
}

}  // namespace
}  // namespace echopipe
