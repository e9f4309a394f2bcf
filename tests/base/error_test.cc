#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;

TEST(ErrorTest, TheMessageLeavesOutWhatIsEmpty) {
  EXPECT_THAT(Error({.what = "it broke"}).what(), StrEq("it broke"));
  EXPECT_THAT(Error({.what = "it broke", .where = "a.jpg"}).what(), StrEq("a.jpg: it broke"));
  EXPECT_THAT(Error({.what = "it broke", .got = "7"}).what(), StrEq("it broke (got 7)"));
  EXPECT_THAT(Error({.what = "it broke", .wanted = "1 to 3"}).what(),
              StrEq("it broke (wanted 1 to 3)"));
  EXPECT_THAT(Error({.what = "it broke", .where = "size", .got = "7", .wanted = "1 to 3"}).what(),
              StrEq("size: it broke (got 7, wanted 1 to 3)"));
}

TEST(ErrorTest, WithinPutsTheOuterPlaceFirstAndKeepsTheRest) {
  const Error inner({.code = ErrorCode::kCorrupt, .what = "it broke", .where = "b", .got = "7"});
  const Error outer = inner.Within("a");
  EXPECT_THAT(outer.what(), StrEq("a: b: it broke (got 7)"));
  EXPECT_EQ(outer.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(inner.what(), StrEq("b: it broke (got 7)"));
  EXPECT_THAT(Error({.what = "it broke"}).Within("a").what(), StrEq("a: it broke"));
}

TEST(ErrorTest, EveryCodeHasANameOfItsOwn) {
  std::vector<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code)
    names.emplace_back(ToString(static_cast<ErrorCode>(code)));
  EXPECT_THAT(names, ElementsAre("invalid_argument", "not_found", "io", "unavailable", "empty",
                                 "truncated", "corrupt", "unsupported", "limit_exceeded",
                                 "shape_mismatch", "missing_member", "user_function",
                                 "resource_exhausted", "stopped", "forked", "internal"));
}

TEST(ResultTest, HoldsAValueOrAnErrorThatValueThrows) {
  Result<std::string> good = std::string("yes");
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), "yes");
  const Result<std::string> bad = Error({.code = ErrorCode::kEmpty, .what = "no"});
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), ErrorCode::kEmpty);
  EXPECT_THROW(bad.value(), Error);
}

TEST(ResultTest, ALoopOverTheValueOfATemporaryIsSafe) {
  const auto make = [] { return Result<std::vector<int>>(std::vector<int>{1, 2, 3}); };
  static_assert(std::is_same_v<decltype(make().value()), std::vector<int>>);
  std::vector<int> seen;
  for (const int value : make().value()) seen.push_back(value);
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace echopipe
