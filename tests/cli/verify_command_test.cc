#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/image_data.h>
#include <echopipe/tests/support/images.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Strings = std::map<std::string, std::string>;

std::string With(std::string bytes, size_t at, const std::string& other) {
  return bytes.replace(at, other.size(), other);
}

std::string WithoutTail(const std::string& bytes, size_t tail) {
  return bytes.substr(0, bytes.size() - tail);
}

// A JPEG's frame header, behind its length.
size_t FrameAt(const std::string& jpeg) { return jpeg.find("\xff\xc0") + 4; }

// Without the data between its first two restart markers.
std::string WithoutAPiece(const std::string& jpeg) {
  const size_t begin = jpeg.find("\xff\xd0");
  return jpeg.substr(0, begin) + jpeg.substr(jpeg.find("\xff\xd1"));
}

/// What can be wrong with a file, and the kind that it is told as.
struct Fault {
  std::string kind;
  std::string bytes;
};

std::map<std::string, Fault> Faults(uint32_t seed) {
  const std::string jpeg = MakeJpeg(MakePicture(70, 50, 3, seed));
  const std::string restarts = MakeJpeg(MakePicture(70, 50, 3, seed), {.restart_interval = 2});
  const std::string png = MakePng(MakePicture(20, 30, 3, seed));
  const std::string bmp = std::string("BM") + std::string(8, '\0') + "\x36" + std::string(3, '\0') +
                          "\x28" + std::string(3, '\0') + "\x05" + std::string(3, '\0') + "\x05" +
                          std::string(3, '\0') + "\x01" + std::string(1, '\0') + "\x18" +
                          std::string(1, '\0');
  const std::string bmp_rest = std::string(20 + 5 * 16, '\x11');
  return {
      {"empty.jpg", {"empty", ""}},
      {"half.jpg", {"truncated", jpeg.substr(0, jpeg.size() / 2)}},
      {"no-end.jpg", {"truncated", WithoutTail(jpeg, 2)}},
      {"header-alone.jpg", {"truncated", jpeg.substr(0, 40)}},
      {"lost-restart.jpg", {"corrupt", WithoutAPiece(restarts)}},
      {"huge.jpg", {"limit_exceeded", With(jpeg, FrameAt(jpeg) + 1, "\xff\xff\xff\xff")}},
      {"lossless.jpg", {"unsupported", With(jpeg, FrameAt(jpeg) - 3, "\xc3")}},
      {"page.jpg", {"unsupported", "<html><body>404 Not Found</body></html>"}},
      {"moving.jpg", {"unsupported", "GIF89a" + std::string(50, '\0')}},
      {"zeros.jpg", {"unsupported", std::string(1000, '\0')}},
      {"checksum.png", {"corrupt", With(png, png.size() - 20, "\x5a\xa5")}},
      {"half.png", {"truncated", png.substr(0, png.size() / 2)}},
      {"no-color-type.png", {"corrupt", With(png, 25, "\x09")}},
      {"half.webp", {"truncated", "RIFF\x64" + std::string(3, '\0') + "WEBPVP8 "}},
      {"compressed.bmp", {"unsupported", bmp + "\1" + std::string(3, '\0') + bmp_rest}},
      {"half.bmp", {"truncated", bmp + std::string(24, '\0') + "short"}},
  };
}

// Photos where there are some, else pictures.
void FillWithGood(const TempFolder& folder) {
  const std::filesystem::path data = TestData();
  if (data.empty()) {
    WriteImages(folder, 60, 6);
  } else {
    std::filesystem::copy(data / "photos", folder.path(), std::filesystem::copy_options::recursive);
  }
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(VerifyCommandTest, FindsEachFaultNamesItAndNothingElse) {
  const TempFolder folder;
  FillWithGood(folder);
  Strings planted;
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    for (const auto& [name, fault] : Faults(seed)) {
      // Among the good ones, and in a class of their own.
      const auto first = std::filesystem::directory_iterator(folder.path())->path().filename();
      const std::string below = seed == 1 ? first.string() : "n99999999";
      planted[folder.Write(below + "/" + name, fault.bytes)] = fault.kind;
    }
  }
  const ProgramRun run = RunProgram({"verify", "--source", folder.path(), "-q"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  Strings found;
  std::vector<std::string> lines = Lines(run.out);
  EXPECT_THAT(lines.back(), AllOf(HasSubstr(" records, "), HasSubstr(", 32 bad: corrupt 6, ")));
  lines.pop_back();
  for (const std::string& line : lines) {
    const size_t name = line.find("  ") + 2;
    found[line.substr(name, line.find(": ", name) - name)] = line.substr(0, name - 2);
  }
  EXPECT_EQ(found, planted);
  EXPECT_EQ(lines.size(), planted.size());
}

TEST(VerifyCommandTest, GoodDataGivesZeroAndItsSize) {
  const TempFolder folder;
  WriteImages(folder, 12, 3);
  const ProgramRun run = RunProgram({"verify", "--source", folder.path(), "-q"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("12 records, "), EndsWith(", none bad\n")));
}

TEST(VerifyCommandTest, RecordsOfShardsAreNamedByShardAndKey) {
  const TempFolder folder;
  TarBuilder tar;
  tar.AddFile("a.jpg", MakeJpeg(30, 20)).AddFile("a.cls", "1");
  tar.AddFile("b.jpg", "no picture").AddFile("b.cls", "2");
  tar.AddFile("c.txt", "no image").AddFile("c.cls", "3");
  const std::string shard = folder.Write("s.tar", tar.AddEnd().bytes());
  const ProgramRun run = RunProgram({"verify", "--source", shard, "-q", "--json"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
  const json found = json::parse(run.out);
  EXPECT_EQ(found["records"], 3);
  EXPECT_EQ(found["bad_count"], 2);
  EXPECT_EQ(found["complete"], true);
  EXPECT_EQ(found["kinds"], (json{{"missing_member", 1}, {"unsupported", 1}}));
  ASSERT_EQ(found["bad"].size(), 2u);
  EXPECT_EQ(found["bad"][0]["uri"], shard);
  EXPECT_EQ(found["bad"][0]["key"], "b");
  EXPECT_EQ(found["bad"][0]["stage"], "decode");
  EXPECT_EQ(found["bad"][1]["key"], "c");
  EXPECT_EQ(found["bad"][1]["stage"], "source");
}

TEST(VerifyCommandTest, WithoutDecodingOnlyWhatCannotBeReadIsBad) {
  const TempFolder folder;
  folder.Write("c/page.jpg", "no picture");
  const ProgramRun run = RunProgram({"verify", "--source", folder.path(), "-q", "--no-decode"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, EndsWith("1 records, 10 B, none bad\n"));
}

TEST(VerifyCommandTest, DataThatIsAllBadIsAResultToo) {
  const TempFolder folder;
  for (int i = 0; i < 70; ++i) folder.Write("c/" + std::to_string(i) + ".jpg", "no picture");
  const ProgramRun run = RunProgram({"verify", "--source", folder.path(), "-q"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, EndsWith(", 70 bad: unsupported 70\n"));
}

// The spec's order would leave records out, its other stages fail.
TEST(VerifyCommandTest, OfASpecTheWholeSourceIsReadAndDecodedAsItSays) {
  const TempFolder folder;
  for (int i = 0; i < 5; ++i) folder.Write("c/" + std::to_string(i) + ".jpg", MakeJpeg(30, 20));
  folder.Write("c/small.jpg", MakeJpeg(10, 10));
  const std::string spec =
      folder.Write("spec.txt", "source { uri: '" + folder.path().string() +
                                   "' shuffle { full {} } take: 2 epochs: 2 } stage { decode { "
                                   "max_pixels: 599 } } stage { center_crop { height: 900 width: "
                                   "900 } } stage { batch { size: 2 } }");
  const ProgramRun run = RunProgram({"verify", spec, "-q"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
  EXPECT_THAT(Lines(run.out).back(),
              AllOf(StartsWith("6 records, "), EndsWith(", 5 bad: limit_exceeded 5")));
}

TEST(VerifyCommandTest, WhatARunAcceptsTruncatedIsListedAllTheSame) {
  const TempFolder folder;
  const std::string jpeg = MakeJpeg(30, 64);
  folder.Write("c/half.jpg", jpeg.substr(0, jpeg.size() / 2));
  const std::string spec =
      folder.Write("spec.txt", "source { uri: '" + folder.path().string() +
                                   "' } stage { decode { accept_truncated: true } } "
                                   "stage { batch { size: 2 } }");
  const ProgramRun run = RunProgram({"verify", spec, "-q"});
  EXPECT_EQ(run.exit_code, 4) << run.err;
  EXPECT_THAT(run.out, StartsWith("truncated  " + folder.Path("c/half.jpg")));
}

TEST(VerifyCommandTest, NoDataIsAFailure) {
  const ProgramRun run = RunProgram({"verify", "--source", "nowhere/", "-q"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace echopipe::testing
