#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/tar_reader.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::internal {
namespace {

using ::echopipe::testing::OctalSize;
using ::echopipe::testing::PaxRecord;
using ::echopipe::testing::ReadFile;
using ::echopipe::testing::TarBuilder;
using ::echopipe::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Members = std::vector<std::pair<std::string, std::string>>;

struct Outcome {
  Members members;
  std::vector<uint64_t> offsets;
  ErrorCode code = ErrorCode::kInternal;
  std::string error;  // empty if none
};

// Feeds pieces of at most `piece` bytes.
Outcome Read(const std::string& bytes, size_t piece = ~size_t{0}, bool tell_size = false,
             uint64_t offset = 0) {
  TarReader reader("shard.tar", offset);
  if (tell_size) reader.SetShardSize(bytes.size());
  Outcome outcome;
  size_t at = offset;
  try {
    while (true) {
      TarReader::Event event = reader.Next();
      if (event.kind == TarReader::Kind::kEnd) return outcome;
      if (event.kind == TarReader::Kind::kMember) {
        outcome.members.emplace_back(event.path, "");
        outcome.offsets.push_back(event.header_offset);
      } else if (event.kind == TarReader::Kind::kData) {
        outcome.members.back().second.append(event.data.begin(), event.data.end());
      } else if (at == bytes.size()) {
        reader.Finish();
      } else {
        const size_t size = std::min(piece, bytes.size() - at);
        reader.Feed({reinterpret_cast<const uint8_t*>(bytes.data()) + at, size});
        at += size;
      }
    }
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.error = error.what();
  }
  return outcome;
}

Members MembersOf(const std::string& bytes) {
  const Outcome outcome = Read(bytes);
  EXPECT_EQ(outcome.error, "");
  return outcome.members;
}

void ExpectError(const std::string& bytes, ErrorCode code, const std::string& text) {
  const Outcome outcome = Read(bytes);
  EXPECT_EQ(outcome.code, code) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr(text));
  EXPECT_THAT(outcome.error, HasSubstr("shard.tar"));
  EXPECT_THAT(outcome.error, HasSubstr("byte"));
}

TEST(TarReaderTest, GivesTheFilesInOrder) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "hello").AddFile("dir/b", "").AddFile("c", std::string(512, 'x')).AddEnd();
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a.jpg", "hello"), Pair("dir/b", ""),
                                                  Pair("c", std::string(512, 'x'))));
}

TEST(TarReaderTest, TheEndOfTheBytesBetweenMembersIsAnEndToo) {
  TarBuilder tar;
  tar.AddFile("a", "1");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a", "1")));
  tar.AddBytes(std::string(512, '\0'));
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a", "1")));
}

TEST(TarReaderTest, WhatFollowsTheEndIsNotLookedAt) {
  TarBuilder tar;
  tar.AddFile("a", "1").AddEnd().AddBytes("garbage");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a", "1")));
}

TEST(TarReaderTest, AnArchiveOfNothingIsEmpty) {
  EXPECT_THAT(MembersOf(TarBuilder().AddEnd().bytes()), IsEmpty());
}

TEST(TarReaderTest, NoBytesAtAllAreAnError) { ExpectError("", ErrorCode::kEmpty, "empty"); }

TEST(TarReaderTest, BeginsInTheMiddle) {
  TarBuilder tar;
  tar.AddFile("a", "1").AddFile("b", "2").AddEnd();
  const Outcome whole = Read(tar.bytes());
  const Outcome part = Read(tar.bytes(), ~size_t{0}, false, whole.offsets.at(1));
  EXPECT_THAT(part.members, ElementsAre(Pair("b", "2")));
  EXPECT_THAT(part.offsets, ElementsAre(whole.offsets.at(1)));
}

// ---- names

TEST(TarReaderTest, UstarNamesHaveAPrefix) {
  TarBuilder tar;
  tar.AddHeader({.name = "file", .size = OctalSize(0), .prefix = "some/dir"});
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("some/dir/file", "")));
}

TEST(TarReaderTest, NamesMayFillTheirFields) {
  const std::string name(100, 'n');
  const std::string prefix(155, 'p');
  TarBuilder tar;
  tar.AddHeader({.name = name, .size = OctalSize(0), .prefix = prefix});
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair(prefix + "/" + name, "")));
}

TEST(TarReaderTest, GnuAndV7HeadersHaveNoPrefix) {
  TarBuilder tar;
  tar.AddHeader(
      {.name = "gnu", .size = OctalSize(0), .magic = TarBuilder::Magic::kGnu, .prefix = "12345"});
  tar.AddHeader(
      {.name = "v7", .size = OctalSize(0), .type = '\0', .magic = TarBuilder::Magic::kV7});
  tar.AddHeader(
      {.name = "dir/", .size = OctalSize(0), .type = '\0', .magic = TarBuilder::Magic::kV7});
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("gnu", ""), Pair("v7", "")));
}

TEST(TarReaderTest, GnuLongNamesStandInForTheNextName) {
  const std::string name(3000, 'l');
  TarBuilder tar;
  tar.AddExtension('L', name + '\0').AddExtension('K', std::string(200, 'k'));
  tar.AddFile("short", "1").AddFile("next", "2");
  const Outcome outcome = Read(tar.bytes());
  EXPECT_THAT(outcome.members, ElementsAre(Pair(name, "1"), Pair("next", "2")));
  EXPECT_EQ(outcome.offsets.at(0), 0);
}

TEST(TarReaderTest, PaxPathAndSizeStandInForTheNextMember) {
  TarBuilder tar;
  tar.AddExtension('x', PaxRecord("mtime", "1.5") + PaxRecord("path", "n\xc3\xa4me/ü.jpg") +
                            PaxRecord("size", "3"));
  tar.AddHeader({.name = "short", .size = OctalSize(0)}).AddData("abc").AddFile("next", "2");
  const Outcome outcome = Read(tar.bytes());
  EXPECT_THAT(outcome.members, ElementsAre(Pair("n\xc3\xa4me/ü.jpg", "abc"), Pair("next", "2")));
  EXPECT_EQ(outcome.offsets.at(0), 0);
}

TEST(TarReaderTest, GlobalPaxHeadersHoldUntilAMembersOwn) {
  TarBuilder tar;
  tar.AddExtension('g', PaxRecord("path", "global") + PaxRecord("comment", "x"));
  tar.AddFile("a", "1");
  tar.AddExtension('x', PaxRecord("path", "own")).AddFile("b", "2").AddFile("c", "3");
  tar.AddExtension('g', PaxRecord("path", "")).AddFile("d", "4");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("global", "1"), Pair("own", "2"),
                                                  Pair("global", "3"), Pair("d", "4")));
}

TEST(TarReaderTest, PaxPathsWinOverLongNames) {
  TarBuilder tar;
  tar.AddExtension('x', PaxRecord("path", "pax")).AddExtension('L', "gnu").AddFile("a", "1");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("pax", "1")));
}

// ---- sizes and checksums

TEST(TarReaderTest, SizesMayBePaddedWithBlanks) {
  TarBuilder tar;
  tar.AddHeader({.name = "a", .size = "         3 "}).AddData("abc");
  tar.AddHeader({.name = "b", .size = "3"}).AddData("abc");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a", "abc"), Pair("b", "abc")));
}

TEST(TarReaderTest, SizesMayBeBase256) {
  TarBuilder tar;
  tar.AddHeader({.name = "a", .size = "\x80" + std::string(9, '\0') + "\x01\x02"});
  tar.AddData(std::string(0x102, 'x'));
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a", std::string(0x102, 'x'))));
}

TEST(TarReaderTest, BrokenSizesAreErrors) {
  for (const std::string& size :
       {std::string("12x"), std::string("-1"), std::string("0000000000:"), std::string("1 2"),
        "\xff" + std::string(10, '\xff') + "\x01", "\x80" + std::string(11, '\xff')}) {
    ExpectError(TarBuilder().AddHeader({.name = "a", .size = size}).bytes(), ErrorCode::kCorrupt,
                "size");
  }
}

TEST(TarReaderTest, ChecksumsMaySumSignedBytes) {
  TarBuilder tar;
  tar.AddHeader({.name = "\xc3\xa4", .size = OctalSize(1), .signed_checksum = true}).AddData("1");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("\xc3\xa4", "1")));
}

TEST(TarReaderTest, EveryChangedByteOfAHeaderIsNoticed) {
  const std::string good = TarBuilder().AddFile("a", "").bytes();
  for (size_t i = 0; i < 512; ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    const Outcome outcome = Read(bad);
    EXPECT_EQ(outcome.code, ErrorCode::kCorrupt) << i;
    EXPECT_THAT(outcome.error, HasSubstr("not a tar header")) << i;
  }
}

// ---- what is passed over, and what is refused

TEST(TarReaderTest, LinksFoldersAndDevicesArePassedOver) {
  TarBuilder tar;
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    // Old programs put the size of a link's target here; no data follows.
    tar.AddHeader({.name = "other", .size = OctalSize(700), .type = type});
  }
  tar.AddHeader({.name = "dir/", .size = OctalSize(0)});
  tar.AddHeader({.name = "dump", .size = OctalSize(3), .type = 'D'}).AddData("abc");
  tar.AddHeader({.name = "contiguous", .size = OctalSize(1), .type = '7'}).AddData("1");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("contiguous", "1")));
}

TEST(TarReaderTest, ALinkTakesItsLongNameWithIt) {
  TarBuilder tar;
  tar.AddExtension('L', "long").AddHeader({.name = "link", .size = OctalSize(0), .type = '2'});
  tar.AddFile("a", "1");
  EXPECT_THAT(MembersOf(tar.bytes()), ElementsAre(Pair("a", "1")));
}

TEST(TarReaderTest, SparseAndMultiVolumeMembersAreRefusedByName) {
  ExpectError(TarBuilder().AddHeader({.name = "a", .size = OctalSize(0), .type = 'S'}).bytes(),
              ErrorCode::kUnsupported, "sparse");
  ExpectError(TarBuilder().AddHeader({.name = "a", .size = OctalSize(0), .type = 'M'}).bytes(),
              ErrorCode::kUnsupported, "multi-volume");
  ExpectError(TarBuilder().AddExtension('x', PaxRecord("GNU.sparse.major", "1")).bytes(),
              ErrorCode::kUnsupported, "sparse");
}

TEST(TarReaderTest, CompressedArchivesAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> magics = {
      {std::string("\x1f\x8b\x08\0", 4), "gzip"},
      {"\x28\xb5\x2f\xfd", "zstd"},
      {"BZh91AY", "bzip2"},
      {std::string("\xfd\x37zXZ\0", 6), "xz"},
      {"\x04\x22\x4d\x18", "lz4"},
      {"PK\x03\x04", "zip"}};
  for (const auto& [magic, name] : magics) {
    ExpectError(magic, ErrorCode::kUnsupported, name);
    ExpectError(magic + std::string(2000, 'x'), ErrorCode::kUnsupported, name);
  }
}

TEST(TarReaderTest, AnArchiveMayBeginWithANameLikeACompressionsMagic) {
  EXPECT_THAT(MembersOf(TarBuilder().AddFile("BZh.txt", "1").bytes()),
              ElementsAre(Pair("BZh.txt", "1")));
}

// ---- limits

TEST(TarReaderTest, SizesAreBoundedBeforeAnythingIsRead) {
  const auto header = [](char type, uint64_t size) {
    return TarBuilder().AddHeader({.name = "a", .size = OctalSize(size), .type = type}).bytes();
  };
  ExpectError(header('0', TarReader::kMaxMemberBytes + 1), ErrorCode::kLimitExceeded, "member");
  ExpectError(header('L', TarReader::kMaxNameBytes + 1), ErrorCode::kLimitExceeded, "long name");
  ExpectError(header('x', TarReader::kMaxPaxBytes + 1), ErrorCode::kLimitExceeded, "pax header");
  ExpectError(header('g', TarReader::kMaxPaxBytes + 1), ErrorCode::kLimitExceeded, "pax header");
  ExpectError(TarBuilder()
                  .AddExtension('x', PaxRecord("size", "18446744073709551615"))
                  .AddFile("a", "1")
                  .bytes(),
              ErrorCode::kCorrupt, "size");
  ExpectError(TarBuilder()
                  .AddExtension('x', PaxRecord("path", std::string(70'000, 'p')))
                  .AddFile("a", "1")
                  .bytes(),
              ErrorCode::kLimitExceeded, "name");
}

// ---- errors

TEST(TarReaderTest, BytesThatEndEarlyAreTruncatedWherever) {
  TarBuilder tar;
  tar.AddExtension('L', "long name").AddFile("a", std::string(700, 'x'));
  for (size_t size = 1; size < tar.bytes().size(); ++size) {
    const Outcome outcome = Read(tar.bytes().substr(0, size));
    EXPECT_EQ(outcome.code, ErrorCode::kTruncated) << size << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("byte " + std::to_string(size)));
  }
}

TEST(TarReaderTest, AKnownShardSizeTellsATruncatedMemberAtItsHeader) {
  const std::string bytes =
      TarBuilder().AddFile("a", "1").AddFile("b", std::string(700, 'x')).bytes().substr(0, 2000);
  const Outcome outcome = Read(bytes, ~size_t{0}, /*tell_size=*/true);
  EXPECT_THAT(outcome.members, ElementsAre(Pair("a", "1")));
  EXPECT_EQ(outcome.code, ErrorCode::kTruncated);
  EXPECT_THAT(outcome.error, HasSubstr("byte 1024"));
}

TEST(TarReaderTest, GarbageIsAnErrorThatNamesItsByte) {
  ExpectError(std::string(4096, 'g'), ErrorCode::kCorrupt, "not a tar header at byte 0");
  ExpectError(TarBuilder().AddFile("a", "1").AddBytes(std::string(512, 'g')).bytes(),
              ErrorCode::kCorrupt, "not a tar header at byte 1024");
}

TEST(TarReaderTest, BrokenStructuresAreErrors) {
  ExpectError(TarBuilder().AddExtension('L', "name").AddEnd().bytes(), ErrorCode::kCorrupt,
              "extension header without a member");
  ExpectError(TarBuilder().AddBytes(std::string(512, '\0')).AddFile("a", "1").bytes(),
              ErrorCode::kCorrupt, "lone zero block");
  ExpectError(TarBuilder().AddFile("", "1").bytes(), ErrorCode::kCorrupt, "without a name");
  for (const std::string& pax :
       {std::string("no number=1\n"), std::string("99 path=a\n"), std::string("9 path=ab"),
        std::string("7 path\n"), std::string("1 "), std::string("0 a=b\n"), std::string(" =\n"),
        std::string("999999999999999999999999 a=b\n"), PaxRecord("size", "x"),
        PaxRecord("size", "-1"), PaxRecord("path", std::string("a\0b", 3))}) {
    const Outcome outcome = Read(TarBuilder().AddExtension('x', pax).AddFile("a", "1").bytes());
    EXPECT_EQ(outcome.code, ErrorCode::kCorrupt) << pax << outcome.error;
  }
}

// ---- whatever the pieces

TEST(TarReaderTest, PiecesOfAnySizeGiveTheSame) {
  TarBuilder tar;
  tar.AddFile("a", "hello").AddExtension('L', std::string(600, 'l')).AddFile("b", "x");
  tar.AddExtension('x', PaxRecord("path", "pax")).AddFile("c", std::string(1025, 'y'));
  tar.AddHeader({.name = "dir", .size = OctalSize(0), .type = '5'}).AddFile("d", "").AddEnd();
  const Outcome whole = Read(tar.bytes());
  ASSERT_EQ(whole.members.size(), 4);
  for (size_t piece = 1; piece <= 1030; ++piece) {
    const Outcome outcome = Read(tar.bytes(), piece);
    ASSERT_EQ(outcome.members, whole.members) << piece;
    ASSERT_EQ(outcome.offsets, whole.offsets) << piece;
    ASSERT_EQ(outcome.error, "");
  }
}

// ---- archives of other programs

bool Runs(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

class GnuTarTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GnuTarTest, ItsArchivesAreRead) {
  if (!Runs("tar --version")) GTEST_SKIP() << "skipped: needs the program tar";
  TempFolder folder;
  const std::string long_name = "in/" + std::string(90, 'd') + "/" + std::string(90, 'f') + ".jpg";
  folder.Write("in/a.jpg", "hello");
  folder.Write("in/b.cls", "");
  folder.Write("in/big.bin", std::string(100'000, 'b'));
  folder.Write(long_name, "long");
  folder.Write("in/l.jpg", "x");
  const std::string path = folder.path().string();
  ASSERT_TRUE(Runs("ln -s a.jpg " + path + "/in/link && tar -C " + path +
                   " --format=" + GetParam() + " --sort=name -cf " + path + "/out.tar in"));
  Members expected = {{"in/a.jpg", "hello"},
                      {"in/b.cls", ""},
                      {"in/big.bin", std::string(100'000, 'b')},
                      {long_name, "long"},
                      {"in/l.jpg", "x"}};
  Members members = MembersOf(ReadFile(path + "/out.tar"));
  std::sort(members.begin(), members.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(members, expected);
}

INSTANTIATE_TEST_SUITE_P(Formats, GnuTarTest, ::testing::Values("gnu", "pax", "ustar", "oldgnu"));

class PythonTarTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PythonTarTest, ItsArchivesAreRead) {
  if (!Runs("python3 --version")) GTEST_SKIP() << "skipped: needs the program python3";
  TempFolder folder;
  const std::string script = folder.Write("make.py", R"(
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w", format=getattr(tarfile, sys.argv[2])) as tar:
  for i in range(50):
    name = "d" * (i * 7 % 50) + "/" + "\u00fc" * (i % 5) + "n" * (i * 37 % 150) + str(i) + ".jpg"
    data = bytes([i]) * (i * 997 % 5000)
    info = tarfile.TarInfo(name)
    info.size = len(data)
    if i % 3 == 0 and sys.argv[2] == "PAX_FORMAT": info.mtime = 1.5
    if i % 10 == 0:
      link = tarfile.TarInfo("link%d" % i)
      link.type, link.linkname = tarfile.SYMTYPE, "l" * 200 if sys.argv[2] != "USTAR_FORMAT" else "l"
      tar.addfile(link)
    tar.addfile(info, io.BytesIO(data))
)");
  const std::string out = folder.Path("out.tar");
  ASSERT_TRUE(Runs("python3 " + script + " " + out + " " + GetParam()));
  const Members members = MembersOf(ReadFile(out));
  ASSERT_EQ(members.size(), 50);
  for (size_t i = 0; i < members.size(); ++i) {
    std::string name = std::string(i * 7 % 50, 'd') + "/";
    for (size_t k = 0; k < i % 5; ++k) name += "\xc3\xbc";
    name += std::string(i * 37 % 150, 'n') + std::to_string(i) + ".jpg";
    EXPECT_EQ(members[i].first, name);
    EXPECT_EQ(members[i].second, std::string(i * 997 % 5000, static_cast<char>(i)));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PythonTarTest, ::testing::Values("GNU_FORMAT", "PAX_FORMAT"));

}  // namespace
}  // namespace echopipe::internal
