// A full shuffle of shards, by their indexes. Its order laws: source_order_test.cc.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/formats/shard_index.h>
#include <echopipe/tests/io/source_harness.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/shard_indexes.h>

namespace echopipe {
namespace {

using internal::IndexNameOf;
using internal::ShardIndex;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::ErrorOf;
using testing::FakeStorage;
using testing::GatedStorage;
using ::testing::HasSubstr;
using testing::IndexBytes;
using testing::IndexOf;
using ::testing::IsEmpty;
using testing::MakeExample;
using ::testing::Not;
using testing::ParseSpec;
using testing::PutIndexes;
using testing::PutShards;
using testing::PutTfRecords;
using ::testing::SizeIs;
using testing::SourceHarness;
using ::testing::StartsWith;
using testing::TarBuilder;
using testing::TfRecordBuilder;
using ::testing::UnorderedElementsAreArray;

class IndexedSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<SourceHarness> Open(const std::string& spec, SourceOptions options = {},
                                      uint64_t completion_seed = 0) {
    return std::make_unique<SourceHarness>(ParseSpec(spec), storage_, std::move(options),
                                           completion_seed);
  }
  Error ErrorOfOpen(const std::string& spec) {
    return ErrorOf([&] { Open(spec); });
  }
  /// A shard and its index; nothing of the shard is read when it is opened.
  void Put(const std::string& name, const std::string& bytes) {
    FakeStorage scratch;
    scratch.Put(name, bytes);
    storage_->Put(name, bytes);
    PutIndexes({name}, scratch, *storage_);
  }
  void PutIndex(const std::string& shard, const std::string& bytes) {
    storage_->Put(IndexNameOf(shard), bytes);
    storage_->OpenGateFor(IndexNameOf(shard));
  }
  static std::string Tar(int first, int samples) {
    TarBuilder tar;
    for (int i = first; i < first + samples; ++i) {
      tar.AddFile(std::to_string(i) + ".jpg", "image " + std::to_string(i));
      tar.AddFile(std::to_string(i) + ".cls", std::to_string(i));
    }
    return tar.AddEnd().bytes();
  }

  std::shared_ptr<FakeStorage> storage_ = GatedStorage();
};

// ---- opening

TEST_F(IndexedSourceTest, ShardsWithoutAnIndexAreNamedWithTheCommandThatMakesIt) {
  Put("s0.tar", Tar(0, 2));
  for (const char* name : {"s1.tar", "s2.tar", "s3.tar", "s4.tar"}) {
    storage_->Put(name, Tar(9, 1));
    storage_->OpenGateFor(IndexNameOf(name));
  }
  const Error error = ErrorOfOpen("uri: 's{0..4}.tar' shuffle { full {} }");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(error.details().where, "source.shuffle.full");
  EXPECT_THAT(error.what(), HasSubstr("4 of 5 have none: s1.tar, s2.tar, s3.tar, ..."));
  EXPECT_EQ(error.details().wanted, "echopipe index 's{0..4}.tar'");
}

TEST_F(IndexedSourceTest, TheCommandSaysTheFormatWhereNamesDoNot) {
  storage_->Put("it's", "");
  storage_->OpenGateFor(IndexNameOf("it's"));
  EXPECT_EQ(ErrorOfOpen("uri: 'it\\'s' format: TFRECORD shuffle { full {} }").details().wanted,
            "echopipe index --format tfrecord 'it'\\''s'");
}

TEST_F(IndexedSourceTest, AnIndexThatIsNoneIsRefusedWithTheCommandThatMakesItAnew) {
  storage_->Put("s.tar", Tar(0, 3));
  storage_->OpenGateFor("s.tar");
  const std::string good = IndexBytes("s.tar", Tar(0, 3));
  std::string damaged = good;
  damaged.back() ^= 1;
  std::string newer = good;
  newer[8] = 99;
  const std::string other_format =
      IndexBytes("s.tfrecord", TfRecordBuilder().AddRecord("x").bytes());
  struct Case {
    std::string bytes;
    ErrorCode code;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {damaged, ErrorCode::kCorrupt, "damaged"},
           {good.substr(0, 30), ErrorCode::kTruncated, "cut off"},
           {"a text of someone's", ErrorCode::kCorrupt, "not an index"},
           {newer, ErrorCode::kUnsupported, "newer"},
           {other_format, ErrorCode::kCorrupt, "another format"},
           {IndexBytes("s.tar", Tar(0, 2)), ErrorCode::kCorrupt, "s.tar is not what it was"},
           {IndexBytes("s.tar", Tar(5, 3)), ErrorCode::kCorrupt, "s.tar is not what it was"},
           {std::string(ShardIndex::kMaxBytes + 1, 'x'), ErrorCode::kLimitExceeded, "too large"},
       }) {
    PutIndex("s.tar", c.bytes);
    const Error error = ErrorOfOpen("uri: 's.tar' shuffle { full {} }");
    EXPECT_EQ(error.code(), c.code) << error.what();
    EXPECT_EQ(error.details().where, "s.tar.echopipe-index") << error.what();
    EXPECT_THAT(error.what(), HasSubstr(c.text));
    if (c.code == ErrorCode::kCorrupt) {
      EXPECT_THAT(error.what(), HasSubstr("echopipe index 's.tar'"));
    }
  }
  PutIndex("s.tar", good);
  EXPECT_EQ(Open("uri: 's.tar' shuffle { full {} }")->source().epoch_size(), 3);
}

// More than the first read of one brings.
TEST_F(IndexedSourceTest, ALargeIndexIsReadWhole) {
  constexpr uint64_t kSamples = 150'000;
  ShardIndex index{.shard_size = kSamples, .modified_ns = 7};
  for (uint64_t i = 0; i < kSamples; ++i) index.samples.push_back({.offset = i, .length = 1});
  const std::string bytes = index.ToBytes("i");
  ASSERT_GT(bytes.size(), 262'144);
  storage_->Put("s.tar", std::string(kSamples, 'x'));
  storage_->SetTime("s.tar", 7);
  PutIndex("s.tar", bytes);
  EXPECT_EQ(Open("uri: 's.tar' shuffle { full {} }")->source().epoch_size(), kSamples);
}

TEST_F(IndexedSourceTest, ManyIndexesAreReadSomeAtATime) {
  FakeStorage scratch;
  const int shards = PutShards(scratch, 4000);
  ASSERT_GT(shards, 64);
  PutShards(*storage_, 4000);
  std::vector<std::string> names;
  for (int i = 0; i < shards; ++i) names.push_back("s" + std::to_string(i) + ".tar");
  PutIndexes(names, scratch, *storage_);
  const std::string spec = "uri: 's{0.." + std::to_string(shards - 1) + "}.tar' ";
  EXPECT_EQ(Open(spec + "shuffle { full {} }")->source().epoch_size(), 4000);
}

TEST_F(IndexedSourceTest, APatternTakesNoIndexForAShard) {
  Put("a/s0.tar", Tar(0, 2));
  Put("a/s1.tar", Tar(2, 2));
  storage_->Put("a/s1.tar.echopipe-index.tmp", "left behind");
  for (const char* shuffle : {"", " shuffle { full {} }", " shuffle { window: 2 }"}) {
    EXPECT_THAT(Open(std::string("uri: 'a/*'") + shuffle)->TakeAll(), SizeIs(4)) << shuffle;
  }
  EXPECT_THAT(ErrorOfOpen("uri: 'a/*.echopipe-index'").what(), HasSubstr("nothing matches"));
}

TEST_F(IndexedSourceTest, AnIndexIsLookedAtForAFullShuffleAlone) {
  storage_->Put("s.tar", Tar(0, 9));
  PutIndex("s.tar", "no index at all");
  for (const char* shuffle : {"", " shuffle { window: 3 }"}) {
    EXPECT_THAT(Open(std::string("uri: 's.tar'") + shuffle)->TakeAll(), SizeIs(9)) << shuffle;
  }
  for (const ReadRequest& request : storage_->requests()) EXPECT_EQ(request.path, "s.tar");
}

TEST_F(IndexedSourceTest, TheEpochsSizeIsKnown) {
  Put("s0.tar", Tar(0, 7));
  Put("s1.tar", Tar(7, 4));
  const std::string spec = "uri: 's{0,1}.tar' shuffle { full {} }";
  EXPECT_EQ(Open(spec, {.shard = {.rank = 1, .world = 2}})->source().epoch_size(), 5);
  EXPECT_EQ(Open(spec + " take: 8")->source().epoch_size(), 8);
}

TEST_F(IndexedSourceTest, OtherShardsOrSamplesHaveAnotherFingerprint) {
  Put("a.tar", Tar(0, 3));
  Put("b.tar", Tar(0, 3));
  const auto fingerprint = [&](const std::string& uri) {
    return Open("uri: '" + uri + "' shuffle { full {} }")->source().fingerprint();
  };
  const uint64_t a = fingerprint("a.tar");
  EXPECT_EQ(fingerprint("a.tar"), a);
  EXPECT_NE(fingerprint("b.tar"), a);
  EXPECT_NE(fingerprint("{a,b}.tar"), fingerprint("{b,a}.tar"));
  Put("a.tar", Tar(0, 2));
  EXPECT_NE(fingerprint("a.tar"), a);
}

// ---- what comes

// "0.3 key ..." without its place and its end.
std::vector<std::string> WithoutPlaces(std::vector<std::string> items) {
  for (std::string& item : items) {
    item = item.substr(item.find(' ') + 1);
    if (item.ends_with(" END")) item.resize(item.size() - 4);
  }
  return items;
}

TEST_F(IndexedSourceTest, GivesWhatTheStreamGivesBadOnesToo) {
  TarBuilder tar;
  tar.AddFile("a.jpg", "1").AddFile("a.cls", "1").AddFile("b.jpg", "2");
  tar.AddFile("c.jpg", "3").AddFile("c.cls", "x").AddFile("d.jpg", "4").AddFile("d.JPG", "5");
  tar.AddFile("a.jpg", "6").AddFile("a.cls", "6").AddFile("e.jpg", "7").AddFile("e.cls", "7");
  const std::string good = tar.bytes();
  Put("ends.tar", TarBuilder().AddBytes(good).AddEnd().bytes());
  Put("cut.tar", good.substr(0, good.size() - 700));
  Put("cut-header.tar", good.substr(0, good.size() - 1600));
  Put("broken.tar", good + std::string(600, 'x'));
  Put("nothing.tar", "");
  Put("rubbish.tar", std::string(3000, 'x'));
  TfRecordBuilder records;
  records.AddRecord(MakeExample("r", "1", 1)).AddRecord("no example");
  std::string broken = records.bytes();
  broken.back() ^= 1;
  Put("good.tfrecord", records.bytes());
  Put("sums.tfrecord", broken + records.bytes());
  Put("length.tfrecord", records.bytes() + std::string(50, 'x') + records.bytes());
  Put("cut.tfrecord", records.bytes().substr(0, records.bytes().size() - 5));
  Put("cut-length.tfrecord", records.bytes() + records.bytes().substr(0, 7));
  for (const char* name : {"ends.tar", "cut.tar", "cut-header.tar", "broken.tar", "nothing.tar",
                           "rubbish.tar", "good.tfrecord", "sums.tfrecord", "length.tfrecord",
                           "cut.tfrecord", "cut-length.tfrecord"}) {
    for (const char* label : {"", " tar { label: '-' } tfrecord { label: '-' }"}) {
      const std::string spec = std::string("uri: '") + name + "'" + label;
      const auto stream = Open(spec);
      const std::vector<std::string> streamed = WithoutPlaces(stream->TakeAll());
      ASSERT_FALSE(streamed.empty()) << spec;
      EXPECT_THAT(WithoutPlaces(Open(spec + " shuffle { full {} }")->TakeAll()),
                  UnorderedElementsAreArray(streamed))
          << spec;
    }
  }
}

TEST_F(IndexedSourceTest, ABadOneIsNamedAsInTheStream) {
  Put("s.tar", TarBuilder().AddBytes(Tar(0, 2)).bytes().substr(0, 4096) + Tar(0, 1));
  const auto harness = Open("uri: 's.tar' shuffle { full {} }");
  std::vector<std::string> errors;
  while (!harness->source().AtEnd()) {
    for (const SourceItem& item : harness->PollOnce(4)) {
      if (item.error) errors.emplace_back(item.error->what());
    }
    harness->CompleteOne();
  }
  EXPECT_THAT(errors, ElementsAre("s.tar: sample 0: the key comes back after other samples"));
}

// Nothing that arrives would wake the caller for them.
TEST_F(IndexedSourceTest, SamplesThatAreNotReadNeedNoWaking) {
  ShardIndex index = IndexOf("s.tar", Tar(0, 50));
  for (uint64_t i = 0; i < 50; ++i) {
    index.lost.push_back({.sample = i, .code = ErrorCode::kCorrupt, .what = "lost"});
  }
  Put("s.tar", Tar(0, 50));
  index.modified_ns = *storage_->ModifiedAt("s.tar");
  PutIndex("s.tar", index.ToBytes("i"));
  const auto harness = Open("uri: 's.tar' shuffle { full {} } epochs: 2");
  EXPECT_THAT(harness->PollOnce(3), SizeIs(3));
  EXPECT_THAT(harness->PollOnce(1000), SizeIs(97));
  EXPECT_TRUE(harness->source().AtEnd());
  EXPECT_THAT(storage_->pending(), IsEmpty());
}

TEST_F(IndexedSourceTest, WhatIsNoSampleAnyMoreIsBadAlone) {
  Put("s.tar", Tar(0, 5));
  const auto harness = Open("uri: 's.tar' shuffle { full {} }");
  std::string changed = Tar(0, 5);
  changed.replace(2 * 2048, 512, std::string(512, 'x'));
  storage_->Put("s.tar", changed);
  std::vector<std::string> items = WithoutPlaces(harness->TakeAll());
  std::ranges::sort(items);
  EXPECT_THAT(items, ElementsAre(StartsWith("0 label"), StartsWith("1 label"),
                                 StartsWith("3 label"), StartsWith("4 label"), "@4096 corrupt"));
}

// As one that is hostile may have it.
TEST_F(IndexedSourceTest, APlaceWithTwoSamplesIsABadOne) {
  ShardIndex index = IndexOf("s.tar", Tar(0, 3));
  index.samples = {{0, 4096}, {4096, 2048}};
  Put("s.tar", Tar(0, 3));
  index.modified_ns = *storage_->ModifiedAt("s.tar");
  PutIndex("s.tar", index.ToBytes("i"));
  EXPECT_THAT(WithoutPlaces(Open("uri: 's.tar' shuffle { full {} }")->TakeAll()),
              UnorderedElementsAreArray({" truncated", "2 label=2 image=image 2"}));
}

TEST_F(IndexedSourceTest, EachSampleIsReadByItsPlaceOnce) {
  Put("s.tar", Tar(0, 5));
  Open("uri: 's.tar' shuffle { full {} }")->TakeAll();
  std::vector<uint64_t> offsets;
  for (const ReadRequest& request : storage_->requests()) {
    if (request.path != "s.tar") continue;
    EXPECT_EQ(request.length, request.offset == 4 * 2048 ? 2048 + 1024 : 2048);
    offsets.push_back(request.offset);
  }
  EXPECT_THAT(offsets, UnorderedElementsAreArray({0, 2048, 4096, 6144, 8192}));
}

TEST_F(IndexedSourceTest, AShardThatGoesAwayGivesBadItems) {
  Put("s.tar", Tar(0, 3));
  const auto harness = Open("uri: 's.tar' shuffle { full {} }");
  storage_->Remove("s.tar");
  EXPECT_THAT(WithoutPlaces(harness->TakeAll()),
              UnorderedElementsAreArray({" not_found", "@2048 not_found", "@4096 not_found"}));
}

// ---- limits

void PutIndexedShards(FakeStorage& storage, int samples, int big_every) {
  FakeStorage scratch;
  std::vector<std::string> names(static_cast<size_t>(PutShards(scratch, samples, big_every)));
  PutShards(storage, samples, big_every);
  for (size_t i = 0; i < names.size(); ++i) names[i] = "s" + std::to_string(i) + ".tar";
  PutIndexes(names, scratch, storage);
}

TEST_F(IndexedSourceTest, ReadsKeepTheLimits) {
  PutIndexedShards(*storage_, 300, 5);
  const SourceLimits limits{.reads_in_flight = 6, .bytes_in_flight = 300'000};
  const auto harness =
      Open("uri: 's{0..24}.tar' shuffle { full {} } epochs: 2", {.limits = limits}, 3);
  EXPECT_THAT(harness->Take(10'000, 50), SizeIs(600));
  const SourceCounters counters = harness->source().counters();
  EXPECT_EQ(counters.reads_in_flight, 0);
  EXPECT_EQ(counters.bytes_in_flight, 0);
  EXPECT_EQ(counters.peak_reads_in_flight, 6);
  EXPECT_LE(counters.peak_bytes_in_flight, 300'000);
  EXPECT_GT(counters.peak_bytes_in_flight, 200'000);
}

TEST_F(IndexedSourceTest, TheSampleDueNextMayAlwaysBeRead) {
  PutIndexedShards(*storage_, 30, 5);
  const auto harness = Open("uri: 's{0..8}.tar' shuffle { full {} }",
                            {.limits = {.reads_in_flight = 8, .bytes_in_flight = 50'000}}, 3);
  EXPECT_THAT(harness->Take(100, 50), SizeIs(30));
  const SourceCounters counters = harness->source().counters();
  EXPECT_EQ(counters.bytes_in_flight, 0);
  // Alone: nothing else is under way then.
  EXPECT_LE(counters.peak_bytes_in_flight, 50'000 + harness->largest() + 3 * 1024);
}

/// Completes each read when the next one is started.
class LaggingStorage final : public Storage {
 public:
  explicit LaggingStorage(std::shared_ptr<FakeStorage> inner) : inner_(std::move(inner)) {}

  Result<std::vector<FolderEntry>> List(const std::string& folder) override {
    return inner_->List(folder);
  }
  Result<uint64_t> Size(const std::string& path) override { return inner_->Size(path); }
  std::optional<int64_t> ModifiedAt(const std::string& path) override {
    return inner_->ModifiedAt(path);
  }
  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    const std::vector<FakeStorage::PendingRead> before = inner_->pending();
    const ReadId id = inner_->Read(std::move(request), pool, std::move(callback));
    for (const FakeStorage::PendingRead& read : before) inner_->Complete(read.id);
    return id;
  }
  void Cancel(ReadId id) override { inner_->Cancel(id); }
  StorageStats Stats() const override { return inner_->Stats(); }

 private:
  std::shared_ptr<FakeStorage> inner_;
};

TEST_F(IndexedSourceTest, AReadThatArrivesWhileOthersAreStartedMakesRoomForOne) {
  PutIndexedShards(*storage_, 28, 0);
  BufferPool pool;
  const std::unique_ptr<Source> source = OpenSource(
      ParseSpec("uri: 's{0..7}.tar' shuffle { full {} }"),
      std::make_shared<LaggingStorage>(storage_), pool, {.limits = {.reads_in_flight = 2}});
  std::vector<SourceItem> items;
  for (int poll = 0; poll < 100 && !source->AtEnd(); ++poll) {
    source->Poll(28 - items.size(), &items);
    storage_->CompleteAll();
  }
  EXPECT_THAT(items, SizeIs(28));
  EXPECT_EQ(source->counters().peak_reads_in_flight, 2);
}

// What waits for its consumer counts.
TEST_F(IndexedSourceTest, NothingIsReadAboveTheLimitWhileSamplesWait) {
  PutIndexedShards(*storage_, 40, 1);
  const auto harness = Open("uri: 's{0..8}.tar' shuffle { full {} }",
                            {.limits = {.reads_in_flight = 8, .bytes_in_flight = 250'000}});
  harness->PollOnce(10);
  EXPECT_THAT(storage_->pending(), SizeIs(2));
  storage_->CompleteAll();
  EXPECT_THAT(harness->PollOnce(0), IsEmpty());
  EXPECT_THAT(storage_->pending(), IsEmpty());
  EXPECT_GT(harness->source().counters().bytes_in_flight, 200'000);
  EXPECT_THAT(harness->PollOnce(2), SizeIs(2));
  ASSERT_THAT(storage_->pending(), SizeIs(1));  // the one that had to wait
  EXPECT_EQ(harness->source().counters().bytes_in_flight, storage_->pending()[0].request.length);
}

// ---- reading again

TEST_F(IndexedSourceTest, RereadSamplesComeBesideTheOthersEachOnce) {
  Put("s0.tar", Tar(0, 4));
  Put("s1.tar", Tar(4, 4));
  const std::string spec = "uri: 's{0,1}.tar' shuffle { full {} }";
  const auto harness = Open(spec, {}, 2);
  std::vector<std::string> whole;
  std::vector<RecordPlace> places;
  while (!harness->source().AtEnd()) {
    for (const SourceItem& item : harness->PollOnce(8)) {
      places.push_back(item.place);
      whole.push_back(testing::Describe(item));
    }
    harness->CompleteOne();
  }
  ASSERT_THAT(places, SizeIs(8));
  const auto again = Open(spec, {.limits = {.reads_in_flight = 3, .bytes_in_flight = 4000}}, 4);
  again->source().Reread({places[6], places[1]});
  std::vector<std::string> fresh;
  std::vector<std::string> reread(2);
  while (!again->source().AtEnd()) {
    std::vector<SourceItem> items;
    again->source().Poll(8 - fresh.size(), &items);
    for (const SourceItem& item : items) {
      if (item.reread) {
        reread.at(*item.reread) = testing::Describe(item);
      } else {
        fresh.push_back(testing::Describe(item));
      }
    }
    again->CompleteOne();
  }
  EXPECT_EQ(fresh, whole);
  const std::vector<std::string> expected = WithoutPlaces({whole[6], whole[1]});
  EXPECT_EQ(WithoutPlaces(reread), expected);
  EXPECT_EQ(again->source().counters().bytes_in_flight, 0);
}

TEST_F(IndexedSourceTest, OnlyPlacesOfSamplesAreReadAgain) {
  Put("s.tar", Tar(0, 3));
  for (const RecordPlace& place :
       {RecordPlace{.file = 1, .offset = 0, .length = 2048},
        RecordPlace{.offset = 1, .length = 2048}, RecordPlace{.offset = 0, .length = 2047},
        RecordPlace{.offset = 0, .length = ~uint64_t{0}}}) {
    const auto harness = Open("uri: 's.tar' shuffle { full {} }");
    EXPECT_EQ(ErrorOf([&] { harness->source().Reread({place}); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace echopipe
