#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/formats/shard_index.h>
#include <echopipe/io/index_shard.h>
#include <echopipe/io/source_format.h>
#include <echopipe/proto/index.pb.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/shard_indexes.h>
#include <echopipe/tests/support/tar_builder.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::internal {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExampleBuilder;
using testing::FakeStorage;
using ::testing::HasSubstr;
using testing::IndexOf;
using ::testing::IsEmpty;
using testing::MakeExample;
using ::testing::SizeIs;
using testing::TarBuilder;
using testing::TfRecordBuilder;

using Place = std::pair<uint64_t, uint64_t>;

std::vector<Place> PlacesOf(const ShardIndex& index) {
  std::vector<Place> places;
  for (const ShardIndex::Place& place : index.samples) {
    places.emplace_back(place.offset, place.length);
  }
  return places;
}

// ---- what is listed

// A member of up to 512 bytes takes a block for its header and one for itself.
TEST(IndexShardTest, ListsWhereTheSamplesOfATarAre) {
  TarBuilder tar;
  tar.AddFile(".hidden", "x").AddFile("a.jpg", "1").AddFile("a.cls", "2");
  tar.AddFile("b.jpg", std::string(600, '.')).AddFile("b.cls", "2").AddFile("dir/.hidden", "x");
  tar.AddFile("no-label.jpg", "1").AddEnd();
  const ShardIndex index = IndexOf("s.tar", tar.bytes());
  EXPECT_EQ(index.format, proto::Source::TAR);
  EXPECT_EQ(index.shard_size, tar.bytes().size());
  EXPECT_THAT(PlacesOf(index),
              ElementsAre(Place(1024, 2048), Place(3072, 3584), Place(6656, 2048)));
  EXPECT_THAT(index.lost, IsEmpty());
}

TEST(IndexShardTest, ListsWhereTheRecordsOfATfRecordAre) {
  TfRecordBuilder records;
  records.AddRecord(std::string(10, 'x')).AddRecord("").AddRecord(MakeExample("k", "image", 1));
  const ShardIndex index = IndexOf("s.tfrecord", records.bytes());
  EXPECT_EQ(index.format, proto::Source::TFRECORD);
  EXPECT_THAT(PlacesOf(index),
              ElementsAre(Place(0, 26), Place(26, 16), Place(42, records.bytes().size() - 42)));
  EXPECT_THAT(index.lost, IsEmpty());
}

TEST(IndexShardTest, AKeyThatComesBackIsLostSinceItsBytesDoNotTell) {
  TarBuilder tar;
  for (const char* key : {"a", "b", "a"}) {
    tar.AddFile(std::string(key) + ".jpg", "1").AddFile(std::string(key) + ".cls", "2");
  }
  const ShardIndex index = IndexOf("s.tar", tar.AddEnd().bytes());
  ASSERT_THAT(index.samples, SizeIs(3));
  ASSERT_THAT(index.lost, SizeIs(1));
  EXPECT_EQ(index.lost[0].sample, 2);
  EXPECT_EQ(index.lost[0].key, "a");
  EXPECT_EQ(index.lost[0].code, ErrorCode::kCorrupt);
  EXPECT_THAT(index.lost[0].what, HasSubstr("comes back"));
}

// What one spec calls bad another may not.
TEST(IndexShardTest, SamplesWithoutALabelAreNotLostTheLastOneNeither) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "1").AddFile("b.jpg", "1").AddFile("b.cls", "x").AddFile("c.jpg", "1");
  const ShardIndex index = IndexOf("s.tar", tar.AddEnd().bytes());
  EXPECT_THAT(index.samples, SizeIs(3));
  EXPECT_THAT(index.lost, IsEmpty());
}

TEST(IndexShardTest, AnEmptyTfRecordHasAnIndexWithoutSamples) {
  const ShardIndex index = IndexOf("s.tfrecord", "");
  EXPECT_THAT(index.samples, IsEmpty());
  EXPECT_EQ(index.shard_size, 0);
}

TEST(IndexShardTest, AShardThatShrinksMeanwhileIsAnError) {
  FakeStorage storage;
  storage.Put("s.tfrecord", TfRecordBuilder().AddRecord(std::string(1000, 'x')).bytes());
  storage.ShrinkInReads("s.tfrecord", 500);
  BufferPool pool;
  const auto format = proto::Source::TFRECORD;
  const Error error =
      ErrorOf([&] { IndexShard("s.tfrecord", format, *ShardFormatOf({}, format), storage, pool); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_EQ(error.details().where, "s.tfrecord");
}

// ---- the file

ShardIndex SomeIndex() {
  return {.format = proto::Source::TFRECORD,
          .shard_size = uint64_t{1} << 40,
          .modified_ns = 1'700'000'000'123'456'789,
          .fingerprint = 0xdeadbeef,
          .samples = {{0, 10}, {10, 0}, {12, uint64_t{3} << 30}, {uint64_t{1} << 39, 5}},
          .lost = {{.sample = 2, .key = "k\xff", .code = ErrorCode::kTruncated, .what = "cut"}}};
}

TEST(ShardIndexTest, ComesBackFromItsBytes) {
  EXPECT_EQ(ShardIndex::FromBytes(SomeIndex().ToBytes("i"), "i"), SomeIndex());
}

TEST(ShardIndexTest, TakesFewBytesASample) {
  ShardIndex index{.shard_size = uint64_t{1} << 40};
  for (uint64_t i = 0; i < 10'000; ++i) index.samples.push_back({i * 100'000, 100'000});
  EXPECT_LT(index.ToBytes("i").size(), 4.1 * 10'000);
}

TEST(ShardIndexTest, EveryDamagedBitIsNoticed) {
  const std::string bytes = SomeIndex().ToBytes("i");
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(ShardIndex::FromBytes(damaged, "i"), Error) << bit;
  }
}

TEST(ShardIndexTest, WhatIsNoWholeIndexIsRefusedByName) {
  const std::string bytes = SomeIndex().ToBytes("i");
  std::string newer = bytes;
  newer[8] = 2;
  struct Case {
    std::string bytes;
    ErrorCode code;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {"", ErrorCode::kTruncated, "cut off"},
           {bytes.substr(0, 23), ErrorCode::kTruncated, "cut off"},
           {bytes.substr(0, bytes.size() - 1), ErrorCode::kTruncated, "cut off"},
           {bytes + "x", ErrorCode::kCorrupt, "damaged"},
           {"some other file of some size", ErrorCode::kCorrupt, "not an index"},
           {newer, ErrorCode::kUnsupported, "newer version"},
       }) {
    const Error error = ErrorOf([&] { ShardIndex::FromBytes(c.bytes, "a/s.tar.echopipe-index"); });
    EXPECT_EQ(error.code(), c.code) << error.what();
    EXPECT_EQ(error.details().where, "a/s.tar.echopipe-index");
    EXPECT_THAT(error.what(), HasSubstr(c.text));
  }
}

std::string WithMessage(const proto::ShardIndex& message) {
  // The header of any index, with size and checksum put right.
  std::string bytes = ShardIndex().ToBytes("i").substr(0, 24) + message.SerializeAsString();
  const uint64_t size = bytes.size() - 24;
  std::memcpy(bytes.data() + 16, &size, sizeof(size));
  const uint32_t checksum =
      Crc32c({reinterpret_cast<const uint8_t*>(bytes.data()) + 16, bytes.size() - 16});
  std::memcpy(bytes.data() + 12, &checksum, sizeof(checksum));
  return bytes;
}

proto::ShardIndex Message(uint64_t shard_size, const std::vector<uint64_t>& gaps,
                          const std::vector<uint64_t>& lengths) {
  proto::ShardIndex message;
  message.set_format(proto::Source::TAR);
  message.set_shard_size(shard_size);
  message.mutable_gap()->Add(gaps.begin(), gaps.end());
  message.mutable_length()->Add(lengths.begin(), lengths.end());
  return message;
}

TEST(ShardIndexTest, SamplesThatNoShardCanHaveAreRefused) {
  constexpr uint64_t kMost = ~uint64_t{0};
  const auto parse = [](const proto::ShardIndex& message) {
    return ShardIndex::FromBytes(WithMessage(message), "i");
  };
  EXPECT_THAT(PlacesOf(parse(Message(10, {1, 0}, {2, 7}))), ElementsAre(Place(1, 2), Place(3, 7)));
  std::vector<proto::ShardIndex> wrong = {
      Message(10, {0}, {11}),          Message(10, {11}, {0}),    Message(10, {5}, {6}),
      Message(10, {0, 0}, {5, 6}),     Message(10, {kMost}, {2}), Message(10, {1}, {kMost}),
      Message(10, {0, kMost}, {5, 6}), Message(10, {0, 0}, {1}),  Message(10, {0}, {1, 1}),
      Message(kMost, {0}, {kMost}),
  };
  wrong.push_back(Message(10, {0}, {10}));
  wrong.back().set_format(proto::Source::IMAGE_FOLDER);
  const auto with_lost = [](std::vector<uint64_t> samples, const std::string& code,
                            size_t key_bytes) {
    proto::ShardIndex message = Message(10, {0, 0}, {5, 5});
    for (const uint64_t sample : samples) {
      proto::LostSample& lost = *message.add_lost();
      lost.set_sample(sample);
      lost.set_code(code);
      lost.set_key(std::string(key_bytes, 'k'));
    }
    return message;
  };
  EXPECT_THAT(parse(with_lost({0, 1}, "corrupt", 65'536)).lost, SizeIs(2));
  wrong.push_back(with_lost({2}, "corrupt", 1));
  wrong.push_back(with_lost({1, 1}, "corrupt", 1));
  wrong.push_back(with_lost({1, 0}, "corrupt", 1));
  wrong.push_back(with_lost({1}, "nonsense", 1));
  wrong.push_back(with_lost({1}, "corrupt", 65'537));
  for (const proto::ShardIndex& message : wrong) {
    const Error error = ErrorOf([&] { parse(message); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << message.DebugString();
    EXPECT_THAT(error.what(), HasSubstr("cannot be meant")) << message.DebugString();
  }
}

TEST(ShardIndexTest, IndexesAreToldByTheirNames) {
  EXPECT_EQ(IndexNameOf("a/s.tar"), "a/s.tar.echopipe-index");
  EXPECT_TRUE(IsIndexName("s.tar.echopipe-index"));
  EXPECT_TRUE(IsIndexName("s.tar.echopipe-index.tmp"));
  EXPECT_FALSE(IsIndexName("s.tar"));
  EXPECT_FALSE(IsIndexName("s.echopipe-index.tar"));
}

// ---- whether it fits

class FitToShardsTest : public ::testing::Test {
 protected:
  static std::string Shard(int samples) {
    TarBuilder tar;
    for (int i = 0; i < samples; ++i) {
      const std::string key = "s" + std::to_string(i);
      tar.AddFile(key + ".jpg", std::string(2000, '.')).AddFile(key + ".cls", "1");
    }
    return tar.AddEnd().bytes();
  }
  bool Fits(const ShardIndex& index) {
    return FitToShards({&index, 1}, std::vector<std::string>{"s.tar"}, storage_, pool_).at(0);
  }

  FakeStorage storage_;
  BufferPool pool_;
};

TEST_F(FitToShardsTest, ACopyFitsByItsContents) {
  const ShardIndex index = IndexOf("s.tar", Shard(10));
  storage_.Put("s.tar", Shard(10));
  EXPECT_TRUE(Fits(index));
  storage_.SetTime("s.tar", 5);
  EXPECT_TRUE(Fits(index));
}

TEST_F(FitToShardsTest, OneOfTheSameSizeAndTimeFitsUnread) {
  ShardIndex index = IndexOf("s.tar", Shard(10));
  index.modified_ns = 5;
  storage_.Put("s.tar", Shard(10));
  storage_.SetTime("s.tar", 5);
  EXPECT_TRUE(Fits(index));
  EXPECT_THAT(storage_.requests(), IsEmpty());
}

TEST_F(FitToShardsTest, AnotherSizeDoesNotFitAtTheSameTimeNeither) {
  ShardIndex index = IndexOf("s.tar", Shard(10));
  storage_.Put("s.tar", Shard(10) + std::string(512, '\0'));
  EXPECT_FALSE(Fits(index));
  index.modified_ns = 5;
  storage_.SetTime("s.tar", 5);
  EXPECT_FALSE(Fits(index));
}

// An unknown time is as good as none.
TEST_F(FitToShardsTest, OtherContentsDoNotFit) {
  ShardIndex index = IndexOf("s.tar", Shard(10));
  for (const size_t sample : {0u, 3u, 6u, 9u}) {
    std::string changed = Shard(10);
    changed[index.samples[sample].offset + 130] ^= 1;  // in its first header
    storage_.Put("s.tar", changed);
    EXPECT_FALSE(Fits(index)) << sample;
    storage_.SetTime("s.tar", 0);
    EXPECT_FALSE(Fits(index)) << sample;
  }
}

TEST_F(FitToShardsTest, AShardThatIsGoneIsAnError) {
  const ShardIndex index = IndexOf("s.tar", Shard(1));
  EXPECT_EQ(ErrorOf([&] { Fits(index); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace echopipe::internal
