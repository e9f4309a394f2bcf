#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/io/glob.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::internal {
namespace {

using ::echopipe::testing::FakeStorage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

ErrorCode CodeOf(const std::function<void()>& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST(BraceTest, ListsStandForTheirAlternativesAsWritten) {
  EXPECT_THAT(ExpandBraces("plain"), ElementsAre("plain"));
  EXPECT_THAT(ExpandBraces("a{z,b,}c"), ElementsAre("azc", "abc", "ac"));
  EXPECT_THAT(ExpandBraces("{a,b}{c,d}"), ElementsAre("ac", "ad", "bc", "bd"));
  EXPECT_THAT(ExpandBraces("x{a,{b,c}d}"), ElementsAre("xa", "xbd", "xcd"));
}

TEST(BraceTest, RangesKeepTheirWidthIfAnEndIsPadded) {
  EXPECT_THAT(ExpandBraces("s-{000..002}.tar"), ElementsAre("s-000.tar", "s-001.tar", "s-002.tar"));
  EXPECT_THAT(ExpandBraces("{9..11}"), ElementsAre("9", "10", "11"));
  EXPECT_THAT(ExpandBraces("{08..10}"), ElementsAre("08", "09", "10"));
  EXPECT_THAT(ExpandBraces("{1..010}"), SizeIs(10));
  EXPECT_THAT(ExpandBraces("{2..0}"), ElementsAre("2", "1", "0"));
  EXPECT_THAT(ExpandBraces("{{0..1},x}"), ElementsAre("0", "1", "x"));
}

TEST(BraceTest, BrokenBracesAreErrorsThatNameThePattern) {
  for (const char* pattern :
       {"a{b", "a{b,{c}", "{}", "{a}", "{1..}", "{a..c}", "{1..2..3}", "{0..99999999999999999999}",
        "{{{{{{{{{a,b},c},d},e},f},g},h},i},j}"}) {
    std::string message;
    EXPECT_EQ(CodeOf([&] { ExpandBraces(pattern); }, &message), ErrorCode::kInvalidArgument)
        << pattern;
    EXPECT_THAT(message, HasSubstr(pattern));
  }
}

TEST(BraceTest, ABackslashTakesTheMeaningAway) {
  EXPECT_THAT(ExpandBraces("\\{a,b\\}"), ElementsAre("\\{a,b\\}"));
  FakeStorage storage;
  EXPECT_THAT(ExpandUri("\\{a,b\\}\\*", storage), ElementsAre("{a,b}*"));
}

TEST(BraceTest, TooManyNamesAreRefusedBeforeTheyAreMade) {
  EXPECT_EQ(CodeOf([] { ExpandBraces("{0..999999999999}"); }), ErrorCode::kLimitExceeded);
  std::string many;
  for (int i = 0; i < 40; ++i) many += "{a,b}";
  EXPECT_EQ(CodeOf([&] { ExpandBraces(many); }), ErrorCode::kLimitExceeded);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{1..1}";
  EXPECT_EQ(CodeOf([&] { ExpandBraces(deep); }), ErrorCode::kInvalidArgument);
}

TEST(BraceTest, AMillionNamesAreAllowed) {
  EXPECT_THAT(ExpandBraces("{000000..999999}"), SizeIs(kMaxExpandedNames));
}

TEST(GlobTest, PatternsMatchWholeNames) {
  EXPECT_TRUE(MatchesGlob("*.tar", "a.tar"));
  EXPECT_FALSE(MatchesGlob("*.tar", "a.tar.gz"));
  EXPECT_TRUE(MatchesGlob("a?c", "abc"));
  EXPECT_FALSE(MatchesGlob("a?c", "ac"));
  EXPECT_TRUE(MatchesGlob("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(MatchesGlob("*a*b*", "xxbxxaxx"));
  EXPECT_TRUE(MatchesGlob("[a-c]x", "bx"));
  EXPECT_FALSE(MatchesGlob("[a-c]x", "dx"));
  EXPECT_TRUE(MatchesGlob("[!a-c]x", "dx"));
  EXPECT_FALSE(MatchesGlob("[^a-c]x", "ax"));
  EXPECT_TRUE(MatchesGlob("[]]", "]"));
  EXPECT_TRUE(MatchesGlob("[a-]", "-"));
  EXPECT_TRUE(MatchesGlob("[a", "[a"));
  EXPECT_TRUE(MatchesGlob("\\*", "*"));
  EXPECT_FALSE(MatchesGlob("\\*", "a"));
  EXPECT_TRUE(MatchesGlob("", ""));
  EXPECT_TRUE(MatchesGlob("*", "anything"));
}

TEST(GlobTest, AnAddressInBracketsIsNoGlob) {
  EXPECT_THAT(PlainNames("http://[::1]:80/s-{0..1}.tar"),
              ElementsAre("http://[::1]:80/s-0.tar", "http://[::1]:80/s-1.tar"));
  EXPECT_THAT(PlainNames("http://[::1]:80/s-[01].tar"), ElementsAre());
  EXPECT_THAT(PlainNames("s-[01].tar"), ElementsAre());
}

TEST(GlobTest, ALeadingDotIsMatchedByADotAlone) {
  EXPECT_FALSE(MatchesGlob("*", ".hidden"));
  EXPECT_FALSE(MatchesGlob("?hidden", ".hidden"));
  EXPECT_FALSE(MatchesGlob("[.]hidden", ".hidden"));
  EXPECT_TRUE(MatchesGlob(".*", ".hidden"));
}

TEST(GlobTest, ManyStarsDoNotTakeForEver) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesGlob(pattern + "b", std::string(5000, 'a')));
}

class ExpandUriTest : public ::testing::Test {
 protected:
  ExpandUriTest() {
    for (const char* path : {"data/train/b.tar", "data/train/a.tar", "data/train/a.txt",
                             "data/val/c.tar", "data/.old/d.tar", "data/top.tar"}) {
      storage_.Put(path, "x");
    }
  }
  std::vector<std::string> Expand(const std::string& uri) { return ExpandUri(uri, storage_); }

  FakeStorage storage_;
};

TEST_F(ExpandUriTest, MatchesComeSorted) {
  EXPECT_THAT(Expand("data/train/*.tar"), ElementsAre("data/train/a.tar", "data/train/b.tar"));
}

TEST_F(ExpandUriTest, EveryComponentMayBeAPattern) {
  EXPECT_THAT(Expand("data/*/[a-c].tar"),
              ElementsAre("data/train/a.tar", "data/train/b.tar", "data/val/c.tar"));
  EXPECT_THAT(Expand("data/v*/c.tar"), ElementsAre("data/val/c.tar"));
}

TEST_F(ExpandUriTest, APatternWithoutAFolderIsOfTheCurrentOne) {
  storage_.Put("./here.tar", "x");
  EXPECT_THAT(Expand("*.tar"), ElementsAre("here.tar"));
}

TEST_F(ExpandUriTest, ATrailingSlashMeansFolders) {
  EXPECT_THAT(Expand("data/*/"), ElementsAre("data/train/", "data/val/"));
  EXPECT_THAT(Expand("data/"), ElementsAre("data/"));
}

TEST_F(ExpandUriTest, BracesComeBeforeGlobsAndKeepTheirOrder) {
  EXPECT_THAT(Expand("data/{val,train}/*.tar"),
              ElementsAre("data/val/c.tar", "data/train/a.tar", "data/train/b.tar"));
}

TEST_F(ExpandUriTest, ANameWithoutAGlobIsTakenAsItIs) {
  EXPECT_THAT(Expand("data/{0..1}.tar"), ElementsAre("data/0.tar", "data/1.tar"));
}

TEST_F(ExpandUriTest, APatternThatMatchesNothingIsNotFoundByName) {
  for (const char* pattern : {"data/train/*.zip", "none/*", "data/*/x/*", "data/top.tar*/"}) {
    std::string message;
    EXPECT_EQ(CodeOf([&] { Expand(pattern); }, &message), ErrorCode::kNotFound) << pattern;
    EXPECT_THAT(message, HasSubstr(pattern));
  }
}

TEST_F(ExpandUriTest, AStorageErrorIsNotTakenForNoMatch) {
  storage_.FailAlways("data/train/", Error({.code = ErrorCode::kIo, .what = "no permission"}));
  std::string message;
  EXPECT_EQ(CodeOf([&] { Expand("data/train/*"); }, &message), ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("no permission"));
}

}  // namespace
}  // namespace echopipe::internal
