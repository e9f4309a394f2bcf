#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/io/source_harness.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/files.h>

namespace echopipe {
namespace {

using ::echopipe::testing::ExampleBuilder;
using ::echopipe::testing::FakeStorage;
using ::echopipe::testing::GatedStorage;
using ::echopipe::testing::kNoTestData;
using ::echopipe::testing::MakeExample;
using ::echopipe::testing::ParseSpec;
using ::echopipe::testing::PutFolder;
using ::echopipe::testing::PutManifests;
using ::echopipe::testing::PutShards;
using ::echopipe::testing::PutTfRecords;
using ::echopipe::testing::SourceHarness;
using ::echopipe::testing::TarBuilder;
using ::echopipe::testing::TestData;
using ::echopipe::testing::TfRecordBuilder;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// ---- the spec

TEST(ValidateSourceTest, NamesTheFieldThatCannotBeMeant) {
  struct Case {
    const char* spec;
    const char* field;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {"", "source.uri", "no uri"},
           {"uri: ''", "source.uri", "empty"},
           {"uri: 'a{b'", "source.uri", "brace"},
           {"uri: 'a.tar' uri: 'photos/'", "source.uri", "tar shards and folders"},
           {"uri: '{a.tar,b}'", "source.uri", "tar shards and folders"},
           {"uri: '{a.tar,b.tfrecord}'", "source.uri", "tar shards and TFRecord shards"},
           {"uri: 'a.tfrecord.gz'", "source.uri", "compressed"},
           {"uri: 'x' tfrecord { label: 'image/encoded' }", "source.tfrecord.label", "image"},
           {"uri: 'x' tfrecord { image: 'a' key: 'a' }", "source.tfrecord.key", "image"},
           {"uri: 'a.tar.gz'", "source.uri", "compressed"},
           {"uri: 's3://bucket/a.tar'", "source.uri", "no such scheme"},
           {"uri: 'a.csv' uri: 'photos/'", "source.uri", "manifests and folders"},
           {"uri: 'a.txt' format: MANIFEST", "source.uri", ".csv"},
           {"uri: 'x' manifest { label: 'path' }", "source.manifest.label", "path"},
           {"uri: 'x' shuffle { window: 0 }", "source.shuffle.window", "0"},
           {"uri: 'x' shuffle { window: 100000001 }", "source.shuffle.window", "100000001"},
           {"uri: 'x' epochs: 9999999999999", "source.epochs", "9999999999999"},
           {"uri: 'x' take: 9999999999999999999", "source.take", "9999999999999999999"},
           {"uri: 'x' tar { image: 'jpg;;png' }", "source.tar.image", "empty"},
           {"uri: 'x' tar { image: 'jpg;cls' }", "source.tar.label", "cls"},
       }) {
    const Error error = ErrorOf([&] { ValidateSource(ParseSpec(c.spec)); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << c.spec;
    EXPECT_EQ(error.details().where, c.field) << c.spec;
    EXPECT_THAT(error.what(), HasSubstr(c.text)) << c.spec;
  }
}

TEST(ValidateSourceTest, AcceptsWhatCanBeMeant) {
  for (const char* spec : {"uri: 'photos/' shuffle { full {} } epochs: 0",
                           "uri: 's-{000..999}.tar' shuffle { window: 1000 } take: 5",
                           "uri: 'x.tar' format: IMAGE_FOLDER shuffle { full {} }",
                           "uri: 'a-{0..3}.tar' shuffle { full {} }",
                           "uri: 'a.tfrecords-00000-of-00002' shuffle { full {} }",
                           "uri: 'x' format: TAR tar { image: 'WEBP' label: '-' }",
                           "uri: 'x-00000-of-00002' shuffle { full {} }",
                           "uri: 'a.csv' uri: 'b.jsonl' shuffle { full {} }",
                           "uri: '*.ndjson' manifest { path: 'file' label: '-' }",
                           "uri: 'a.tfrecord{,-00000-of-00002}' shuffle { window: 9 }",
                           "uri: 'x' format: TFRECORD tfrecord { label: '-' key: 'id' }"}) {
    EXPECT_NO_THROW(ValidateSource(ParseSpec(spec))) << spec;
  }
}

class SourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<SourceHarness> Open(const std::string& spec, SourceOptions options = {},
                                      uint64_t completion_seed = 0) {
    return std::make_unique<SourceHarness>(ParseSpec(spec), storage_, std::move(options),
                                           completion_seed);
  }
  void PutShard(const std::string& name, int first, int samples) {
    TarBuilder tar;
    for (int i = first; i < first + samples; ++i) {
      tar.AddFile(std::to_string(i) + ".jpg", "image").AddFile(std::to_string(i) + ".cls", "1");
    }
    storage_->Put(name, tar.AddEnd().bytes());
  }

  std::shared_ptr<FakeStorage> storage_ = GatedStorage();
};

TEST_F(SourceTest, OptionsOutOfRangeAreErrors) {
  PutFolder(*storage_, 3);
  for (const SourceOptions& options :
       {SourceOptions{.shard = {.rank = 2, .world = 2}}, SourceOptions{.shard = {.world = 0}},
        SourceOptions{.limits = {.reads_in_flight = 0}},
        SourceOptions{.limits = {.bytes_in_flight = 0}}, SourceOptions{.shard = {.world = 4}}}) {
    EXPECT_EQ(ErrorOf([&] { Open("uri: 'root'", options); }).code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(ErrorOf([&] { Open("uri: 'root' take: 1", {.shard = {.world = 2}}); }).details().where,
            "source.take");
}

TEST_F(SourceTest, AFolderThatIsNotThereIsAnErrorAtOpen) {
  EXPECT_EQ(ErrorOf([&] { Open("uri: 'nowhere'"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(ErrorOf([&] { Open("uri: 'nowhere/*.tar'"); }).code(), ErrorCode::kNotFound);
}

TEST_F(SourceTest, StatesOfOtherDataAreErrors) {
  PutFolder(*storage_, 3);
  PutShard("a.tar", 0, 3);
  const auto resident = [](uint64_t file) {
    SourceState state;
    state.window.admitted = 1;
    state.window.drawable = {{.item = 0, .uses = 0, .uses_left = 1}};
    state.residents = {{.place = {.file = file}}};
    return state;
  };
  SourceState unequal = resident(0);
  unequal.residents.clear();
  for (const SourceState& state : {resident(9), unequal, SourceState{.shard = 5},
                                   SourceState{.shard = 1, .byte_offset = 512}}) {
    EXPECT_EQ(ErrorOf([&] { Open("uri: 'root' shuffle { window: 9 }", {.start = state}); }).code(),
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(ErrorOf([&] { Open("uri: 'a.tar' shuffle { window: 9 }", {.start = state}); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

// ---- manifests

TEST_F(SourceTest, ManifestItemsTellWhereTheyComeFrom) {
  PutManifests(*storage_, 4);
  const auto harness = Open("uri: 'root/0.csv' uri: 'root/1.jsonl'");
  harness->PollOnce(4);
  storage_->CompleteAll();
  const std::vector<SourceItem> items = harness->PollOnce(4);
  ASSERT_THAT(items, SizeIs(4));
  EXPECT_EQ(*items[3].uri, "root/c0/3.jpg");
  EXPECT_EQ(items[3].place, (RecordPlace{.file = 3}));
  EXPECT_THAT(testing::Describe(items[1]), StartsWith("0.1 c1/1.jpg label=1 image="));
  EXPECT_TRUE(testing::Describe(items[1]).ends_with(" n=1"));
  EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
}

TEST_F(SourceTest, AFileThatAManifestNamesInVainIsABadItem) {
  PutManifests(*storage_, 3);
  storage_->Remove("root/c1/1.jpg");
  const auto harness = Open("uri: 'root/{0.csv,1.jsonl}'");
  EXPECT_THAT(harness->TakeAll(),
              ElementsAre(StartsWith("0.0 c0/0.jpg label=0"), "0.1 c1/1.jpg not_found",
                          StartsWith("0.2 c2/2.jpg label=2")));
  const auto gone = Open("uri: 'root/{0.csv,1.jsonl}'");
  storage_->Remove("root/0.csv");
  EXPECT_THAT(gone->TakeAll(), SizeIs(1));
  ASSERT_TRUE(gone->error());
  EXPECT_THAT(gone->error()->what(), AllOf(HasSubstr("root/0.csv"), HasSubstr("gone")));
}

TEST_F(SourceTest, ABadLineOfAManifestIsNamedByOpen) {
  storage_->Put("a.csv", "path,label\na.jpg,1\nb.jpg,cat\n");
  storage_->OpenGateFor("a.csv");
  EXPECT_THAT(ErrorOf([&] { Open("uri: 'a.csv'"); }).what(),
              AllOf(HasSubstr("a.csv: line 3"), HasSubstr("cat")));
}

// ---- folders

TEST_F(SourceTest, FolderItemsTellWhereTheyComeFrom) {
  storage_->Put("root/cat/1.jpg", "meow");
  storage_->Put("root/dog/2.jpg", "wuff");
  const auto harness = Open("uri: 'root/'");
  harness->PollOnce(2);
  storage_->CompleteAll();
  const std::vector<SourceItem> items = harness->PollOnce(2);
  ASSERT_THAT(items, SizeIs(2));
  EXPECT_EQ(*items[1].uri, "root/dog/2.jpg");
  EXPECT_EQ(items[1].key, "dog/2.jpg");
  EXPECT_EQ(items[1].record->uri, items[1].uri);
  EXPECT_EQ(items[1].record->label, 1);
  EXPECT_EQ(items[1].place, (RecordPlace{.file = 1}));
  EXPECT_EQ(items[1].record->members.at(0).name, "image");
}

TEST_F(SourceTest, BadFilesAreItemsInTheirPlace) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    storage_->Put(std::string("root/x/") + std::string(name) + ".jpg", "good");
  }
  storage_->Put("root/x/b.jpg", "");
  storage_->FailAlways(
      "root/x/c.jpg",
      Error({.code = ErrorCode::kIo, .what = "no permission", .where = "root/x/c.jpg"}));
  storage_->Put("root/x/d.jpg", std::string(1001, 'x'));
  const auto harness = Open("uri: 'root'", {.max_record_bytes = 1000}, 1);
  storage_->Remove("root/x/e.jpg");
  EXPECT_THAT(harness->TakeAll(),
              ElementsAre("0.0 x/a.jpg label=0 image=good", "0.1 x/b.jpg empty", "0.2 x/c.jpg io",
                          "0.3 x/d.jpg limit_exceeded", "0.4 x/e.jpg not_found",
                          "0.5 x/f.jpg label=0 image=good END"));
  EXPECT_FALSE(harness->error());
  EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
}

TEST_F(SourceTest, AFileOverTheCapIsNeverReadToItsEnd) {
  storage_->Put("root/a.jpg", std::string(1 << 20, 'x'));
  const auto harness = Open("uri: 'root'", {.max_record_bytes = 300'000});
  EXPECT_THAT(harness->TakeAll(), ElementsAre("0.0 a.jpg limit_exceeded END"));
  EXPECT_THAT(storage_->requests(), SizeIs(1));
}

TEST_F(SourceTest, FilesThatChangeWhileTheyAreReadAreTruncated) {
  storage_->Put("root/a.jpg", std::string(1000, 'x'));
  storage_->ShrinkInReads("root/a.jpg", 900);
  storage_->Put("root/b.jpg", std::string(400'000, 'x'));
  storage_->ShrinkInReads("root/b.jpg", 300'000);
  storage_->Put("root/c.jpg", std::string(400'000, 'x'));
  const auto harness = Open("uri: 'root'");
  harness->PollOnce(3);
  while (harness->CompleteOne()) {
  }
  storage_->Put("root/c.jpg", std::string(500'000, 'x'));
  EXPECT_THAT(harness->TakeAll(),
              ElementsAre("0.0 a.jpg truncated", "0.1 b.jpg truncated", "0.2 c.jpg truncated END"));
  EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
}

TEST_F(SourceTest, AVanishedFolderEndsTheStreamAfterTheItemsBeforeIt) {
  PutFolder(*storage_, 4);
  const auto harness = Open("uri: 'root'");
  EXPECT_THAT(harness->Take(2), SizeIs(2));
  for (int i = 0; i < 4; ++i) {
    storage_->Remove(std::string("root/c") + std::to_string(i % 3) + "/" + std::to_string(i) +
                     ".jpg");
  }
  EXPECT_THAT(harness->TakeAll(), IsEmpty());
  ASSERT_TRUE(harness->error());
  EXPECT_EQ(harness->error()->code(), ErrorCode::kNotFound);
  EXPECT_THAT(harness->error()->what(), AllOf(HasSubstr("root"), HasSubstr("gone")));
  EXPECT_FALSE(harness->source().AtEnd());
}

TEST_F(SourceTest, ItemsBeforeAVanishedFolderAreGivenFirst) {
  PutFolder(*storage_, 4);
  const auto harness = Open("uri: 'root'");
  harness->PollOnce(4);
  ASSERT_TRUE(harness->CompleteOne());
  for (int i = 0; i < 4; ++i) {
    storage_->Remove(std::string("root/c") + std::to_string(i % 3) + "/" + std::to_string(i) +
                     ".jpg");
  }
  storage_->CompleteAll();
  EXPECT_THAT(harness->PollOnce(4), SizeIs(1));
  EXPECT_FALSE(harness->error());
  EXPECT_THAT(harness->PollOnce(4), IsEmpty());
  EXPECT_TRUE(harness->error());
}

// ---- limits

TEST_F(SourceTest, NoMoreIsReadThanIsWanted) {
  PutFolder(*storage_, 20);
  const auto harness = Open("uri: 'root'");
  harness->PollOnce(0);
  EXPECT_THAT(storage_->pending(), IsEmpty());
  harness->PollOnce(3);
  EXPECT_THAT(storage_->pending(), SizeIs(3));
  harness->PollOnce(3);
  EXPECT_THAT(storage_->pending(), SizeIs(3));
}

TEST_F(SourceTest, FolderReadsKeepTheLimits) {
  PutFolder(*storage_, 60, 10);
  const SourceLimits limits{.reads_in_flight = 5, .bytes_in_flight = 1'000'000};
  const auto harness = Open("uri: 'root' epochs: 3", {.limits = limits}, 3);
  EXPECT_THAT(harness->Take(1000, 50), SizeIs(180));
  const SourceCounters counters = harness->source().counters();
  EXPECT_EQ(counters.reads_in_flight, 0);
  EXPECT_EQ(counters.bytes_in_flight, 0);
  EXPECT_GE(counters.peak_reads_in_flight, 3);
  EXPECT_LE(counters.peak_reads_in_flight, 5);
  // The oldest item may come on top.
  EXPECT_LE(counters.peak_bytes_in_flight, 1'000'000 + harness->largest());
}

TEST_F(SourceTest, SmallFilesNeverExceedTheBytesInFlight) {
  PutFolder(*storage_, 60);
  const SourceLimits limits{.reads_in_flight = 50, .bytes_in_flight = 700'000};
  const auto harness = Open("uri: 'root' epochs: 3", {.limits = limits}, 3);
  EXPECT_THAT(harness->Take(1000, 50), SizeIs(180));
  EXPECT_LE(harness->source().counters().peak_bytes_in_flight, 700'000);
  EXPECT_GT(harness->source().counters().peak_bytes_in_flight, 500'000);
}

TEST_F(SourceTest, ShardReadsKeepTheLimits) {
  const int shards = PutShards(*storage_, 300, 5);
  std::string spec = std::string("epochs: 2 uri: 's{0..") + std::to_string(shards - 1) + "}.tar'";
  const SourceLimits limits{.reads_in_flight = 4, .bytes_in_flight = 500'000};
  const auto harness = Open(spec, {.limits = limits}, 3);
  EXPECT_THAT(harness->Take(10'000, 50), SizeIs(600));
  const SourceCounters counters = harness->source().counters();
  EXPECT_EQ(counters.bytes_in_flight, 0);
  EXPECT_EQ(counters.peak_reads_in_flight, 4);
  // The piece needed next (an eighth to a quarter of the limit) and the sample may come on top.
  EXPECT_LE(counters.peak_bytes_in_flight, 500'000 + 125'000 + harness->largest());
}

TEST_F(SourceTest, ShardsAreReadAheadAcrossTheirBorders) {
  for (int i = 0; i < 4; ++i) PutShard(std::string("s") + std::to_string(i) + ".tar", i * 2, 2);
  const auto harness = Open("uri: 's{0..3}.tar'");
  harness->PollOnce(100);
  EXPECT_THAT(storage_->pending(), SizeIs(4));
}

TEST_F(SourceTest, AnArrivalWakesOnceUntilTheNextPoll) {
  PutFolder(*storage_, 5);
  const auto harness = Open("uri: 'root'");
  harness->PollOnce(5);
  EXPECT_EQ(harness->wakes(), 0);
  storage_->CompleteNext();
  storage_->CompleteNext();
  EXPECT_EQ(harness->wakes(), 1);
  harness->PollOnce(5);
  storage_->CompleteNext();
  EXPECT_EQ(harness->wakes(), 2);
}

TEST_F(SourceTest, BuffersGoBackToThePoolWithTheirRecords) {
  PutFolder(*storage_, 30, 5);
  const auto harness = Open("uri: 'root'", {}, 1);
  EXPECT_THAT(harness->TakeAll(), SizeIs(30));
  EXPECT_EQ(harness->pool().bytes_in_use(), 0);
}

// ---- shards

TEST_F(SourceTest, ShardItemsTellWhereTheyComeFrom) {
  PutShard("a.tar", 0, 2);
  PutShard("b.tar", 2, 2);
  const auto harness = Open("uri: '{a,b}.tar'");
  harness->PollOnce(100);
  storage_->CompleteAll();
  const std::vector<SourceItem> items = harness->PollOnce(100);
  ASSERT_THAT(items, SizeIs(4));
  EXPECT_EQ(*items[3].uri, "b.tar");
  EXPECT_EQ(items[3].key, "3");
  EXPECT_EQ(items[3].place, (RecordPlace{.file = 1, .offset = 2048, .length = 3072}));
}

TEST_F(SourceTest, ATfRecordOfBadDataIsLostAloneAndABadLengthEndsItsShard) {
  TfRecordBuilder good;
  good.AddRecord(MakeExample("a", "A", 1)).AddRecord(MakeExample("b", "B", 2));
  const size_t second = good.bytes().size() / 2;
  std::string bad_data = good.bytes();
  bad_data[20] ^= 1;
  std::string bad_length = good.bytes();
  bad_length[second] ^= 1;
  storage_->Put("0.tfrecord", bad_data);
  storage_->Put("1.tfrecord", bad_length);
  storage_->Put("2.tfrecord", "");
  storage_->Put("3.tfrecord", good.bytes().substr(0, second + 30));
  storage_->Put("4.tfrecord", good.bytes());
  const std::string at = "@" + std::to_string(second);
  const std::vector<std::string> expected = {"0.0 @0 corrupt",        "0.1 b label=2 image=B",
                                             "0.2 a label=1 image=A", "0.3 " + at + " corrupt",
                                             "0.4 a label=1 image=A", "0.5 " + at + " truncated",
                                             "0.6 a label=1 image=A", "0.7 b label=2 image=B END"};
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{128} << 20}) {
    const auto harness = Open("uri: '{0..4}.tfrecord'", {.limits = {.bytes_in_flight = bytes}}, 1);
    EXPECT_EQ(harness->TakeAll(), expected);
    EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
  }
}

// Small numbers take a byte each in the shard, and eight in the record.
TEST_F(SourceTest, ARecordMayBeLargerThanWhatCameForIt) {
  const std::vector<int64_t> numbers(10'000, 1);
  TfRecordBuilder shard;
  for (int i = 0; i < 20; ++i) {
    shard.AddRecord(MakeExample(std::to_string(i), "P", i) +
                    ExampleBuilder().AddInts("numbers", numbers).bytes());
  }
  storage_->Put("a.tfrecord", shard.bytes());
  const auto harness = Open("uri: 'a.tfrecord' shuffle { window: 5 }");
  EXPECT_THAT(harness->TakeAll(), SizeIs(20));
  EXPECT_EQ(harness->largest(), 80'001u);
  EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
}

TEST_F(SourceTest, AShardThatVanishesIsOneBadItem) {
  PutShard("a.tar", 0, 1);
  PutShard("b.tar", 7, 1);
  PutShard("c.tar", 1, 1);
  const auto harness = Open("uri: '{a,b,c}.tar'");
  storage_->Remove("b.tar");
  EXPECT_THAT(harness->TakeAll(), ElementsAre("0.0 0 label=1 image=image", "0.1  not_found",
                                              "0.2 1 label=1 image=image END"));
}

TEST_F(SourceTest, ABrokenShardLosesItsRestAndTheNextGoesOn) {
  PutShard("a.tar", 0, 2);
  PutShard("c.tar", 2, 1);
  TarBuilder tar;
  tar.AddFile("x.jpg", "1").AddFile("x.cls", "1").AddBytes(std::string(512, 'g'));
  storage_->Put("b.tar", tar.bytes());
  storage_->Put("z.tar", "");
  const auto harness = Open("uri: '{a,b,z,c}.tar'");
  EXPECT_THAT(harness->TakeAll(),
              ElementsAre("0.0 0 label=1 image=image", "0.1 1 label=1 image=image", "0.2 x corrupt",
                          "0.3  empty", "0.4 2 label=1 image=image END"));
}

TEST_F(SourceTest, AShardThatFailsOrShrinksWhileItIsReadIsOneBadItem) {
  storage_->Put("a.tar", TarBuilder()
                             .AddFile("a.jpg", std::string(1000, 'a'))
                             .AddFile("a.cls", "1")
                             .AddFile("b.jpg", std::string(100'000, 'b'))
                             .AddFile("b.cls", "2")
                             .AddEnd()
                             .bytes());
  const SourceLimits limits{.reads_in_flight = 1, .bytes_in_flight = 1};
  {
    const auto harness = Open("uri: 'a.tar'", {.limits = limits});
    harness->PollOnce(2);
    storage_->CompleteAll();
    // The first item waits: whether it ends the epoch is known from the second.
    EXPECT_THAT(harness->PollOnce(2), IsEmpty());
    ASSERT_TRUE(storage_->Fail(storage_->pending().at(0).id,
                               Error({.code = ErrorCode::kIo, .what = "torn", .where = "a.tar"})));
    EXPECT_THAT(harness->TakeAll(), ElementsAre(StartsWith("0.0 a"), "0.1 b io END"));
    EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
  }
  storage_->ShrinkInReads("a.tar", 80'000);
  const auto harness = Open("uri: 'a.tar'", {.limits = limits});
  EXPECT_THAT(harness->TakeAll(), ElementsAre(StartsWith("0.0 a"), "0.1 b truncated END"));
}

TEST_F(SourceTest, AShardThatShrinksBetweenTwoSamplesLosesNoneInSilence) {
  PutShard("a.tar", 0, 100);  // of 2,048 bytes each: 32 to a piece
  const auto harness =
      Open("uri: 'a.tar'", {.limits = {.reads_in_flight = 1, .bytes_in_flight = 1}});
  harness->PollOnce(1);
  storage_->CompleteAll();
  EXPECT_THAT(harness->PollOnce(100), SizeIs(30));
  storage_->ShrinkInReads("a.tar", 65'536 + 16 * 2048);
  storage_->CompleteAll();
  harness->PollOnce(0);
  storage_->ShrinkInReads("a.tar", 1 << 20);
  const std::vector<std::string> rest = harness->TakeAll();
  ASSERT_THAT(rest, SizeIs(18));
  EXPECT_EQ(rest.back(), "0.47 47 truncated END");
}

TEST_F(SourceTest, ShardsThatAreNotThereAreNamedByOpen) {
  PutShard("d/a-1.tar", 0, 2);
  const auto error_of = [&](const std::string& spec) {
    try {
      Open(spec);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of("uri: 'd/a-1.tar'"), "");
  EXPECT_EQ(error_of("uri: 'd/a-*.tar' uri: 'b.tar'"),
            "source.uri: 1 of 1 shards are not there: b.tar");
  EXPECT_EQ(error_of("uri: 'd/a-{0..5}.tar' uri: 'b.tar'"),
            "source.uri: 6 of 7 shards are not there: d/a-0.tar, d/a-2.tar, d/a-3.tar, ...");
}

TEST_F(SourceTest, OfManyShardsAMissingOneIsABadItem) {
  PutShard("a-0.tar", 0, 1);
  const auto harness = Open("uri: 'a-{0..1000}.tar'");
  EXPECT_THAT(harness->Take(2), ElementsAre(StartsWith("0.0 0 "), "0.1  not_found"));
}

TEST_F(SourceTest, AnEpochWithoutAGoodRecordEndsTheStream) {
  for (const std::string name : {"a.tar", "b.tar"}) {
    storage_->FailAlways(name,
                         Error({.code = ErrorCode::kIo, .what = "no permission", .where = name}));
  }
  const auto closed = Open("uri: '{a,b}.tar' epochs: 0");
  EXPECT_THAT(closed->Take(100), ElementsAre("0.0  io", "0.1  io END"));
  ASSERT_TRUE(closed->error());
  EXPECT_EQ(closed->error()->code(), ErrorCode::kEmpty);
  EXPECT_THAT(closed->error()->what(), HasSubstr("a.tar"));

  storage_->Put("empty.tar", TarBuilder().AddEnd().bytes());
  const auto empty = Open("uri: 'empty.tar' epochs: 0");
  EXPECT_THAT(empty->Take(100), IsEmpty());
  ASSERT_TRUE(empty->error());
  EXPECT_EQ(empty->error()->code(), ErrorCode::kEmpty);
}

TEST_F(SourceTest, FewerSamplesThanRanksEndTheStream) {
  PutShard("a.tar", 0, 2);
  const auto harness = Open("uri: 'a.tar' epochs: 0", {.shard = {.rank = 0, .world = 3}});
  EXPECT_THAT(harness->Take(100), IsEmpty());
  ASSERT_TRUE(harness->error());
  EXPECT_THAT(harness->error()->what(), HasSubstr("ranks"));
}

// ---- states

TEST_F(SourceTest, ResidentsOfTheWindowAreReadOnceAndStayBadIfTheyWere) {
  TarBuilder tar;
  for (int i = 0; i < 200; ++i) {
    const std::string key = std::to_string(i % 180);  // the last 20 come back
    tar.AddFile(key + ".jpg", std::string("image ") + key);
    if (i % 7 != 3) tar.AddFile(key + ".cls", key);
  }
  storage_->Put("a.tar", tar.AddEnd().bytes());
  storage_->FailAlways("closed.tar", Error({.code = ErrorCode::kIo, .what = "no permission"}));
  const std::string spec = "uri: '{a,closed}.tar' shuffle { window: 12 }";
  const auto whole = Open(spec, {.seed = 3});
  const std::vector<std::string> all = whole->TakeAll();
  ASSERT_THAT(all, SizeIs(201));
  size_t most_residents = 0;
  for (uint64_t done = 0; done <= all.size(); done += 3) {
    const auto before = Open(spec, {.seed = 3});
    before->Take(done);
    before->source().Advance(done);
    const SourceState state = before->source().state();
    const size_t requests = storage_->requests().size();
    const auto after = Open(spec, {.seed = 3, .start = state}, done + 1);
    const std::vector<std::string> expected(all.begin() + static_cast<std::ptrdiff_t>(done),
                                            all.end());
    EXPECT_EQ(after->TakeAll(), expected) << done;
    size_t good = 0;
    for (const SourceState::Resident& resident : state.residents) good += resident.error ? 0 : 1;
    // Each resident once, and the shards from where the stream stood.
    EXPECT_LE(storage_->requests().size() - requests, good + 2) << done;
    EXPECT_LE(state.keys.size(), 200);
    most_residents = std::max(most_residents, state.residents.size());
  }
  EXPECT_GE(most_residents, 10);
}

TEST_F(SourceTest, AResidentThatCannotBeReadAnyMoreIsABadItem) {
  PutShard("a.tar", 0, 20);
  const std::string spec = "uri: 'a.tar' shuffle { window: 8 }";
  const auto before = Open(spec, {.seed = 3});
  const std::vector<std::string> all = before->TakeAll();
  before->source().Advance(18);
  SourceState state = before->source().state();
  ASSERT_THAT(state.residents, SizeIs(2));
  state.residents[0].place.offset += 512;
  const auto after = Open(spec, {.seed = 3, .start = state});
  const std::vector<std::string> rest = after->TakeAll();
  ASSERT_THAT(rest, SizeIs(2));
  EXPECT_EQ((rest[0] == all[18]) + (rest[1] == all[19]), 1);
}

TEST_F(SourceTest, AWindowIsFullBeforeItsFirstDraw) {
  PutShard("a.tar", 0, 20);
  std::set<std::string> first;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    first.insert(Open("uri: 'a.tar' shuffle { window: 8 }", {.seed = seed})->TakeAll()[0]);
  }
  EXPECT_THAT(first, SizeIs(8));
}

TEST_F(SourceTest, RereadRecordsComeBesideTheOthersEachOnce) {
  PutFolder(*storage_, 5);
  PutShard("a.tar", 0, 5);
  PutManifests(*storage_, 5);
  PutTfRecords(*storage_, 5);
  for (const char* spec :
       {"uri: 'root'", "uri: 'a.tar'", "uri: 's{0..3}.tfrecord'", "uri: 'root/{0.csv,1.jsonl}'"}) {
    const auto harness = Open(spec);
    const std::vector<std::string> all = harness->TakeAll();
    const auto twin = Open(spec);
    twin->PollOnce(5);
    storage_->CompleteAll();
    const std::vector<SourceItem> items = twin->PollOnce(5);
    ASSERT_THAT(items, SizeIs(5));

    const auto again = Open(spec, {}, 2);
    again->source().Reread({items[3].place, items[1].place});
    std::map<uint64_t, std::string> rereads;
    std::vector<std::string> others;
    while (rereads.size() < 2 || !again->source().AtEnd()) {
      for (const SourceItem& item : again->PollOnce(5)) {
        if (item.reread) {
          rereads[*item.reread] = item.key;
        } else {
          others.push_back(testing::Describe(item));
        }
      }
      again->CompleteOne();
    }
    EXPECT_EQ(rereads[0], items[3].key);
    EXPECT_EQ(rereads[1], items[1].key);
    EXPECT_EQ(others, all);
    EXPECT_EQ(again->source().counters().bytes_in_flight, 0);
    EXPECT_EQ(ErrorOf([&] { Open(spec)->source().Reread({{.file = 99}}); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

// ---- the end

TEST_F(SourceTest, ASourceMayEndWhileItsReadsWait) {
  PutFolder(*storage_, 50);
  const int shards = PutShards(*storage_, 50);
  for (const std::string& spec :
       {std::string("uri: 'root'"),
        std::string("uri: 's{0..") + std::to_string(shards - 1) + "}.tar'"}) {
    for (int completed = 0; completed < 4; ++completed) {
      auto harness = Open(spec, {}, 1);
      harness->PollOnce(30);
      EXPECT_FALSE(storage_->pending().empty());
      for (int i = 0; i < completed; ++i) harness->CompleteOne();
      const int wakes = harness->wakes();
      EXPECT_LE(wakes, 1);
      harness.reset();
      EXPECT_THAT(storage_->pending(), IsEmpty());
    }
  }
}

TEST_F(SourceTest, ASourceMayEndWhileItsReadsArrive) {
  PutFolder(*storage_, 50);
  for (int round = 0; round < 200; ++round) {
    BufferPool pool;
    std::jthread completer;
    std::unique_ptr<Source> source = OpenSource(ParseSpec("uri: 'root'"), storage_, pool, {});
    std::vector<SourceItem> items;
    source->Poll(30, &items);
    completer = std::jthread([this] {
      while (storage_->CompleteNext()) {
      }
    });
    source.reset();
  }
}

TEST_F(SourceTest, NoWakeRunsBehindTheEnd) {
  PutFolder(*storage_, 5);
  BufferPool pool;
  std::atomic<bool> woken = false;
  std::atomic<bool> destroyed = false;
  bool ran_behind_the_end = false;
  const auto wake = [&] {
    woken = true;
    for (int i = 0; i < 20'000 && !ran_behind_the_end; ++i) {
      std::this_thread::yield();
      ran_behind_the_end = destroyed;
    }
  };
  std::unique_ptr<Source> source =
      OpenSource(ParseSpec("uri: 'root'"), storage_, pool, {.wake = wake});
  std::vector<SourceItem> items;
  source->Poll(1, &items);
  {
    const std::jthread completer([this] { storage_->CompleteNext(); });
    while (!woken) std::this_thread::yield();
    source.reset();
    destroyed = true;
  }
  EXPECT_FALSE(ran_behind_the_end);
}

TEST_F(SourceTest, WhatIsLeftUnreadIsNotCountedAnyMore) {
  const int shards = PutShards(*storage_, 500, 1);
  const auto harness =
      Open("take: 3 epochs: 2 uri: 's{0.." + std::to_string(shards - 1) + "}.tar'");
  harness->PollOnce(100);
  storage_->CompleteAll();
  EXPECT_THAT(harness->TakeAll(), SizeIs(6));
  while (harness->source().counters().reads_in_flight > 0) std::this_thread::yield();
  harness->PollOnce(0);
  EXPECT_EQ(harness->source().counters().bytes_in_flight, 0);
}

TEST_F(SourceTest, StateIsKnownWhileAnotherThreadPolls) {
  auto storage = std::make_shared<FakeStorage>();
  PutFolder(*storage, 40);
  BufferPool pool;
  std::unique_ptr<Source> source =
      OpenSource(ParseSpec("uri: 'root' shuffle { window: 7 } epochs: 20"), storage, pool, {});
  std::atomic<uint64_t> given = 0;
  std::jthread poller([&] {
    std::vector<SourceItem> items;
    while (!source->AtEnd()) {
      source->Poll(16, &items);
      given = items.size();
    }
  });
  for (uint64_t done = 0; done < 800;) {
    const uint64_t now = given;
    source->Advance(now - done);
    done = now;
    const SourceState state = source->state();
    EXPECT_EQ(state.epoch * 40 + state.next_ordinal, done);
  }
}

TEST(RealSourceTest, CifarComesThroughAWindowFromTheFileSystem) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  BufferPool pool;
  std::atomic<int> wakes = 0;
  std::unique_ptr<Source> source = OpenSource(
      ParseSpec(std::string("uri: '") + (TestData() / "cifar10/train-0{0..1}.tar").string() +
                "' shuffle { window: 1000 }"),
      MakeLocalStorage(2), pool, {.wake = [&] {
        ++wakes;
        wakes.notify_all();
      }});
  std::vector<SourceItem> items;
  std::set<std::string> keys;
  while (!source->AtEnd()) {
    const int seen = wakes;
    items.clear();
    source->Poll(256, &items);
    for (const SourceItem& item : items) {
      ASSERT_TRUE(item.record);
      keys.insert(item.key);
    }
    if (items.empty() && !source->AtEnd()) wakes.wait(seen);
  }
  EXPECT_THAT(keys, SizeIs(10'000));
}

}  // namespace
}  // namespace echopipe
