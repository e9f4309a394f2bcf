#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// How the program prints a name, here that of a spec that is not there.
std::string Printed(const std::string& name) {
  const ProgramRun run = RunProgram({"run", name});
  const std::string prefix = "echopipe: ";
  EXPECT_THAT(run.err, StartsWith(prefix));
  return run.err.substr(prefix.size(), run.err.find(": cannot read") - prefix.size());
}

TEST(PrintableTest, WhatATerminalShowsStaysAsItIs) {
  for (const std::string name : {"a b\\~", "é", "\u00a0", "日本", "\ue000", "🎞", "\U0010ffff"}) {
    EXPECT_EQ(Printed(name), name);
  }
}

TEST(PrintableTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(Printed("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(Printed("\x01\x1b[2J\x1f\x7f"), "\\x01\\x1b[2J\\x1f\\x7f");
  EXPECT_EQ(Printed("\u0080\u009b\u009f"), "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
}

TEST(PrintableTest, WhatIsNoUtf8IsEscaped) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x80z", "\\x80z"},                           // nothing before it
      {"z\xc3", "z\\xc3"},                           // cut short
      {"\xe6\x97z", "\\xe6\\x97z"},                  // cut short
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // overlong
      {"\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"},  // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond the last character
      {"\xff\xfe", "\\xff\\xfe"},
  };
  for (const auto& [name, printed] : cases) EXPECT_EQ(Printed(name), printed);
}

// A picture that is none, with a name that would clear the screen and forge a line.
class HostileName {
 public:
  HostileName() { folder_.Write("class/a\x1b[2J\nskipped b\xc2\x9b\xff\x7f.jpg", "no picture"); }
  ProgramRun Run(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"run", "--source", folder_.path(), "--decode", "--batch", "2"});
    return RunProgram(flags);
  }

 private:
  TempFolder folder_;
};

constexpr const char* kEscaped = "a\\x1b[2J\\nskipped b\\xc2\\x9b\\xff\\x7f.jpg";

TEST(PrintableTest, ErrorsAndLogLinesAreEscaped) {
  const HostileName name;
  EXPECT_THAT(name.Run({}).err, AllOf(HasSubstr(kEscaped), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(name.Run({"--bad-examples", "policy: SKIP"}).err,
              AllOf(HasSubstr("skipped /"), HasSubstr(kEscaped), Not(HasSubstr("\nskipped b"))));
}

TEST(PrintableTest, JsonIsPlainAscii) {
  const std::string out = HostileName().Run({"--json", "-q"}).out;
  for (const char c : out) EXPECT_TRUE((c >= 0x20 && c < 0x7f) || c == '\n');
  const auto error = nlohmann::json::parse(out).at("error").get<std::string>();
  EXPECT_THAT(error, HasSubstr("a\x1b[2J\nskipped b\u009b\ufffd\x7f.jpg"));
}

TEST(PrintableTest, NamesOnStandardOutputAreEscaped) {
  const TempFolder folder;
  EXPECT_THAT(RunProgram({"demo-data", folder.Path("a\nb"), "--images", "1"}).out,
              HasSubstr("a\\nb: 1 images"));
}

}  // namespace
}  // namespace echopipe::testing
