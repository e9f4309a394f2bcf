// What the builder makes of the augmentations, and what it refuses of a program's own functions.

#include <functional>
#include <string>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/builder.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

bool Keep(const Example& /*example*/) { return true; }
void Leave(Example& /*example*/) {}

TEST(BuilderTest, ASecondFunctionOfOneNameIsRefusedByName) {
  PipelineBuilder builder("photos/");
  builder.Map("twice", &Leave).Filter("again", &Keep);
  const auto already = [](const char* name) {
    return AllOf(HasSubstr("already"), HasSubstr(name));
  };
  EXPECT_THAT(MessageOf([&] { builder.Map("twice", &Leave); }), already("twice"));
  EXPECT_THAT(MessageOf([&] { builder.Filter("again", &Keep); }), already("again"));
  const PipelineSpec spec = builder.Batch({.size = 4}).Build();
  EXPECT_EQ(spec.message().stage_size(), 3) << "what was refused left no stage";
  EXPECT_THAT(MessageOf([&] { spec.WithMap("twice", &Leave); }), already("twice"));
  EXPECT_THAT(MessageOf([&] { spec.WithFilter("again", &Keep); }), already("again"));
}

TEST(BuilderTest, AMapAndAFilterMayShareAName) {
  PipelineBuilder("photos/").Map("same", &Leave).Filter("same", &Keep).Batch({}).Build();
}

TEST(BuilderTest, ASourceTakesAnySettingAsText) {
  const PipelineSpec spec = PipelineBuilder("a.tfrecord")
                                .Source("tfrecord { key: 'id' }")
                                .Source("take: 7")
                                .Batch({})
                                .Build();
  EXPECT_EQ(spec.message().source_size(), 1);
  EXPECT_EQ(spec.message().source(0).tfrecord().key(), "id");
  EXPECT_EQ(spec.message().source(0).take(), 7u);
  EXPECT_THAT(MessageOf([] { PipelineBuilder("a").Source("nonsense: 1"); }), HasSubstr("Source()"));
}

TEST(BuilderTest, OneFunctionMayBeCalledTwice) {
  PipelineBuilder("photos/")
      .Map("twice", &Leave)
      .Stage("map { function: 'twice' }")
      .Batch({})
      .Build();
}

TEST(BuilderTest, AMessageTakesOtherFunctionsOfTheSameNames) {
  const PipelineSpec spec = PipelineBuilder("photos/").Map("a", &Leave).Batch({}).Build();
  PipelineSpec(spec.message()).WithMap("a", [](Example&) {}).Validate();
}

TEST(BuilderTest, AnEmptyFunctionIsCalledSo) {
  const auto empty = AllOf(HasSubstr("function is empty"), HasSubstr("got a"));
  EXPECT_THAT(MessageOf([] { PipelineBuilder("photos/").Map("a", nullptr); }), empty);
  EXPECT_THAT(MessageOf([] { PipelineBuilder("photos/").Filter("a", nullptr); }), empty);
}

TEST(BuilderTest, TheAugmentationsAreThoseOfTheTextForm) {
  const PipelineSpec built = PipelineBuilder("photos/")
                                 .ColorJitter({.brightness = 0.4, .hue = 0.1})
                                 .RandomGrayscale()
                                 .GaussianBlur(23, 0.5)
                                 .RandomErasing(0.25)
                                 .RandomRotation(15)
                                 .RandomAffine({.degrees = 5, .translate_x = 0.1, .max_scale = 2})
                                 .RandomAutocontrast()
                                 .RandomEqualize()
                                 .RandomPosterize(4)
                                 .RandomSolarize(128, 0.2)
                                 .RandomInvert()
                                 .RandomAdjustSharpness(2)
                                 .RandAugment()
                                 .TrivialAugmentWide()
                                 .Batch({})
                                 .Build();
  const PipelineSpec written = PipelineSpec::FromText(
      "source { uri: 'photos/' } stage { color_jitter { brightness: 0.4 hue: 0.1 } } "
      "stage { random_grayscale { probability: 0.1 } } "
      "stage { gaussian_blur { kernel_size: 23 probability: 0.5 } } "
      "stage { random_erasing { probability: 0.25 } } stage { random_rotation { degrees: 15 } } "
      "stage { random_affine { degrees: 5 translate_x: 0.1 min_scale: 1 max_scale: 2 } } "
      "stage { random_autocontrast { probability: 0.5 } } "
      "stage { random_equalize { probability: 0.5 } } "
      "stage { random_posterize { bits: 4 probability: 0.5 } } "
      "stage { random_solarize { threshold: 128 probability: 0.2 } } "
      "stage { random_invert { probability: 0.5 } } "
      "stage { random_adjust_sharpness { factor: 2 probability: 0.5 } } "
      "stage { rand_augment { num_ops: 2 magnitude: 9 } } stage { trivial_augment_wide {} } "
      "stage { batch { size: 1 } }");
  EXPECT_EQ(built.ToText(), written.ToText());
}

TEST(BuilderTest, AnAdaptiveEchoHasNoFactor) {
  const PipelineSpec spec =
      PipelineBuilder("a")
          .Echo(
              {.adaptive = AdaptiveSettings{.max_factor = 5, .low_water = std::chrono::seconds(1)}})
          .Batch({.size = 2})
          .Build();
  EXPECT_THAT(spec.ToText(), ::testing::HasSubstr("max_factor: 5"));
  EXPECT_THAT(spec.ToText(), ::testing::HasSubstr("low_water_ms: 1000"));
  EXPECT_THAT(spec.ToText(), ::testing::Not(::testing::HasSubstr(" factor:")));
}

}  // namespace
}  // namespace echopipe
