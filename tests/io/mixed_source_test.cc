#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/io/source_harness.h>
#include <echopipe/tests/support/error_of.h>

namespace echopipe::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Three sources of different kinds: 40 files, 30 samples, 7 TFRecords.
class MixedSourceTest : public ::testing::Test {
 protected:
  MixedSourceTest() {
    PutFolder(*storage_, 40, 10);
    tars_ = PutShards(*storage_, 30, 7);
    records_ = PutTfRecords(*storage_, 7);
  }

  std::string Folder() const { return "uri: 'root' shuffle { full {} } epochs: 3"; }
  std::string Tars() const {
    return "uri: 's{0.." + std::to_string(tars_ - 1) + "}.tar' shuffle { window: 5 }";
  }
  std::string Records() const {
    return "uri: 's{0.." + std::to_string(records_ - 1) + "}.tfrecord'";
  }

  std::unique_ptr<SourceHarness> Open(const std::vector<std::string>& specs,
                                      SourceOptions options = {}, uint64_t completion_seed = 0) {
    std::vector<proto::Source> parsed;
    for (const std::string& spec : specs) parsed.push_back(ParseSpec(spec));
    return std::make_unique<SourceHarness>(parsed, storage_, std::move(options), completion_seed);
  }
  std::unique_ptr<SourceHarness> OpenAll(SourceOptions options = {.seed = 1},
                                         uint64_t completion_seed = 0) {
    return Open({Folder() + " weight: 4", Tars() + " weight: 2", Records()}, std::move(options),
                completion_seed);
  }

  std::shared_ptr<FakeStorage> storage_ = GatedStorage();
  int tars_ = 0;
  int records_ = 0;
};

// "0.3 key ..." -> "key ..."; without "END".
std::string Content(std::string text) {
  if (text.ends_with(" END")) text.resize(text.size() - 4);
  return text.substr(text.find(' ') + 1);
}

std::vector<std::string> ContentsOf(const std::vector<std::string>& items) {
  std::vector<std::string> contents;
  for (const std::string& item : items) contents.push_back(Content(item));
  return contents;
}

bool IsOfFolder(const std::string& item) { return item.find(".jpg") != std::string::npos; }

TEST_F(MixedSourceTest, EachSourceKeepsItsOwnOrder) {
  const std::vector<std::string> items = OpenAll()->TakeAll();
  std::vector<std::string> of_folder;
  std::copy_if(items.begin(), items.end(), std::back_inserter(of_folder), IsOfFolder);
  EXPECT_EQ(ContentsOf(of_folder), ContentsOf(Open({Folder()}, {.seed = 1})->TakeAll()));
  // Without a shuffle the order of the third is known: its records come again and again.
  const std::vector<std::string> once = ContentsOf(Open({Records()})->TakeAll());
  ASSERT_THAT(once, SizeIs(7));
  std::vector<std::string> mixed = ContentsOf(Open({Folder(), Records()})->TakeAll());
  std::erase_if(mixed, IsOfFolder);
  ASSERT_GT(mixed.size(), 60u);
  for (size_t i = 0; i < mixed.size(); ++i) ASSERT_EQ(mixed[i], once[i % 7]) << i;
}

TEST_F(MixedSourceTest, TheFirstSourcesEpochsAreTheMixs) {
  const std::vector<std::string> items = OpenAll()->TakeAll();
  uint64_t epoch = 0;
  uint64_t ordinal = 0;
  uint64_t of_folder = 0;
  for (const std::string& item : items) {
    EXPECT_TRUE(item.starts_with(std::to_string(epoch) + "." + std::to_string(ordinal) + " "))
        << item;
    of_folder += IsOfFolder(item) ? 1 : 0;
    const bool ends = item.ends_with(" END");
    EXPECT_EQ(ends, IsOfFolder(item) && of_folder == 40 * (epoch + 1)) << item;
    epoch += ends ? 1 : 0;
    ordinal = ends ? 0 : ordinal + 1;
  }
  EXPECT_EQ(epoch, 3u);
  EXPECT_EQ(ordinal, 0u) << "ends with the first source's last record";
}

TEST_F(MixedSourceTest, SourcesAreDrawnByTheirWeights) {
  const auto harness = Open({"uri: 'root' epochs: 0 weight: 30", Records() + " weight: 10"});
  const std::vector<std::string> items = harness->Take(8000, 64);
  const auto of_folder = std::count_if(items.begin(), items.end(), IsOfFolder);
  // Six standard deviations.
  EXPECT_NEAR(static_cast<double>(of_folder), 6000, 6 * 39);
}

TEST_F(MixedSourceTest, SeedAndEpochChangeTheDraws) {
  const auto draws = [&](uint64_t seed) {
    std::string text;
    for (const std::string& item :
         Open({"uri: 'root' epochs: 2", Records()}, {.seed = seed})->TakeAll()) {
      text += std::string(IsOfFolder(item) ? "f" : "r") + (item.ends_with(" END") ? "|" : "");
    }
    return text;
  };
  const std::string one = draws(1);
  EXPECT_EQ(draws(1), one);
  EXPECT_NE(draws(2), one);
  const size_t end = one.find('|');
  EXPECT_NE(one.substr(0, 30), one.substr(end + 1, 30));
}

TEST_F(MixedSourceTest, RanksTakeTheirRecordsFromTheSameSourceInEachRound) {
  for (uint64_t world = 2; world <= 3; ++world) {
    std::vector<std::vector<std::string>> ranks;
    for (uint64_t rank = 0; rank < world; ++rank) {
      ranks.push_back(
          OpenAll({.seed = 1, .shard = {.rank = rank, .world = world}}, rank)->TakeAll());
      ASSERT_EQ(ranks[rank].size(), ranks[0].size());
    }
    std::map<std::string, int> uses;
    for (size_t i = 0; i < ranks[0].size(); ++i) {
      for (uint64_t rank = 0; rank < world; ++rank) {
        EXPECT_EQ(IsOfFolder(ranks[rank][i]), IsOfFolder(ranks[0][i])) << i;
        EXPECT_EQ(ranks[rank][i].ends_with(" END"), ranks[0][i].ends_with(" END")) << i;
        if (ranks[rank][i].starts_with("0.")) ++uses[Content(ranks[rank][i])];
      }
    }
    for (const auto& [content, count] : uses) {
      EXPECT_TRUE(!IsOfFolder(content) || count == 1) << content;
    }
  }
}

TEST_F(MixedSourceTest, NeitherTimingNorLimitsNorDemandChangeTheOrder) {
  const std::vector<std::string> expected = OpenAll()->TakeAll();
  EXPECT_EQ(OpenAll({.seed = 1}, 5)->Take(~uint64_t{0}, 1), expected);
  EXPECT_EQ(OpenAll({.seed = 1}, 6)->Take(~uint64_t{0}, 100), expected);
  EXPECT_EQ(OpenAll({.seed = 1, .limits = {.reads_in_flight = 3, .bytes_in_flight = 1}}, 7)
                ->Take(~uint64_t{0}, 20),
            expected);
}

TEST_F(MixedSourceTest, AStateGoesOnWithExactlyTheItemsBehindIt) {
  for (uint64_t world = 1; world <= 2; ++world) {
    const SourceOptions options{.seed = 1, .shard = {.rank = world - 1, .world = world}};
    const std::vector<std::string> items = OpenAll(options)->TakeAll();
    const auto source = OpenAll(options, 3);
    std::vector<std::string> given;
    for (uint64_t done = 0; done <= items.size(); done += 3) {
      const uint64_t ahead = std::min<uint64_t>(done + 5, items.size());
      for (const std::string& item : source->Take(ahead - given.size())) given.push_back(item);
      if (done > 0) source->source().Advance(3);
      SourceOptions rest_options = options;
      rest_options.start = source->source().state();
      const auto rest = OpenAll(rest_options, done + 1);
      const std::vector<std::string> expected(items.begin() + static_cast<std::ptrdiff_t>(done),
                                              items.end());
      ASSERT_EQ(rest->TakeAll(), expected) << done << " of world " << world;
      EXPECT_TRUE(rest->source().AtEnd());
    }
  }
}

TEST_F(MixedSourceTest, RecordsOfEverySourceAreReadAgainByTheirPlaces) {
  std::vector<SourceItem> items;
  const auto first = OpenAll();
  while (items.size() < 30) {
    for (SourceItem& item : first->PollOnce(8)) items.push_back(std::move(item));
    first->CompleteOne();
  }
  std::vector<RecordPlace> places;
  for (const SourceItem& item : items) places.push_back(item.place);
  const auto again = OpenAll({.seed = 1}, 2);
  again->source().Reread(places);
  size_t rereads = 0;
  while (rereads < items.size()) {
    for (const SourceItem& item : again->PollOnce(5)) {
      if (!item.reread) continue;
      ++rereads;
      EXPECT_EQ(item.key, items[*item.reread].key);
      EXPECT_EQ(item.place, items[*item.reread].place);
    }
    again->CompleteOne();
  }
  const RecordPlace nowhere{.file = 999'999};
  EXPECT_EQ(ErrorOf([&] { OpenAll()->source().Reread({nowhere}); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(MixedSourceTest, WhatEndsOneSourceEndsTheMixInItsTurn) {
  storage_->Put("empty.tfrecord", "");
  const auto harness = Open({"uri: 'root' weight: 9", "uri: 'empty.tfrecord'"}, {.seed = 1});
  const std::vector<std::string> all =
      Open({"uri: 'root' weight: 9", Records()}, {.seed = 1})->TakeAll();
  const auto before = std::find_if_not(all.begin(), all.end(), IsOfFolder) - all.begin();
  ASSERT_GT(before, 0);
  EXPECT_THAT(harness->TakeAll(), SizeIs(before));
  ASSERT_TRUE(harness->error());
  EXPECT_THAT(harness->error()->what(), HasSubstr("empty.tfrecord"));
  EXPECT_FALSE(harness->source().AtEnd());
}

TEST_F(MixedSourceTest, StatesOfOtherMixesAreErrors) {
  const SourceState state = OpenAll()->source().state();
  const auto code = [&](const std::vector<std::string>& specs) {
    return ErrorOf([&] { Open(specs, {.seed = 1, .start = state}); }).code();
  };
  EXPECT_EQ(code({Folder(), Tars()}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({Folder()}), ErrorCode::kInvalidArgument);
}

TEST_F(MixedSourceTest, TheLimitsAreSharedOut) {
  const SourceLimits limits{.reads_in_flight = 6, .bytes_in_flight = 3'000'000};
  const auto harness = OpenAll({.seed = 1, .limits = limits}, 3);
  harness->Take(~uint64_t{0}, 40);
  const SourceCounters counters = harness->source().counters();
  EXPECT_EQ(counters.reads_in_flight, 0u);
  EXPECT_LE(counters.peak_reads_in_flight, 6u);
  // What each source needs next, a piece of a shard at most, may come on top.
  EXPECT_LE(counters.peak_bytes_in_flight, 3'000'000u + 2 * 250'000u + 3 * harness->largest());
  EXPECT_EQ(harness->source().window_records(), 5u);
  EXPECT_NE(harness->source().fingerprint(),
            Open({Tars(), "uri: 'root'", Records()}, {.seed = 1})->source().fingerprint());
}

}  // namespace
}  // namespace echopipe::testing
