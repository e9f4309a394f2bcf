// What a whole pipeline over real files delivers: how often, in which order, on which threads.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <echopipe/base/random.h>
#include <echopipe/echo/echo_factor.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/batches_by_step.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using testing::BatchesByStep;
using testing::kNoTestData;
using testing::LabelIn;
using ::testing::SizeIs;
using testing::TempFolder;
using testing::TestData;

constexpr int kImages = 60;
constexpr int kClasses = 5;
constexpr uint64_t kBatch = 8;

/// Where the echo point stands among the stages of Spec().
enum class Place {
  kBeforeDecode,
  kAfterDecode,
  kAfterCrop,
  kAfterFlip,
  kAfterNormalize,
  kAfterBatch
};
constexpr Place kPlaces[] = {Place::kBeforeDecode, Place::kAfterDecode,    Place::kAfterCrop,
                             Place::kAfterFlip,    Place::kAfterNormalize, Place::kAfterBatch};

std::string NameOf(Place place) {
  switch (place) {
    case Place::kBeforeDecode:
      return "BeforeDecode";
    case Place::kAfterDecode:
      return "AfterDecode";
    case Place::kAfterCrop:
      return "AfterCrop";
    case Place::kAfterFlip:
      return "AfterFlip";
    case Place::kAfterNormalize:
      return "AfterNormalize";
    case Place::kAfterBatch:
      return "AfterBatch";
  }
  return "";
}

PipelineSpec Spec(const std::string& source, Place place, const std::string& factor) {
  const std::vector<std::string> stages = {"decode {}",
                                           "random_resized_crop { height: 12 width: 16 }",
                                           "random_flip {}", "normalize {}", "batch { size: 8 }"};
  std::string text = "seed: 11 source { " + source + " } stage { map { function: 'work' } }";
  for (size_t i = 0; i <= stages.size(); ++i) {
    if (i == static_cast<size_t>(place)) text += " stage { echo { factor: " + factor + " } }";
    if (i < stages.size()) text += " stage { " + stages[i] + " }";
  }
  return PipelineSpec::FromText(text).WithMap("work", [](Example&) {});
}

std::string HashOf(const PipelineSpec& spec, const RuntimeOptions& options) {
  BatchHash hash;
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options);
  for (const Batch& batch : *pipeline) hash.Add(batch);
  return hash.Hex();
}

/// Images in a folder and in a shard, made once for all tests.
class Images {
 public:
  Images() {
    testing::WriteImages(folder_, kImages, kClasses);
    shard_ = shards_.Write("images.tar", testing::MakeImageTar(kImages, kClasses));
  }
  std::string Folder() const {
    return "uri: '" + folder_.path().string() + "' shuffle { full {} } ";
  }
  std::string Shard() const { return "uri: '" + shard_ + "' shuffle { window: 16 } "; }

 private:
  TempFolder folder_;
  TempFolder shards_;
  std::string shard_;
};

class PipelineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { images_ = std::make_unique<Images>(); }
  static void TearDownTestSuite() { images_.reset(); }
  static std::string Folder() { return images_->Folder(); }
  static std::string Shard() { return images_->Shard(); }

 private:
  static std::unique_ptr<Images> images_;
};
std::unique_ptr<Images> PipelineTest::images_;

using ItemName = std::pair<uint64_t, uint64_t>;  // epoch, ordinal

struct Uses {
  std::map<ItemName, std::multiset<uint32_t>> of_item;  // the uses at the echo point
  std::map<ItemName, std::string> keys;
  uint64_t wrong_labels = 0;
  uint64_t epoch_ends = 0;
};

Uses CountUses(const PipelineSpec& spec) {
  Uses uses;
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, {.threads = 2});
  for (const Batch& batch : *pipeline) {
    for (size_t i = 0; i < batch.size(); ++i) {
      const Provenance provenance = batch.provenance(i);
      const ItemName item(provenance.identity.epoch, provenance.identity.ordinal);
      uses.of_item[item].insert(provenance.identity.uses().back());
      uses.wrong_labels += batch.labels()[i] != LabelIn(provenance.key);
      const auto [known, is_new] = uses.keys.emplace(item, provenance.key);
      EXPECT_EQ(known->second, provenance.key);
    }
    uses.epoch_ends += batch.end_of_epoch();
  }
  return uses;
}

std::multiset<uint32_t> FirstUses(uint64_t count) {
  std::multiset<uint32_t> uses;
  for (uint64_t use = 0; use < count; ++use) uses.insert(static_cast<uint32_t>(use));
  return uses;
}

class PipelineUses : public PipelineTest,
                     public ::testing::WithParamInterface<std::tuple<Place, const char*, bool>> {};

TEST_P(PipelineUses, EachEpochHoldsEveryExampleWithItsLabelAndEachItemHasItsShareOfUses) {
  const auto& [place, factor_text, sharded] = GetParam();
  const EchoFactor factor(std::stod(factor_text));
  const std::string source = (sharded ? Shard() : Folder()) + "epochs: 2";
  const Uses uses = CountUses(Spec(source, place, factor_text));

  EXPECT_EQ(uses.wrong_labels, 0u);
  EXPECT_EQ(uses.epoch_ends, 2u);
  EXPECT_THAT(uses.of_item, SizeIs(2 * kImages));
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<std::string> keys;
    for (uint64_t i = 0; i < kImages; ++i) keys.insert(uses.keys.at({epoch, i}));
    EXPECT_THAT(keys, SizeIs(kImages)) << "epoch " << epoch;
  }
  // Batches end with their epoch: eight an epoch, of which the last is smaller.
  const uint64_t batches = (kImages + kBatch - 1) / kBatch;
  for (const auto& [item, seen] : uses.of_item) {
    const auto [epoch, ordinal] = item;
    const uint64_t admission = place == Place::kAfterBatch ? epoch * batches + ordinal / kBatch
                                                           : epoch * kImages + ordinal;
    EXPECT_EQ(seen, FirstUses(factor.Share(admission + 1))) << epoch << "." << ordinal;
  }
}

INSTANTIATE_TEST_SUITE_P(Places, PipelineUses,
                         ::testing::Combine(::testing::ValuesIn(kPlaces),
                                            ::testing::Values("1", "1.15", "1.5", "2", "5"),
                                            ::testing::Bool()),
                         [](const auto& param) {
                           std::string factor = std::get<1>(param.param);
                           std::ranges::replace(factor, '.', '_');
                           return NameOf(std::get<0>(param.param)) + "Times" + factor +
                                  (std::get<2>(param.param) ? "Shard" : "Folder");
                         });

/// Runs the rest of a scope's threads on one CPU.
class OnOneCpu {
 public:
  OnOneCpu() {
    EXPECT_EQ(sched_getaffinity(0, sizeof(all_), &all_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all_)) ++cpu;
    CPU_SET(cpu, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OnOneCpu() { sched_setaffinity(0, sizeof(all_), &all_); }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;

 private:
  cpu_set_t all_;
};

/// Takes a pseudo-random time of 0 to 5 ms, the example's own, once `threads` threads have met
/// here.
class SlowWork {
 public:
  explicit SlowWork(size_t threads) : threads_(threads) {}

  MapFunction Function() {
    return [this](Example& example) {
      Meet();
      const Identity& identity = example.provenance().identity;
      const std::array<uint64_t, 2> words{identity.epoch, identity.ordinal};
      RandomStream random(HashToKey(words));
      std::this_thread::sleep_for(std::chrono::microseconds(random.Below(5000)));
    };
  }
  size_t threads_seen() const { return seen_.size(); }

 private:
  void Meet() {
    std::unique_lock lock(mutex_);
    seen_.insert(std::this_thread::get_id());
    met_.notify_all();
    // So long only if they are fewer, and then the test fails.
    met_.wait_for(lock, std::chrono::seconds(20), [this] { return seen_.size() >= threads_; });
  }

  const size_t threads_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::set<std::thread::id> seen_;
};

/// The hash of what eight tasks of the program's own, waiting in an arena of theirs, are given.
std::string HashOfEightWaitingTasks(const PipelineSpec& spec) {
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec);
  std::mutex mutex;
  BatchesByStep batches;
  tbb::task_arena arena(8);
  arena.execute([&] {
    tbb::task_group group;
    for (int task = 0; task < 8; ++task) {
      group.run([&] {
        while (std::optional<Batch> batch = pipeline->Next()) {
          const std::lock_guard lock(mutex);
          batches.Add(*std::move(batch));
        }
      });
    }
    group.wait();
  });
  return batches.Hash();
}

class PipelineOrder : public PipelineTest,
                      public ::testing::WithParamInterface<std::tuple<Place, bool>> {};

TEST_P(PipelineOrder, IsTheSameHoweverItRuns) {
  const auto& [place, sharded] = GetParam();
  const PipelineSpec spec = Spec((sharded ? Shard() : Folder()) + "epochs: 2", place, "1.5");
  const std::string expected = HashOf(spec, {.threads = 1});
  EXPECT_EQ(HashOf(spec, {.threads = 2}), expected);
  EXPECT_EQ(HashOf(spec, {.threads = 8}), expected);
  EXPECT_EQ(HashOf(spec, {.threads = 3, .reads_in_flight = 1, .prefetch = 7}), expected);
  {
    const OnOneCpu scope;
    EXPECT_EQ(HashOf(spec, {}), expected) << "on one CPU";
  }
  {
    const tbb::global_control scope(tbb::global_control::max_allowed_parallelism, 1);
    EXPECT_EQ(HashOf(spec, {}), expected) << "with one thread allowed";
    EXPECT_EQ(HashOf(spec, {.threads = 8}), expected) << "with one thread allowed, eight asked for";
  }
  EXPECT_EQ(HashOfEightWaitingTasks(spec), expected);
}

TEST_P(PipelineOrder, IsTheSameHoweverLongAStageTakes) {
  const auto& [place, sharded] = GetParam();
  const PipelineSpec spec = Spec(sharded ? Shard() : Folder(), place, "2");
  const std::string expected = HashOf(spec, {.threads = 1});
  for (const size_t threads : {2, 8}) {
    SlowWork slow(threads);
    const PipelineSpec slowed = PipelineSpec(spec.message()).WithMap("work", slow.Function());
    EXPECT_EQ(HashOf(slowed, {.threads = static_cast<int>(threads)}), expected);
    EXPECT_GE(slow.threads_seen(), threads);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, PipelineOrder,
                         ::testing::Combine(::testing::ValuesIn(kPlaces), ::testing::Bool()),
                         [](const auto& param) {
                           return NameOf(std::get<0>(param.param)) +
                                  (std::get<1>(param.param) ? "Shard" : "Folder");
                         });

// Each with an echo behind the decoder, so that its random numbers are drawn anew for every use.
class PipelineAugmentations : public PipelineTest,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(PipelineAugmentations, AreTheSameOnAnyThreadsAndOthersForEveryUse) {
  const PipelineSpec spec = PipelineSpec::FromText(
      "seed: 3 source { " + Folder() + "} stage { decode {} } stage { echo { factor: 3 } } " +
      "stage { resize { height: 20 width: 24 antialias: true } } stage { " + GetParam() +
      " } stage { normalize { type: FLOAT16 } } stage { batch { size: 8 } }");
  std::map<ItemName, std::set<std::string>> results;
  BatchHash hash;
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, {.threads = 1});
  for (const Batch& batch : *pipeline) {
    hash.Add(batch);
    const Tensor& images = batch.Get("image");
    ASSERT_EQ(images.dtype(), DType::kFloat16);
    const size_t size = images.bytes().size() / batch.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      const Identity identity = batch.provenance(i).identity;
      const auto bytes = images.bytes().subspan(i * size, size);
      results[{identity.epoch, identity.ordinal}].insert({bytes.begin(), bytes.end()});
    }
  }
  EXPECT_THAT(results, SizeIs(kImages));
  const auto has_several = [](const auto& result) { return result.second.size() > 1; };
  EXPECT_GT(std::ranges::count_if(results, has_several), kImages / 2);
  EXPECT_EQ(HashOf(spec, {.threads = 8}), hash.Hex());
  EXPECT_EQ(HashOf(spec, {.threads = 3, .reads_in_flight = 1, .prefetch = 7}), hash.Hex());
}

INSTANTIATE_TEST_SUITE_P(
    All, PipelineAugmentations,
    ::testing::Values("color_jitter { brightness: 0.4 contrast: 0.4 saturation: 0.4 hue: 0.1 }",
                      "random_grayscale { probability: 0.5 }", "gaussian_blur { kernel_size: 7 }",
                      "random_erasing { fill: NOISE }",
                      "random_rotation { degrees: 20 interpolation: BILINEAR }",
                      "random_affine { degrees: 5 translate_x: 0.1 shear: 4 }",
                      "random_autocontrast {}", "random_equalize {}",
                      "random_posterize { bits: 3 }", "random_solarize { threshold: 99 }",
                      "random_invert {}", "random_adjust_sharpness { factor: 2 }",
                      "rand_augment {}", "trivial_augment_wide {}"));

TEST_F(PipelineTest, AnotherSeedGivesAnotherOrderAndOtherPixels) {
  const std::string text = " source { " + Folder() +
                           "} stage { decode {} } stage { random_resized_crop { height: 8 width: 8 "
                           "} } stage { batch { size: 60 } }";
  const auto first = Pipeline::Open(PipelineSpec::FromText("seed: 1" + text))->Next();
  const auto second = Pipeline::Open(PipelineSpec::FromText("seed: 2" + text))->Next();
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < 60; ++i) place[second->provenance(i).key] = i;
  size_t moved = 0;
  size_t same_pixels = 0;
  const auto pixels = [](const Batch& batch, size_t i) {
    return batch.Get("image").bytes().subspan(i * 8 * 8 * 3, 8 * 8 * 3);
  };
  for (size_t i = 0; i < 60; ++i) {
    const size_t other = place.at(first->provenance(i).key);
    moved += other != i;
    same_pixels += std::ranges::equal(pixels(*first, i), pixels(*second, other));
  }
  EXPECT_GT(moved, 40u);
  EXPECT_LT(same_pixels, 3u);
}

/// The bytes of each example's image, by its identity.
using PixelsOf = std::map<std::vector<uint64_t>, std::string>;
PixelsOf PixelsByIdentity(const PipelineSpec& spec) {
  PixelsOf pixels;
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec);
  for (const Batch& batch : *pipeline) {
    const std::span<const uint8_t> bytes = batch.Get("image").bytes();
    const size_t size = bytes.size() / batch.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      const Identity identity = batch.provenance(i).identity;
      std::vector<uint64_t> name{identity.epoch, identity.ordinal};
      name.insert(name.end(), identity.uses().begin(), identity.uses().end());
      const auto part = bytes.subspan(i * size, size);
      EXPECT_TRUE(pixels.emplace(name, std::string(part.begin(), part.end())).second)
          << "an identity came twice";
    }
  }
  return pixels;
}

std::string Mirrored(const std::string& pixels, size_t width) {
  std::string out(pixels.size(), 0);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % width;
    out[i] = pixels[i - 3 * x + 3 * (width - 1 - x)];
  }
  return out;
}

struct Likeness {
  int same = 0;
  int mirrored = 0;
  int other = 0;
};

/// How alike two uses of each of the 60 items are; the uses are given at every echo point.
Likeness Compare(const PixelsOf& pixels, const std::vector<uint64_t>& a,
                 const std::vector<uint64_t>& b) {
  Likeness likeness;
  for (uint64_t ordinal = 0; ordinal < kImages; ++ordinal) {
    std::vector<uint64_t> name_a{0, ordinal};
    name_a.insert(name_a.end(), a.begin(), a.end());
    std::vector<uint64_t> name_b{0, ordinal};
    name_b.insert(name_b.end(), b.begin(), b.end());
    const std::string& of_a = pixels.at(name_a);
    const std::string& of_b = pixels.at(name_b);
    if (of_a == of_b) {
      ++likeness.same;
    } else if (Mirrored(of_a, 16) == of_b) {
      ++likeness.mirrored;
    } else {
      ++likeness.other;
    }
  }
  return likeness;
}

PipelineSpec CropSpec(const std::string& source, const std::string& before_decode,
                      const std::string& after_decode, const std::string& between,
                      const std::string& after) {
  const auto echo = [](const std::string& factor) {
    return factor.empty() ? "" : "stage { echo { factor: " + factor + " } } ";
  };
  return PipelineSpec::FromText(
      "seed: 3 source { " + source + "} " + echo(before_decode) + "stage { decode {} } " +
      echo(after_decode) + "stage { random_resized_crop { height: 12 width: 16 } } " +
      echo(between) + "stage { random_flip {} } " + echo(after) + "stage { batch { size: 8 } }");
}

TEST_F(PipelineTest, AnEchoBeforeTheCropIsCroppedAnew) {
  for (const PipelineSpec& spec :
       {CropSpec(Folder(), "2", "", "", ""), CropSpec(Folder(), "", "2", "", "")}) {
    const auto pixels = PixelsByIdentity(spec);
    EXPECT_THAT(pixels, SizeIs(2 * kImages));
    EXPECT_EQ(Compare(pixels, {0}, {1}).other, kImages);
  }
}

TEST_F(PipelineTest, AnEchoBetweenCropAndFlipKeepsTheCropAndIsFlippedAnew) {
  const auto pixels = PixelsByIdentity(CropSpec(Folder(), "", "", "2", ""));
  EXPECT_THAT(pixels, SizeIs(2 * kImages));
  const Likeness likeness = Compare(pixels, {0}, {1});
  EXPECT_EQ(likeness.other, 0);
  EXPECT_GT(likeness.same, 15);
  EXPECT_GT(likeness.mirrored, 15);
}

TEST_F(PipelineTest, AnEchoBehindTheAugmentationsRepeatsThePixels) {
  const auto pixels = PixelsByIdentity(CropSpec(Folder(), "", "", "", "2"));
  EXPECT_THAT(pixels, SizeIs(2 * kImages));
  EXPECT_EQ(Compare(pixels, {0}, {1}).same, kImages);
}

TEST_F(PipelineTest, WithTwoEchoPointsEachUseIsNamedByBothAndChangesWhatFollowsIt) {
  const auto pixels = PixelsByIdentity(CropSpec(Folder(), "", "2", "3", ""));
  EXPECT_THAT(pixels, SizeIs(6 * kImages));
  for (uint64_t outer = 0; outer < 2; ++outer) {
    for (uint64_t inner = 1; inner < 3; ++inner) {
      const Likeness likeness = Compare(pixels, {outer, 0}, {outer, inner});
      EXPECT_EQ(likeness.other, 0) << outer << inner;
      EXPECT_GT(likeness.same, 15);
      EXPECT_GT(likeness.mirrored, 15);
    }
  }
  for (uint64_t inner = 0; inner < 3; ++inner) {
    EXPECT_EQ(Compare(pixels, {0, inner}, {1, inner}).other, kImages) << inner;
  }
}

TEST_F(PipelineTest, AnEpochIsAugmentedAnewButCropsAreNotAlikeEither) {
  const auto pixels = PixelsByIdentity(CropSpec(Folder() + "epochs: 2 ", "", "", "", ""));
  std::set<std::string> distinct;
  for (const auto& [name, bytes] : pixels) distinct.insert(bytes);
  EXPECT_THAT(distinct, SizeIs(2 * kImages));
}

// The map stage stands where it does not part decode and crop, or where it does; the crop's random
// numbers are named by its place in the list, which is the same.
PipelineSpec Fused(const std::string& source, const std::string& crop) {
  return PipelineSpec::FromText("seed: 5 source { " + source +
                                "} stage { map { function: 'nothing' } } stage { decode {} } "
                                "stage { " +
                                crop + " } stage { batch { size: 1 } }")
      .WithMap("nothing", [](Example&) {});
}
PipelineSpec Apart(const std::string& source, const std::string& crop) {
  return PipelineSpec::FromText("seed: 5 source { " + source +
                                "} stage { decode {} } stage { map { function: 'nothing' } } "
                                "stage { " +
                                crop + " } stage { batch { size: 1 } }")
      .WithMap("nothing", [](Example&) {});
}

void WriteManyKinds(const TempFolder& folder) {
  using testing::JpegOptions;
  using testing::MakeJpeg;
  using testing::MakePicture;
  folder.Write("a/plain.jpg", MakeJpeg(61, 47));
  folder.Write("a/subsampled.jpg", MakeJpeg(61, 47, {.h_sampling = 2, .v_sampling = 2}));
  folder.Write("a/wide.jpg", MakeJpeg(120, 33, {.h_sampling = 2}));
  folder.Write("a/progressive.jpg", MakeJpeg(61, 47, {.progressive = true}));
  folder.Write("a/gray.jpg", MakeJpeg(40, 50, {.color = JpegOptions::Color::kGray}));
  folder.Write("a/cmyk.jpg", MakeJpeg(40, 50, {.color = JpegOptions::Color::kCmyk}));
  folder.Write("a/restarts.jpg", MakeJpeg(90, 90, {.v_sampling = 2, .restart_interval = 3}));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    folder.Write("b/turned-" + std::to_string(orientation) + ".jpg",
                 MakeJpeg(64, 40, {.h_sampling = 2, .exif = testing::MakeExif(orientation)}));
  }
  folder.Write("b/picture.png", MakePng(MakePicture(50, 45, 3)));
}

class PipelineFusing : public ::testing::TestWithParam<const char*> {};

TEST_P(PipelineFusing, DecodingForACropGivesThePixelsOfTheStagesOneByOne) {
  const TempFolder folder;
  WriteManyKinds(folder);
  const std::string source = "uri: '" + folder.path().string() + "' epochs: 4 ";
  const auto fused = PixelsByIdentity(Fused(source, GetParam()));
  EXPECT_THAT(fused, SizeIs(4 * 16));
  EXPECT_EQ(fused, PixelsByIdentity(Apart(source, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Crops, PipelineFusing,
                         ::testing::Values("random_resized_crop { height: 16 width: 20 }",
                                           "random_crop { height: 15 width: 13 }",
                                           "random_crop { height: 40 width: 40 padding: 9 }",
                                           "center_crop { height: 21 width: 30 }",
                                           "center_crop { height: 70 width: 70 }"));

// Real data.

std::string Photos() { return "uri: '" + (TestData() / "photos").string() + "' "; }
std::string Cifar() {
  return "uri: '" + (TestData() / "cifar10" / "train-{00,01}.tar").string() +
         "' shuffle { window: 500 } take: 3000 ";
}
const char* const kPhotoStages =
    "stage { decode {} } stage { echo { factor: 1.5 } } "
    "stage { random_resized_crop { height: 32 width: 32 } } stage { random_flip {} } "
    "stage { normalize {} } stage { batch { size: 32 } }";
const char* const kCifarStages =
    "stage { echo { factor: 2 } } stage { decode {} } "
    "stage { random_crop { height: 32 width: 32 padding: 4 } } stage { random_flip {} } "
    "stage { normalize {} } stage { batch { size: 64 } } stage { echo { factor: 1.15 } }";

TEST(PipelineDataTest, PhotosComeEachItsShareOftenAndAlikeOnAnyThreads) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  const PipelineSpec spec = PipelineSpec::FromText("seed: 2 source { " + Photos() +
                                                   "shuffle { full {} } } " + kPhotoStages);
  std::map<std::string, uint64_t> uses;
  std::map<int64_t, std::set<std::string>> classes;
  BatchHash hash;
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, {.threads = 2});
  for (const Batch& batch : *pipeline) {
    hash.Add(batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      const std::string key = batch.provenance(i).key;
      ++uses[key];
      classes[batch.labels()[i]].insert(key.substr(0, key.find('/')));
    }
  }
  EXPECT_THAT(uses, SizeIs(500));
  uint64_t total = 0;
  for (const auto& [key, count] : uses) total += count;
  EXPECT_EQ(total, 750u);
  EXPECT_THAT(classes, SizeIs(500));
  std::vector<std::string> in_order;
  for (const auto& [label, names] : classes) {
    EXPECT_THAT(names, SizeIs(1));
    in_order.push_back(*names.begin());
  }
  EXPECT_TRUE(std::ranges::is_sorted(in_order));
  EXPECT_EQ(HashOf(spec, {.threads = 8}), hash.Hex());
}

TEST(PipelineDataTest, Cifar10ComesEachItsShareOftenAndAlikeOnAnyThreads) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  const PipelineSpec spec =
      PipelineSpec::FromText("seed: 2 source { " + Cifar() + "} " + kCifarStages);
  std::map<std::string, uint64_t> uses;
  BatchHash hash;
  uint64_t batches = 0;
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, {.threads = 2});
  for (const Batch& batch : *pipeline) {
    hash.Add(batch);
    ++batches;
    for (size_t i = 0; i < batch.size(); ++i) {
      const Identity identity = batch.provenance(i).identity;
      if (identity.use[1] == 0) ++uses[batch.provenance(i).key];
      ASSERT_GE(batch.labels()[i], 0);
      ASSERT_LT(batch.labels()[i], 10);
    }
  }
  EXPECT_THAT(uses, SizeIs(3000));
  for (const auto& [key, count] : uses) EXPECT_EQ(count, 2u) << key;
  EXPECT_EQ(batches, 108u);  // 94 batches, the last smaller, times 1.15
  EXPECT_EQ(HashOf(spec, {.threads = 8}), hash.Hex());
}

TEST(PipelineDataTest, FusingKeepsThePixelsOfPhotos) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  const std::string crop = "random_resized_crop { height: 24 width: 24 }";
  const std::string source = Photos() + "shuffle { full {} } take: 200 ";
  const auto fused = PixelsByIdentity(Fused(source, crop));
  EXPECT_THAT(fused, SizeIs(200));
  EXPECT_EQ(fused, PixelsByIdentity(Apart(source, crop)));
}

}  // namespace
}  // namespace echopipe
