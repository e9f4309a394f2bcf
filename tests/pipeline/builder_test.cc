// What the builder refuses of a program's own functions.

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
