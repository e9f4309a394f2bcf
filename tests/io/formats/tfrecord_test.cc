#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/formats/tf_example.h>
#include <echopipe/proto/tf_example.pb.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::internal {
namespace {

using ::echopipe::testing::ExampleBuilder;
using ::echopipe::testing::MakeExample;
using ::echopipe::testing::TfRecordBuilder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return text;
}

std::string TextOf(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

// "key label=3 image=ab12 name=...", or "key: error".
std::string Describe(const Sample& sample) {
  if (sample.error) return sample.key + ": " + std::string(ToString(sample.error->code()));
  std::string text = sample.key;
  if (sample.record->label) text += " label=" + std::to_string(*sample.record->label);
  for (const Record::Member& member : sample.record->members) {
    text += " " + member.name + "=" + Hex(TextOf(*member.bytes));
  }
  return text;
}

/// How a shard comes: in pieces of this size, from an offset on.
struct Coming {
  size_t piece = ~size_t{0};
  uint64_t offset = 0;
  bool size_is_known = true;
};

std::vector<Sample> ReadSamples(const std::string& bytes, BufferPool& pool,
                                const Coming& coming = {}, const ExampleFeatures& features = {}) {
  TfExampleReader reader(std::make_shared<const std::string>("a.tfrecord"), features, pool,
                         coming.offset);
  if (coming.size_is_known) reader.SetShardSize(bytes.size());
  std::vector<Sample> samples;
  for (size_t at = coming.offset; !reader.at_end();) {
    if (std::optional<Sample> sample = reader.Next()) {
      samples.push_back(*std::move(sample));
    } else if (at == bytes.size()) {
      reader.Finish();
    } else {
      const size_t size = std::min(coming.piece, bytes.size() - at);
      reader.Feed({reinterpret_cast<const uint8_t*>(bytes.data()) + at, size});
      at += size;
    }
  }
  return samples;
}

std::vector<std::string> Read(const std::string& bytes, const ExampleFeatures& features = {}) {
  BufferPool pool;
  std::vector<std::string> texts;
  for (const Sample& sample : ReadSamples(bytes, pool, {}, features)) {
    texts.push_back(Describe(sample));
  }
  return texts;
}

std::string ErrorText(const std::string& bytes, const ExampleFeatures& features = {}) {
  BufferPool pool;
  for (const Sample& sample : ReadSamples(bytes, pool, {}, features)) {
    if (sample.error) return sample.error->what();
  }
  return "none";
}

// Three records, and where they begin.
std::string ThreeRecords(std::vector<size_t>* begins = nullptr) {
  TfRecordBuilder shard;
  for (const char* key : {"a", "b", "c"}) {
    if (begins != nullptr) begins->push_back(shard.bytes().size());
    shard.AddRecord(MakeExample(key, std::string("image of ") + key, 7));
  }
  return shard.bytes();
}

uint32_t Crc(std::string_view text) {
  return Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// RFC 3720, B.4, and the usual check value.
TEST(Crc32cTest, IsTheOneOfTheStandard) {
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(Crc("123456789"), 0xe3069283);
  EXPECT_EQ(Crc(std::string(32, '\0')), 0x8a9136aa);
  EXPECT_EQ(Crc(std::string(32, '\xff')), 0x62a8ab43);
  EXPECT_EQ(Crc(rising), 0x46dd794e);
  EXPECT_EQ(Crc(""), 0u);
}

struct Reference {
  const char* name;
  const char* hex;
  std::vector<std::string> records;
};

std::vector<Reference> References() {
  return {
#include <echopipe/tests/io/formats/tfrecord_references.inc>
  };
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(TfRecordReferencesTest, TensorFlowsOwnShardsReadAsTensorFlowReadsThem) {
  size_t records = 0;
  for (const Reference& reference : References()) {
    const std::string_view name = reference.name;
    const std::string bytes = FromHex(reference.hex);
    if (name == "gzip" || name == "zlib") {
      EXPECT_THAT(Read(bytes), ElementsAre("@0: unsupported"));
      EXPECT_THAT(ErrorText(bytes), HasSubstr("compressed with " + std::string(name)));
      continue;
    }
    EXPECT_EQ(Read(bytes), reference.records) << name;
    records += reference.records.size();
  }
  EXPECT_EQ(records, 7);
}

TEST(TfRecordTest, ARecordBecomesImageLabelAndMembersInTheOrderOfTheirNames) {
  const std::string example = ExampleBuilder()
                                  .AddInts("z", {1, -1})
                                  .AddInts("n", {5})
                                  .Add("pic", {"P"})
                                  .AddFloats("f", {1.5F})
                                  .Add("t", {"x", "yz"})
                                  .Add("one", {"1"})
                                  .Add("none", {})
                                  .Add("id", {"k"})
                                  .bytes();
  const std::string shard = TfRecordBuilder().AddRecord(example).bytes();
  EXPECT_THAT(Read(shard, {.image = "pic", .label = "n", .key = "id"}),
              ElementsAre("k label=5 image=50 f=0000c03f none= one=31 "
                          "t=01000000000000007802000000000000" +
                          std::string("00797a z=0100000000000000ffffffffffffffff")));
  EXPECT_THAT(Read(shard, {.image = "pic", .label = "", .key = "n"}),
              ElementsAre(::testing::StartsWith("5 image=50 f=0000c03f id=6b none= one=31 t=")));
}

TEST(TfRecordTest, ARecordWithoutAKeyIsCalledByItsOffset) {
  const std::string bare =
      ExampleBuilder().Add("image/encoded", {"P"}).AddInts("image/class/label", {1}).bytes();
  TfRecordBuilder shard;
  shard.AddRecord(bare).AddRecord(bare);
  const std::string second = std::to_string(shard.bytes().size() / 2);
  EXPECT_THAT(Read(shard.bytes()),
              ElementsAre("@0 label=1 image=50", "@" + second + " label=1 image=50"));
  EXPECT_THAT(Read(shard.bytes(), {.key = "id"}),
              ElementsAre("@0: missing_member", "@" + second + ": missing_member"));
}

TEST(TfRecordTest, TheLastOfFeaturesThatComeTwiceCounts) {
  const std::string example = MakeExample("k", "first", 1) + MakeExample("l", "2", 2);
  EXPECT_THAT(Read(TfRecordBuilder().AddRecord(example).bytes()),
              ElementsAre("l label=2 image=32"));
}

TEST(TfRecordTest, RecordsThatLackOrMixUpFeaturesAreBadAlone) {
  const std::string good = MakeExample("k", "P", 1);
  const auto read = [&](const std::string& example) {
    const std::vector<std::string> texts =
        Read(TfRecordBuilder().AddRecord(example).AddRecord(good).bytes());
    EXPECT_THAT(texts, SizeIs(2));
    EXPECT_EQ(texts.back(), "k label=1 image=50");
    return texts.front();
  };
  EXPECT_EQ(read(ExampleBuilder().Add("image/encoded", {"P"}).bytes()), "@0: missing_member");
  EXPECT_EQ(read(ExampleBuilder().AddInts("image/class/label", {1}).bytes()), "@0: missing_member");
  EXPECT_EQ(read(MakeExample("x", "P", 1) + ExampleBuilder().Add("image/encoded", {}).bytes()),
            "x: corrupt");
  EXPECT_EQ(
      read(MakeExample("x", "P", 1) + ExampleBuilder().Add("image/encoded", {"P", "Q"}).bytes()),
      "x: corrupt");
  EXPECT_EQ(read(MakeExample("x", "P", 1) + ExampleBuilder().AddInts("image/encoded", {1}).bytes()),
            "x: corrupt");
  EXPECT_EQ(read(MakeExample("x", "P", 1) +
                 ExampleBuilder().AddInts("image/class/label", {1, 2}).bytes()),
            "x: corrupt");
  EXPECT_EQ(
      read(MakeExample("x", "P", 1) + ExampleBuilder().AddFloats("image/class/label", {1}).bytes()),
      "x: corrupt");
  EXPECT_EQ(read(MakeExample("x", "P", 1) + ExampleBuilder().Add("image", {"Q"}).bytes()),
            "x: corrupt");
  EXPECT_EQ(read("no protobuf"), "@0: corrupt");
  EXPECT_EQ(read(""), "@0: missing_member");
}

TEST(TfRecordTest, DataThatDoesNotFitToItsChecksumLosesThatRecordAlone) {
  std::vector<size_t> begins;
  const std::string shard = ThreeRecords(&begins);
  const std::vector<std::string> whole = Read(shard);
  ASSERT_THAT(whole, SizeIs(3));
  const std::string at = "@" + std::to_string(begins[1]);
  for (size_t byte = begins[1] + 12; byte < begins[2]; ++byte) {
    std::string broken = shard;
    broken[byte] = static_cast<char>(broken[byte] ^ 0x10);
    ASSERT_THAT(Read(broken), ElementsAre(whole[0], at + ": corrupt", whole[2])) << byte;
    EXPECT_THAT(ErrorText(broken), AllOf(HasSubstr("a.tfrecord"), HasSubstr("checksum"),
                                         HasSubstr("byte " + std::to_string(begins[1]))));
  }
}

TEST(TfRecordTest, ALengthThatDoesNotFitToItsChecksumEndsTheShardByName) {
  std::vector<size_t> begins;
  const std::string shard = ThreeRecords(&begins);
  const std::vector<std::string> whole = Read(shard);
  for (size_t byte = begins[1]; byte < begins[1] + 12; ++byte) {
    std::string broken = shard;
    broken[byte] = static_cast<char>(broken[byte] ^ 0x10);
    ASSERT_THAT(Read(broken), ElementsAre(whole[0], "@" + std::to_string(begins[1]) + ": corrupt"));
    EXPECT_THAT(ErrorText(broken), AllOf(HasSubstr("a.tfrecord"), HasSubstr("length"),
                                         HasSubstr("byte " + std::to_string(begins[1]))));
  }
}

TEST(TfRecordTest, AShardThatEndsInsideARecordIsTruncatedThere) {
  std::vector<size_t> begins;
  const std::string shard = ThreeRecords(&begins);
  const std::vector<std::string> whole = Read(shard);
  for (const bool size_is_known : {false, true}) {
    for (size_t size = 0; size < shard.size(); ++size) {
      BufferPool pool;
      const std::vector<Sample> samples =
          ReadSamples(shard.substr(0, size), pool, {.piece = 50, .size_is_known = size_is_known});
      size_t complete = 0;
      while (complete < 2 && size >= begins[complete + 1]) ++complete;
      const bool at_a_border = size == begins[complete];
      ASSERT_THAT(samples, SizeIs(complete + (at_a_border ? 0 : 1))) << size;
      for (size_t i = 0; i < complete; ++i) EXPECT_EQ(Describe(samples[i]), whole[i]);
      if (at_a_border) continue;
      EXPECT_EQ(samples.back().error->code(), ErrorCode::kTruncated);
      EXPECT_TRUE(samples.back().ends_shard);
      EXPECT_THAT(
          samples.back().error->what(),
          AllOf(HasSubstr("a.tfrecord"), HasSubstr("byte " + std::to_string(begins[complete]))));
    }
  }
}

TEST(TfRecordTest, LengthsAreBoundedBeforeMemoryIsTakenForThem) {
  BufferPool pool;
  const std::string last = MakeExample("k", "P", 1);
  // Over the bound: named and passed over. (Whether it really is that long is not known here.)
  const uint64_t large = TfRecordReader::kMaxRecordBytes + 1;
  TfRecordReader reader("a.tfrecord", pool);
  const std::string header = TfRecordBuilder().AddLength(large).bytes();
  const std::string zeros(size_t{1} << 20, '\0');
  const auto feed = [&](std::string_view text) {
    reader.Feed({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  feed(header);
  EXPECT_EQ(reader.Next().kind, TfRecordReader::Kind::kNeedBytes);
  for (uint64_t left = large + 4; left > 0;) {
    const uint64_t size = std::min<uint64_t>(left, zeros.size());
    feed(std::string_view(zeros).substr(0, size));
    left -= size;
    const TfRecordReader::Event event = reader.Next();
    if (left == 0) {
      ASSERT_TRUE(event.error);
      EXPECT_EQ(event.error->code(), ErrorCode::kLimitExceeded);
      EXPECT_THAT(event.error->what(), HasSubstr("byte 0"));
    }
  }
  EXPECT_EQ(reader.Next().kind, TfRecordReader::Kind::kNeedBytes);
  const std::string behind = TfRecordBuilder().AddRecord(last).bytes();
  feed(behind);
  EXPECT_EQ(reader.Next().data.size(), last.size());
  EXPECT_EQ(pool.peak_bytes_in_use(), 0);

  for (const uint64_t length :
       {uint64_t{1} << 29, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 16}) {
    const std::string shard = TfRecordBuilder().AddLength(length).AddBytes("12345678").bytes();
    const std::vector<Sample> samples = ReadSamples(shard, pool);
    ASSERT_THAT(samples, SizeIs(1));
    EXPECT_TRUE(samples[0].ends_shard);
    EXPECT_TRUE(samples[0].error);
    EXPECT_EQ(pool.peak_bytes_in_use(), 0);
  }
}

TEST(TfRecordTest, CompressedShardsAreNamed) {
  for (const auto& [begin, name] : {std::pair{"\x1f\x8b\x08", "gzip"},
                                    {"\x78\x9c", "zlib"},
                                    {"\x78\x01", "zlib"},
                                    {"\x28\xb5\x2f\xfd", "zstd"}}) {
    for (const size_t size : {size_t{0}, size_t{5}, size_t{100}}) {
      EXPECT_THAT(ErrorText(begin + std::string(size, 'z')),
                  HasSubstr("compressed with " + std::string(name)));
    }
  }
  EXPECT_THAT(ErrorText("something else altogether"), HasSubstr("length"));
}

// A tower of empty fields takes two bytes each, but an object once it is parsed.
TEST(TfRecordTest, RecordsOfVeryManyValuesAreNotParsed) {
  proto::TfExample example;
  proto::TfFeatureEntry& entry = *example.mutable_features()->add_feature();
  for (int i = 0; i < 1'000'100; ++i) entry.mutable_feature()->mutable_bytes_list()->add_value();
  EXPECT_THAT(Read(TfRecordBuilder().AddRecord(example.SerializeAsString()).bytes()),
              ElementsAre("@0: limit_exceeded"));
  example.Clear();
  for (int i = 0; i < 300; ++i) {
    example.mutable_features()->add_feature()->set_name(std::to_string(i));
  }
  EXPECT_THAT(Read(TfRecordBuilder().AddRecord(example.SerializeAsString()).bytes()),
              ElementsAre("@0: limit_exceeded"));
}

TEST(TfRecordTest, PiecesOfAnySizeGiveTheSameSamples) {
  const std::string shard = ThreeRecords();
  const std::vector<std::string> whole = Read(shard);
  for (size_t piece = 1; piece < shard.size(); ++piece) {
    BufferPool pool;
    std::vector<std::string> texts;
    for (const Sample& sample : ReadSamples(shard, pool, {.piece = piece})) {
      texts.push_back(Describe(sample));
    }
    ASSERT_EQ(texts, whole) << piece;
  }
}

TEST(TfRecordTest, EverySampleIsFoundAgainByItsOffset) {
  std::vector<size_t> begins;
  const std::string shard = ThreeRecords(&begins);
  BufferPool pool;
  const std::vector<Sample> all = ReadSamples(shard, pool);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].offset, begins[i]);
    EXPECT_EQ(all[i].next_offset, i == 2 ? shard.size() : begins[i + 1]);
    EXPECT_EQ(all[i].ends_shard, i == 2);
    const std::vector<Sample> rest = ReadSamples(shard, pool, {.piece = 7, .offset = begins[i]});
    ASSERT_THAT(rest, SizeIs(3 - i));
    EXPECT_EQ(Describe(rest.front()), Describe(all[i]));
  }
  // An offset inside a record is none.
  EXPECT_TRUE(ReadSamples(shard, pool, {.offset = begins[1] + 1}).at(0).error);
}

TEST(TfRecordTest, RecordsOutliveTheReaderAndGiveTheirBuffersBack) {
  BufferPool pool;
  {
    const std::vector<Sample> samples = ReadSamples(ThreeRecords(), pool, {.piece = 10});
    EXPECT_EQ(Describe(samples.at(0)), "a label=7 image=" + Hex("image of a"));
  }
  EXPECT_EQ(pool.bytes_in_use(), 0);
}

TEST(TfRecordTest, AShardThatCannotBeReadFurtherIsABadSample) {
  BufferPool pool;
  TfExampleReader reader(std::make_shared<const std::string>("a.tfrecord"), {}, pool);
  const std::string shard = ThreeRecords();
  reader.Feed({reinterpret_cast<const uint8_t*>(shard.data()), shard.size() / 2});
  EXPECT_TRUE(reader.Next());
  EXPECT_FALSE(reader.Next());
  EXPECT_GT(reader.held_bytes(), 0);
  const Sample failed = reader.Fail(Error({.code = ErrorCode::kIo, .what = "torn"}));
  EXPECT_EQ(Describe(failed), "@" + std::to_string(shard.size() / 3) + ": io");
  EXPECT_TRUE(failed.ends_shard);
  EXPECT_TRUE(reader.at_end());
}

// What a changed byte, or a cut, leaves of a shard is some of its records, or bad ones.
TEST(TfRecordMutationTest, BytesCutOffOrChangedNeverGiveOtherRecords) {
  RandomStream random({.low = 5, .high = 6});
  BufferPool pool;
  int good = 0;
  int bad = 0;
  for (int round = 0; round < 20'000; ++round) {
    TfRecordBuilder shard;
    for (uint32_t left = 1 + random.Below(5); left > 0; --left) {
      shard.AddRecord(MakeExample(std::to_string(random.Below(1000)),
                                  std::string(random.Below(60), 'p'), random.Below(9)));
    }
    const std::vector<std::string> originals = Read(shard.bytes());
    std::string mutated = shard.bytes();
    if (random.Below(3) == 0) {
      mutated.resize(random.Below(static_cast<uint32_t>(mutated.size())));
    } else {
      char& byte = mutated[random.Below(static_cast<uint32_t>(mutated.size()))];
      byte = static_cast<char>(byte ^ (1 + random.Below(255)));
    }
    for (const Sample& sample : ReadSamples(mutated, pool, {.piece = 1 + random.Below(300)})) {
      ++(sample.error ? bad : good);
      if (sample.error) continue;
      ASSERT_THAT(originals, Contains(Describe(sample))) << round;
    }
  }
  EXPECT_GT(good, 10'000);
  EXPECT_GT(bad, 10'000);
}

// Behind a checksum that fits anything may stand, but within bounds.
TEST(TfRecordMutationTest, ExamplesOfAnyBytesAreReadOrBad) {
  RandomStream random({.low = 7, .high = 8});
  BufferPool pool;
  for (int round = 0; round < 50'000; ++round) {
    std::string example = MakeExample("key", "image", 3) +
                          ExampleBuilder().AddFloats("f", {1, 2}).Add("t", {"a", "b"}).bytes();
    for (uint32_t changes = 1 + random.Below(4); changes > 0; --changes) {
      example[random.Below(static_cast<uint32_t>(example.size()))] =
          static_cast<char>(random.Below(256));
    }
    EXPECT_THAT(ReadSamples(TfRecordBuilder().AddRecord(example).bytes(), pool), SizeIs(1));
  }
  EXPECT_LT(pool.peak_bytes_in_use(), size_t{1} << 16);
}

}  // namespace
}  // namespace echopipe::internal
