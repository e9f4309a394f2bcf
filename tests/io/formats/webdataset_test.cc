#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/io/formats/webdataset.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::internal {
namespace {

using ::echopipe::testing::kNoTestData;
using ::echopipe::testing::PaxRecord;
using ::echopipe::testing::ReadFile;
using ::echopipe::testing::TarBuilder;
using ::echopipe::testing::TestData;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// "key label=3 image=... txt=...", or "key: error".
std::string Describe(const Sample& sample) {
  if (sample.error) {
    return sample.key + ": " + std::string(ToString(sample.error->code()));
  }
  std::string text = sample.key;
  if (sample.record->label) text += " label=" + std::to_string(*sample.record->label);
  for (const Record::Member& member : sample.record->members) {
    const std::span<const uint8_t> bytes = member.bytes->bytes();
    text += " " + member.name + "=" + std::string(bytes.begin(), bytes.end());
  }
  return text;
}

std::vector<Sample> ReadSamples(const std::string& bytes, const SampleMembers& members,
                                BufferPool& pool, size_t piece = ~size_t{0}, uint64_t offset = 0,
                                const std::vector<uint64_t>& keys = {}) {
  WebDatasetReader reader(std::make_shared<const std::string>("shard.tar"), members, pool, offset,
                          keys);
  reader.SetShardSize(bytes.size());
  std::vector<Sample> samples;
  for (size_t at = offset; !reader.at_end();) {
    if (std::optional<Sample> sample = reader.Next()) {
      samples.push_back(*std::move(sample));
    } else if (at == bytes.size()) {
      reader.Finish();
    } else {
      const size_t size = std::min(piece, bytes.size() - at);
      reader.Feed({reinterpret_cast<const uint8_t*>(bytes.data()) + at, size});
      at += size;
    }
  }
  return samples;
}

class WebDatasetTest : public ::testing::Test {
 protected:
  std::vector<std::string> Read(const std::string& bytes) {
    std::vector<std::string> texts;
    for (const Sample& sample : ReadSamples(bytes, members_, pool_)) {
      texts.push_back(Describe(sample));
    }
    return texts;
  }
  std::string ErrorOf(const std::string& bytes) {
    for (const Sample& sample : ReadSamples(bytes, members_, pool_)) {
      if (sample.error) return sample.error->what();
    }
    return "none";
  }

  BufferPool pool_;
  SampleMembers members_;
};

TEST_F(WebDatasetTest, AdjacentMembersOfOneKeyAreASample) {
  TarBuilder tar;
  tar.AddFile("d/a.jpg", "A").AddFile("d/a.cls", "1").AddFile("d/b.cls", " 22\n");
  tar.AddFile("d/b.png", "B").AddEnd();
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("d/a label=1 image=A", "d/b label=22 image=B"));
}

TEST_F(WebDatasetTest, TheKeyEndsAtTheFirstDotOfTheLastComponent) {
  TarBuilder tar;
  tar.AddFile("v1.0/a.seg.png", "S").AddFile("v1.0/a.jpg", "A").AddFile("v1.0/a.cls", "1");
  tar.AddFile("v1.0b/a.jpg", "B").AddFile("v1.0b/a.cls", "2");
  EXPECT_THAT(Read(tar.bytes()),
              ElementsAre("v1.0/a label=1 image=A seg.png=S", "v1.0b/a label=2 image=B"));
}

TEST_F(WebDatasetTest, OtherMembersPassThroughByTheirExtension) {
  TarBuilder tar;
  tar.AddFile("a.json", "{}").AddFile("a.jpg", "A").AddFile("a.cls", "-5").AddFile("a.TXT", "t");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a label=-5 image=A json={} TXT=t"));
}

TEST_F(WebDatasetTest, TheFirstImageExtensionInTheOrderGivenWins) {
  members_.image = {"png", "jpg"};
  TarBuilder tar;
  tar.AddFile("a.jpg", "J").AddFile("a.png", "P").AddFile("a.cls", "1");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a label=1 image=P jpg=J"));
}

TEST_F(WebDatasetTest, ExtensionsAreMatchedWithoutRegardToCase) {
  TarBuilder tar;
  tar.AddFile("a.JPG", "J").AddFile("a.Cls", "1");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a label=1 image=J"));
}

TEST_F(WebDatasetTest, WithoutALabelTheMemberPassesThrough) {
  members_.label = "";
  TarBuilder tar;
  tar.AddFile("a.jpg", "J").AddFile("a.cls", "x");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a image=J cls=x"));
}

TEST_F(WebDatasetTest, NamesWithoutKeyOrExtensionArePassedOver) {
  TarBuilder tar;
  tar.AddFile("readme", "r").AddFile(".hidden", "h").AddFile("a.jpg", "A").AddFile("._a.cls", "x");
  tar.AddFile("d/.b.jpg", "h").AddFile("a.cls", "1").AddFile("c.", "");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a label=1 image=A"));
}

TEST_F(WebDatasetTest, AMissingMemberIsNamed) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "A").AddFile("b.cls", "1").AddFile("c.jpg", "C").AddFile("c.cls", "2");
  EXPECT_THAT(Read(tar.bytes()),
              ElementsAre("a: missing_member", "b: missing_member", "c label=2 image=C"));
  EXPECT_THAT(ErrorOf(tar.bytes()),
              AllOf(HasSubstr("shard.tar"), HasSubstr("sample a"), HasSubstr("label member .cls")));
}

TEST_F(WebDatasetTest, ALabelThatIsNoIntegerMakesTheSampleBad) {
  for (const char* label : {"", " ", "1.5", "cat", "1 2", "0x1", "99999999999999999999"}) {
    TarBuilder tar;
    tar.AddFile("a.jpg", "A").AddFile("a.cls", label).AddFile("b.jpg", "B").AddFile("b.cls", "1");
    EXPECT_THAT(Read(tar.bytes()), ElementsAre("a: corrupt", "b label=1 image=B")) << label;
  }
}

TEST_F(WebDatasetTest, AnExtensionThatComesTwiceMakesTheSampleBad) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "A").AddFile("a.JPG", "B").AddFile("a.cls", "1");
  tar.AddFile("b.jpg", "B").AddFile("b.cls", "1").AddFile("b.image", "I");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a: corrupt", "b: corrupt"));
  EXPECT_THAT(ErrorOf(tar.bytes()), HasSubstr("JPG"));
}

TEST_F(WebDatasetTest, AKeyThatComesBackIsBadEachTime) {
  TarBuilder tar;
  for (const char* key : {"a", "b", "a", "c", "b"}) {
    tar.AddFile(std::string(key) + ".jpg", "I").AddFile(std::string(key) + ".cls", "1");
  }
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a label=1 image=I", "b label=1 image=I", "a: corrupt",
                                             "c label=1 image=I", "b: corrupt"));
}

TEST_F(WebDatasetTest, TooManyMembersMakeTheSampleBadAndAreNotKept) {
  TarBuilder tar;
  for (int i = 0; i < 300; ++i) tar.AddFile("a.x" + std::to_string(i), std::string(1000, 'x'));
  tar.AddFile("b.jpg", "B").AddFile("b.cls", "1");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a: limit_exceeded", "b label=1 image=B"));
}

TEST_F(WebDatasetTest, ABrokenShardEndsWithOneBadSampleThatNamesKeyShardAndByte) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "A").AddFile("a.cls", "1").AddFile("b.jpg", "B");
  const std::string broken = tar.bytes() + std::string(512, 'g');
  EXPECT_THAT(Read(broken), ElementsAre("a label=1 image=A", "b: corrupt"));
  EXPECT_THAT(ErrorOf(broken),
              AllOf(HasSubstr("shard.tar"), HasSubstr("b"), HasSubstr("byte 3072")));
  EXPECT_THAT(Read(std::string(512, 'g')), ElementsAre(": corrupt"));
}

TEST_F(WebDatasetTest, ATruncatedShardNeverGivesAWrongSample) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "AAAA").AddFile("a.cls", "1");
  tar.AddFile("b.jpg", std::string(600, 'B')).AddFile("b.cls", "2").AddEnd();
  const std::string a = "a label=1 image=AAAA";
  const std::string b = "b label=2 image=" + std::string(600, 'B');
  for (size_t size = 1; size < tar.bytes().size(); ++size) {
    for (const std::string& text : Read(tar.bytes().substr(0, size))) {
      const bool cut = text.ends_with(": truncated") || text.ends_with(": missing_member");
      EXPECT_TRUE(text == a || text == b || cut) << size << ": " << text;
      EXPECT_TRUE(cut || size >= 2048) << size;
      EXPECT_TRUE(text != b || size >= 4608) << size;
    }
  }
}

TEST_F(WebDatasetTest, GlobalPaxPathsAreRefused) {
  TarBuilder tar;
  tar.AddExtension('g', PaxRecord("comment", "fine")).AddFile("a.jpg", "A").AddFile("a.cls", "1");
  tar.AddExtension('g', PaxRecord("path", "b.jpg")).AddFile("b.jpg", "B");
  EXPECT_THAT(Read(tar.bytes()), ElementsAre("a: unsupported"));
}

TEST_F(WebDatasetTest, EverySampleIsFoundAgainByItsOffset) {
  TarBuilder tar;
  for (int i = 0; i < 10; ++i) {
    const std::string key = std::to_string(i);
    if (i % 3 == 0) tar.AddExtension('L', std::string("long") + key + ".jpg");
    tar.AddFile("long" + key + ".jpg", std::string(static_cast<size_t>(i) * 200, 'x'));
    tar.AddFile("long" + key + ".cls", key).AddFile(".hidden", "h");
  }
  tar.AddEnd();
  const std::vector<Sample> all = ReadSamples(tar.bytes(), members_, pool_);
  ASSERT_THAT(all, SizeIs(10));
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<Sample> rest =
        ReadSamples(tar.bytes(), members_, pool_, 700, all[i].offset, keys);
    ASSERT_THAT(rest, SizeIs(all.size() - i));
    EXPECT_EQ(Describe(rest.front()), Describe(all[i]));
    EXPECT_EQ(rest.front().offset, all[i].offset);
    EXPECT_EQ(all[i].next_offset, i == 9 ? tar.bytes().size() : all[i + 1].offset);
    keys.push_back(all[i].key_hash.value());
  }
  keys.push_back(all[0].key_hash.value());
  EXPECT_TRUE(ReadSamples(tar.bytes(), members_, pool_, 700, all[9].offset, keys)[0].error);
}

TEST_F(WebDatasetTest, RecordsOutliveTheReaderAndGiveTheirBuffersBack) {
  {
    const std::vector<Sample> samples = ReadSamples(
        TarBuilder().AddFile("a.jpg", "A").AddFile("a.cls", "1").bytes(), members_, pool_);
    EXPECT_EQ(Describe(samples.at(0)), "a label=1 image=A");
  }
  EXPECT_EQ(pool_.bytes_in_use(), 0);
}

TEST(HashSetTest, TellsWhatIsThere) {
  HashSet set;
  for (uint64_t i = 0; i < 5000; ++i) EXPECT_TRUE(set.Insert(i * 64));
  for (uint64_t i = 1; i < 5000; ++i) EXPECT_FALSE(set.Insert(i * 64));
  EXPECT_TRUE(set.Insert(7));
}

TEST(CifarTest, EveryShardHasItsSamplesWithTheLabelOfTheirClass) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  std::vector<std::string> classes;
  std::istringstream names(ReadFile(TestData() / "cifar10/classes.txt"));
  for (std::string name; std::getline(names, name);) classes.push_back(name);
  BufferPool pool;
  for (const char* shard : {"train-00.tar", "train-09.tar", "test-01.tar"}) {
    const std::vector<Sample> samples =
        ReadSamples(ReadFile(TestData() / "cifar10" / shard), {}, pool, 1 << 20);
    ASSERT_THAT(samples, SizeIs(5000));
    for (const Sample& sample : samples) {
      ASSERT_FALSE(sample.error);
      const std::string name = sample.key.substr(0, sample.key.rfind('_'));
      ASSERT_EQ(classes.at(static_cast<size_t>(sample.record->label.value())), name);
      ASSERT_EQ(sample.record->members.at(0).bytes->data()[0], 0xff);
    }
  }
}

// ---- mutations

std::string RandomArchive(RandomStream& random) {
  TarBuilder tar;
  for (uint32_t i = 0; i < 2 + random.Below(4); ++i) {
    const std::string key = "k" + std::to_string(i);
    if (random.Below(4) == 0) tar.AddExtension('x', PaxRecord("path", key + ".jpg"));
    if (random.Below(6) == 0) tar.AddExtension('g', PaxRecord("comment", "c"));
    if (random.Below(4) == 0) tar.AddExtension('L', key + ".jpg");
    tar.AddFile(key + ".jpg", std::string(random.Below(900), static_cast<char>('a' + i)));
    if (random.Below(5) == 0) tar.AddHeader({.name = "l", .size = "0", .type = '2'});
    tar.AddFile(key + ".cls", std::to_string(i));
  }
  return tar.AddEnd().bytes();
}

std::string Mutate(std::string bytes, RandomStream& random) {
  const uint32_t changes = 1 + random.Below(3);
  for (uint32_t change = 0; change < changes && !bytes.empty(); ++change) {
    const size_t at = random.Below(static_cast<uint32_t>(bytes.size()));
    switch (random.Below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random.Next());
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.erase(at / 512 * 512, 512);
        break;
      case 3:
        bytes.insert(at / 512 * 512, bytes.substr(at / 512 * 512, 512));
        break;
      case 4:
        // A digit of a header's size.
        if (const size_t digit = at / 512 * 512 + 124 + random.Below(12); digit < bytes.size()) {
          bytes[digit] = static_cast<char>('0' + random.Below(8));
        }
        break;
    }
  }
  return bytes;
}

// Recomputes the checksums of what stands where headers do, so that mutations get past them.
std::string WithChecksums(std::string bytes) {
  for (size_t block = 0; block + 512 <= bytes.size(); block += 512) {
    if (bytes.compare(block + 257, 5, "ustar") != 0) continue;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(block + 148), 8, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[block + i]);
    char text[8];
    std::snprintf(text, sizeof(text), "%06o", sum & 0777777);
    bytes.replace(block + 148, 7, text, 7);
  }
  return bytes;
}

TEST(TarMutationTest, MutatedArchivesGiveTheirOwnSamplesOrErrors) {
  RandomStream random({.low = 1, .high = 2});
  BufferPool pool;
  int good = 0;
  int bad = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string archive = RandomArchive(random);
    std::vector<std::string> originals;
    for (const Sample& sample : ReadSamples(archive, {}, pool)) {
      originals.push_back(Describe(sample));
    }
    const std::string mutated = Mutate(archive, random);
    const size_t piece = 1 + random.Below(2000);
    for (const Sample& sample : ReadSamples(mutated, {}, pool, piece)) {
      ++(sample.error ? bad : good);
      if (sample.error) continue;
      // A byte changed inside the data is not noticed by tar; everything else is.
      const auto original = std::find_if(originals.begin(), originals.end(), [&](const auto& text) {
        return text.starts_with(sample.key + " ");
      });
      ASSERT_NE(original, originals.end()) << round << " " << Describe(sample);
    }
    // With checksums made right again anything may come, but within bounds.
    ReadSamples(WithChecksums(mutated), {}, pool, piece);
  }
  EXPECT_GT(good, 10'000);
  EXPECT_GT(bad, 10'000);
  EXPECT_LT(pool.peak_bytes_in_use(), size_t{1} << 16);
}

TEST(TarMutationTest, BytesCutOffOrChangedInHeadersNeverGiveOtherBytes) {
  RandomStream random({.low = 3, .high = 4});
  BufferPool pool;
  for (int round = 0; round < 20'000; ++round) {
    const std::string archive = RandomArchive(random);
    const std::vector<Sample> samples = ReadSamples(archive, {}, pool);
    std::vector<std::string> originals;
    for (const Sample& sample : samples) originals.push_back(Describe(sample));
    std::string mutated = archive;
    if (random.Below(2) == 0) {
      mutated.resize(random.Below(static_cast<uint32_t>(mutated.size())));
    } else {
      // One byte of a sample's first header.
      const size_t header = samples[random.Below(static_cast<uint32_t>(samples.size()))].offset;
      char& byte = mutated[header + random.Below(512)];
      byte = static_cast<char>(byte ^ (1 + random.Below(255)));
    }
    for (const Sample& sample : ReadSamples(mutated, {}, pool, 1 + random.Below(3000))) {
      if (sample.error) continue;
      ASSERT_THAT(originals, ::testing::Contains(Describe(sample))) << round;
    }
  }
}

}  // namespace
}  // namespace echopipe::internal
