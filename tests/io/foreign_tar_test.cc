// Shards as other programs write them (scripts/make-tar-references), read as a source reads them.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <zlib.h>

#include <echopipe/tests/io/source_harness.h>
#include <echopipe/tests/support/files.h>

namespace echopipe {
namespace {

using ::echopipe::testing::GatedStorage;
using ::echopipe::testing::ParseSpec;
using ::echopipe::testing::ReadFile;
using ::echopipe::testing::SourceHarness;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string InFolder(const std::string& name) {
  return std::string(ECHOPIPE_FOREIGN_TARS) + "/" + name;
}

/// What the script says of a shard: a line for each sample.
struct Shard {
  std::string name;
  std::vector<std::string> samples;
};

void PrintTo(const Shard& shard, std::ostream* out) { *out << shard.name; }

// "= name" begins a shard.
std::vector<Shard> Expected() {
  std::istringstream text(ReadFile(InFolder("expected")));
  std::vector<Shard> shards;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("= ")) {
      shards.push_back({.name = line.substr(2), .samples = {}});
    } else if (!line.starts_with("# ")) {
      shards.back().samples.push_back(line);
    }
  }
  return shards;
}

// "307:0a1b2c3d"
std::string Checksum(std::span<const uint8_t> bytes) {
  char text[40];
  std::snprintf(text, sizeof(text), "%zu:%08lx", bytes.size(),
                crc32(0, bytes.data(), static_cast<uInt>(bytes.size())));
  return text;
}

// "key label=3 image=... txt=...", the image first, then by name; or "key: code".
std::string Describe(const SourceItem& item) {
  if (item.error) {
    const bool is_refused = item.error->code() == ErrorCode::kUnsupported;
    return item.key + ": " +
           (is_refused ? std::string("refused: ") + item.error->what()
                       : std::string(ToString(item.error->code())));
  }
  std::string text = item.record->key;
  if (item.record->label) text += " label=" + std::to_string(*item.record->label);
  std::vector<Record::Member> members = item.record->members;
  std::ranges::sort(members.begin() + 1, members.end(), {}, &Record::Member::name);
  for (const Record::Member& member : members) {
    text += " " + member.name + "=" + Checksum(member.bytes->bytes());
  }
  return text;
}

std::vector<std::string> Read(const std::vector<std::string>& names, const std::string& uri) {
  const auto storage = GatedStorage();
  for (const std::string& name : names) storage->Put(name, ReadFile(InFolder(name)));
  SourceHarness harness(ParseSpec("uri: '" + uri + "'"), storage, {});
  std::vector<std::string> samples;
  while (!harness.source().AtEnd() && !harness.error()) {
    const std::vector<SourceItem> items = harness.PollOnce(8);
    for (const SourceItem& item : items) samples.push_back(Describe(item));
    if (items.empty()) harness.CompleteOne();
  }
  return samples;
}

class ForeignTarTest : public ::testing::TestWithParam<Shard> {};

TEST_P(ForeignTarTest, IsReadAsItWasWritten) {
  const Shard& shard = GetParam();
  const std::string name = shard.name + ".tar";
  const std::vector<std::string> samples = Read({name}, name);
  ASSERT_THAT(samples, SizeIs(shard.samples.size()));
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string& expected = shard.samples[i];
    const size_t refused = expected.find("refused: unsupported ");
    if (refused == std::string::npos) {
      EXPECT_EQ(samples[i], expected);
      continue;
    }
    // Whose turn it was, that it is refused, and what it is called.
    EXPECT_THAT(samples[i], ::testing::StartsWith(expected.substr(0, refused)));
    EXPECT_THAT(samples[i], HasSubstr("refused: "));
    EXPECT_THAT(samples[i], HasSubstr(expected.substr(expected.rfind(' ') + 1)));
    EXPECT_THAT(samples[i], HasSubstr(name));
  }
}

std::string NameOf(const ::testing::TestParamInfo<Shard>& info) {
  std::string name = info.param.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(AllPrograms, ForeignTarTest, ::testing::ValuesIn(Expected()), NameOf);

TEST(ForeignTarsTest, ShardWritersShardsAreOneSourceInBraces) {
  std::vector<std::string> names;
  std::vector<std::string> samples;
  for (const Shard& shard : Expected()) {
    if (!shard.name.starts_with("wds_shard_writer-")) continue;
    names.push_back(shard.name + ".tar");
    samples.insert(samples.end(), shard.samples.begin(), shard.samples.end());
  }
  ASSERT_THAT(names, SizeIs(3));
  EXPECT_THAT(samples, SizeIs(5));
  EXPECT_EQ(Read(names, "wds_shard_writer-{000000..000002}.tar"), samples);
}

}  // namespace
}  // namespace echopipe
