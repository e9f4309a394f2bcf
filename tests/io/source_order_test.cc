#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/io/source_harness.h>
#include <echopipe/tests/support/shard_indexes.h>

namespace echopipe {
namespace {

using ::echopipe::testing::FakeStorage;
using ::echopipe::testing::GatedStorage;
using ::echopipe::testing::ParseSpec;
using ::echopipe::testing::PutFolder;
using ::echopipe::testing::PutIndexes;
using ::echopipe::testing::PutManifests;
using ::echopipe::testing::PutShards;
using ::echopipe::testing::PutTfRecords;
using ::echopipe::testing::SourceHarness;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

enum class Data { kFolder, kTar, kTfRecord, kManifest, kIndexedTar, kIndexedTfRecord };

// Data x records x shuffle x epochs x take.
using Case = std::tuple<Data, int, const char*, int, int>;

class SourceOrderLaws : public ::testing::TestWithParam<Case> {
 protected:
  Data data() const { return std::get<0>(GetParam()); }
  int n() const { return std::get<1>(GetParam()); }
  std::string shuffle() const { return std::get<2>(GetParam()); }
  int epochs() const { return std::get<3>(GetParam()); }
  int take() const { return std::get<4>(GetParam()); }
  int positions() const { return take() == 0 ? n() : std::min(n(), take()); }

  proto::Source Spec(int epochs_wanted) const {
    FakeStorage scratch;
    const std::string last = std::to_string(PutShards(scratch, n()) - 1);
    std::string text = "uri: 'root'";
    if (data() == Data::kTar || data() == Data::kIndexedTar) text = "uri: 's{0.." + last + "}.tar'";
    if (data() == Data::kTfRecord || data() == Data::kIndexedTfRecord) {
      text = "uri: 's{0.." + last + "}.tfrecord'";
    }
    if (data() == Data::kManifest) text = "uri: 'root/{0.csv,1.jsonl}'";
    if (!shuffle().empty()) text += " shuffle { " + shuffle() + " }";
    text += " epochs: " + std::to_string(epochs_wanted) + " take: " + std::to_string(take());
    return ParseSpec(text);
  }

  std::shared_ptr<FakeStorage> Storage() const {
    std::shared_ptr<FakeStorage> storage = GatedStorage();
    if (data() == Data::kFolder) PutFolder(*storage, n(), 10);
    if (data() == Data::kTar) PutShards(*storage, n(), 7);
    if (data() == Data::kTfRecord) PutTfRecords(*storage, n(), 7);
    if (data() == Data::kManifest) PutManifests(*storage, n(), 10);
    if (data() == Data::kIndexedTar) PutIndexed(*storage, PutShards, ".tar");
    if (data() == Data::kIndexedTfRecord) PutIndexed(*storage, PutTfRecords, ".tfrecord");
    return storage;
  }

  template <class Put>
  void PutIndexed(FakeStorage& storage, Put put, const char* ending) const {
    FakeStorage scratch;
    put(scratch, n(), 7);
    std::vector<std::string> shards(static_cast<size_t>(put(storage, n(), 7)));
    for (size_t i = 0; i < shards.size(); ++i) shards[i] = "s" + std::to_string(i) + ending;
    PutIndexes(shards, scratch, storage);
  }

  std::vector<std::string> Run(SourceOptions options, uint64_t completion_seed = 0,
                               uint64_t wanted = 8) const {
    const proto::Source spec = Spec(epochs());
    SourceHarness harness(spec, Storage(), options, completion_seed);
    std::vector<std::string> items = harness.Take(~uint64_t{0}, wanted);
    EXPECT_FALSE(harness.error()) << harness.error()->what();
    return items;
  }
};

// "0.3 key ..." without its "END".
std::string WithoutEnd(std::string text) {
  if (text.ends_with(" END")) text.resize(text.size() - 4);
  return text;
}

std::string KeyOf(const std::string& text) {
  const size_t begin = text.find(' ') + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

TEST_P(SourceOrderLaws, EveryRecordComesOnceAnEpoch) {
  const std::vector<std::string> items = Run({.seed = 1});
  ASSERT_THAT(items, SizeIs(positions() * epochs()));
  for (int epoch = 0; epoch < epochs(); ++epoch) {
    std::set<std::string> keys;
    for (int i = 0; i < positions(); ++i) {
      const std::string& item = items[static_cast<size_t>(epoch * positions() + i)];
      EXPECT_TRUE(item.starts_with(std::to_string(epoch) + "." + std::to_string(i) + " ")) << item;
      EXPECT_EQ(item.ends_with(" END"), i == positions() - 1) << item;
      keys.insert(KeyOf(item));
    }
    EXPECT_THAT(keys, SizeIs(positions()));
  }
}

TEST_P(SourceOrderLaws, RanksShareTheOneOrderInCompleteRounds) {
  const std::vector<std::string> whole = Run({.seed = 1});
  for (uint64_t world = 2; world <= 3; ++world) {
    const auto rounds = static_cast<uint64_t>(positions()) / world;
    if (rounds == 0) continue;
    for (uint64_t rank = 0; rank < world; ++rank) {
      const std::vector<std::string> items =
          Run({.seed = 1, .shard = {.rank = rank, .world = world}}, rank);
      std::vector<std::string> expected;
      for (int epoch = 0; epoch < epochs(); ++epoch) {
        for (uint64_t round = 0; round < rounds; ++round) {
          const uint64_t ordinal = round * world + rank;
          expected.push_back(
              WithoutEnd(whole[static_cast<uint64_t>(epoch * positions()) + ordinal]) +
              (round + 1 == rounds ? " END" : ""));
        }
      }
      EXPECT_EQ(items, expected) << rank << " of " << world;
    }
  }
}

TEST_P(SourceOrderLaws, NeitherTimingNorLimitsNorDemandChangeTheOrder) {
  const std::vector<std::string> expected = Run({.seed = 1});
  EXPECT_EQ(Run({.seed = 1}, /*completion_seed=*/5, /*wanted=*/1), expected);
  EXPECT_EQ(Run({.seed = 1}, 6, 100), expected);
  EXPECT_EQ(Run({.seed = 1, .limits = {.reads_in_flight = 1, .bytes_in_flight = 1}}, 7), expected);
  EXPECT_EQ(Run({.seed = 1, .limits = {.reads_in_flight = 3, .bytes_in_flight = 600'000}}, 8, 50),
            expected);
}

TEST_P(SourceOrderLaws, AnEndlessSourceBeginsLikeAFiniteOne) {
  const std::vector<std::string> expected = Run({.seed = 1});
  const proto::Source spec = Spec(0);
  SourceHarness harness(spec, Storage(), {.seed = 1});
  EXPECT_EQ(harness.Take(expected.size()), expected);
  EXPECT_FALSE(harness.source().AtEnd());
  EXPECT_THAT(harness.Take(1), SizeIs(1));
}

TEST_P(SourceOrderLaws, AStateGoesOnWithExactlyTheItemsBehindIt) {
  const std::vector<std::string> whole = Run({.seed = 1});
  const uint64_t step = whole.size() > 40 ? 7 : 1;
  for (uint64_t world = 1; world <= 2; ++world) {
    if (static_cast<uint64_t>(positions()) < world) continue;
    const SourceOptions options{.seed = 1, .shard = {.rank = world - 1, .world = world}};
    const proto::Source spec = Spec(epochs());
    const std::vector<std::string> items = Run(options);
    SourceHarness source(spec, Storage(), options, 3);
    std::vector<std::string> given;
    for (uint64_t done = 0; done <= items.size(); done += step) {
      // The source runs ahead of the place that the state is of.
      for (const std::string& item :
           source.Take(std::min<uint64_t>(done + 5, items.size()) - given.size())) {
        given.push_back(item);
      }
      if (done > 0) source.source().Advance(step);
      SourceOptions rest_options = options;
      rest_options.start = source.source().state();
      SourceHarness rest(spec, Storage(), rest_options, done + 1);
      const std::vector<std::string> expected(items.begin() + static_cast<std::ptrdiff_t>(done),
                                              items.end());
      ASSERT_EQ(rest.TakeAll(), expected) << done << " of rank " << world - 1;
      EXPECT_TRUE(rest.source().AtEnd());
    }
  }
}

TEST_P(SourceOrderLaws, StatesMayBeTakenOfRestoredSources) {
  const std::vector<std::string> items = Run({.seed = 1});
  const proto::Source spec = Spec(epochs());
  SourceOptions options{.seed = 1};
  std::vector<std::string> given;
  while (given.size() < items.size()) {
    SourceHarness harness(spec, Storage(), options, given.size());
    const std::vector<std::string> some = harness.Take(3);
    ASSERT_FALSE(some.empty());
    given.insert(given.end(), some.begin(), some.end());
    harness.source().Advance(some.size());
    options.start = harness.source().state();
  }
  EXPECT_EQ(given, items);
}

// What comes in an epoch, whatever its order; only the last may say that it is.
std::map<char, std::multiset<std::string>> ByEpoch(const std::vector<std::string>& items) {
  std::map<char, std::multiset<std::string>> epochs;
  for (size_t i = 0; i < items.size(); ++i) {
    epochs[items[i][0]].insert(WithoutEnd(items[i]));
    const bool is_last = i + 1 == items.size() || items[i + 1][0] != items[i][0];
    EXPECT_EQ(items[i].ends_with(" END"), is_last) << items[i];
  }
  return epochs;
}

TEST_P(SourceOrderLaws, AsReadyEachRecordComesOnceAnEpochUnderItsOwnIdentity) {
  for (uint64_t world = 1; world <= 2; ++world) {
    if (static_cast<uint64_t>(positions()) < world) continue;
    SourceOptions options{.seed = 1, .shard = {.rank = world - 1, .world = world}};
    const std::vector<std::string> in_order = Run(options);
    options.order = RecordOrder::kAsReady;
    EXPECT_EQ(ByEpoch(Run(options, /*completion_seed=*/5, /*wanted=*/8)), ByEpoch(in_order));
    EXPECT_EQ(ByEpoch(Run(options, 6, 100)), ByEpoch(in_order));
    options.limits = {.reads_in_flight = 3, .bytes_in_flight = 600'000};
    EXPECT_EQ(ByEpoch(Run(options, 8, 50)), ByEpoch(in_order));
    options.limits = {.reads_in_flight = 1, .bytes_in_flight = 1};
    EXPECT_EQ(Run(options, 7), in_order);
  }
}

// Each restored from where the one before was, some of them in order; each goes on to the end, too.
TEST_P(SourceOrderLaws, AsReadyAStateGoesOnWithWhatHasNotCome) {
  const std::vector<std::string> whole = Run({.seed = 1});
  const proto::Source spec = Spec(epochs());
  const size_t step = whole.size() > 40 ? 7 : 2;
  SourceOptions options{.seed = 1, .order = RecordOrder::kAsReady};
  std::vector<std::string> given;
  uint64_t late = 0;
  for (uint64_t seed = 1; given.size() < whole.size(); ++seed) {
    SourceHarness harness(spec, Storage(), options, seed);
    // The source runs ahead of the place that the state is of.
    const std::vector<std::string> some = harness.Take(step + 3, 12);
    ASSERT_FALSE(some.empty());
    const auto taken = static_cast<std::ptrdiff_t>(std::min(step, some.size()));
    given.insert(given.end(), some.begin(), some.begin() + taken);
    harness.source().Advance(static_cast<uint64_t>(taken));
    options.start = harness.source().state();
    options.order = seed % 3 == 0 ? RecordOrder::kInOrder : RecordOrder::kAsReady;
    late += options.start->late.size();
    SourceHarness rest(spec, Storage(), options, seed + 100);
    std::vector<std::string> all = given;
    for (const std::string& item : rest.TakeAll()) all.push_back(item);
    ASSERT_EQ(ByEpoch(all), ByEpoch(whole)) << given.size();
    EXPECT_TRUE(rest.source().AtEnd());
  }
  const bool is_streamed =
      data() != Data::kFolder && data() != Data::kManifest && shuffle() != "full {}";
  if (!is_streamed && positions() >= 40) {
    EXPECT_GT(late, 0U);
  }
}

using ::testing::Combine;
using ::testing::Values;

INSTANTIATE_TEST_SUITE_P(Files, SourceOrderLaws,
                         Combine(Values(Data::kFolder, Data::kManifest), Values(1, 2, 7, 40),
                                 Values("", "full {}", "window: 1", "window: 5", "window: 1000"),
                                 Values(1, 3), Values(0, 5)));
INSTANTIATE_TEST_SUITE_P(Shards, SourceOrderLaws,
                         Combine(Values(Data::kTar, Data::kTfRecord), Values(1, 2, 7, 40),
                                 Values("", "window: 1", "window: 5", "window: 1000"), Values(1, 3),
                                 Values(0, 5)));
INSTANTIATE_TEST_SUITE_P(Indexed, SourceOrderLaws,
                         Combine(Values(Data::kIndexedTar, Data::kIndexedTfRecord),
                                 Values(1, 2, 7, 40), Values("full {}"), Values(1, 3),
                                 Values(0, 5)));
// Where a shard has an index that is not asked for.
INSTANTIATE_TEST_SUITE_P(IndexBeside, SourceOrderLaws,
                         Combine(Values(Data::kIndexedTar, Data::kIndexedTfRecord), Values(40),
                                 Values("", "window: 5"), Values(2), Values(0)));
// Long enough to fill a window.
INSTANTIATE_TEST_SUITE_P(
    Windows, SourceOrderLaws,
    Combine(Values(Data::kFolder, Data::kTar, Data::kTfRecord, Data::kManifest), Values(200),
            Values("window: 10", "window: 1000"), Values(2), Values(0, 150)));

std::vector<std::string> KeysOf(const std::vector<std::string>& items) {
  std::vector<std::string> keys;
  for (const std::string& item : items) keys.push_back(KeyOf(item));
  return keys;
}

std::vector<std::string> FolderKeys(const std::string& shuffle, uint64_t seed, int epochs = 1) {
  std::shared_ptr<FakeStorage> storage = GatedStorage();
  PutFolder(*storage, 20);
  SourceHarness harness(
      ParseSpec(std::string("uri: 'root' epochs: ") + std::to_string(epochs) + shuffle), storage,
      {.seed = seed});
  return KeysOf(harness.TakeAll());
}

TEST(SourceOrderTest, WithoutShuffleRecordsComeAsListed) {
  const std::vector<std::string> keys = FolderKeys("", 1);
  EXPECT_THAT(keys, SizeIs(20));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST(SourceOrderTest, SeedAndEpochChangeAShuffledOrder) {
  for (const char* shuffle : {" shuffle { full {} }", " shuffle { window: 8 }"}) {
    const std::vector<std::string> one = FolderKeys(shuffle, 1, 2);
    EXPECT_EQ(FolderKeys(shuffle, 1, 2), one);
    EXPECT_NE(FolderKeys(shuffle, 2, 2), one);
    EXPECT_FALSE(std::equal(one.begin(), one.begin() + 20, one.begin() + 20));
    EXPECT_FALSE(std::is_sorted(one.begin(), one.begin() + 20));
  }
}

TEST(SourceOrderTest, AWindowOverShardsShufflesTheShardsToo) {
  std::shared_ptr<FakeStorage> storage = GatedStorage();
  const int shards = PutShards(*storage, 60);
  proto::Source spec = ParseSpec("epochs: 1 shuffle { window: 1 }");
  for (int i = 0; i < shards; ++i) spec.add_uri(std::string("s") + std::to_string(i) + ".tar");
  SourceHarness harness(spec, storage, {.seed = 1});
  const std::vector<std::string> keys = KeysOf(harness.TakeAll());
  ASSERT_THAT(keys, SizeIs(60));
  EXPECT_FALSE(std::is_sorted(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return std::stoi(a.substr(1)) < std::stoi(b.substr(1));
  }));
  // With a window of one the samples of a shard stay together, in their order.
  const auto at = std::find(keys.begin(), keys.end(), "s55");
  ASSERT_LT(at - keys.begin(), 60 - 4);
  EXPECT_EQ(*(at + 1), "s56");
}

TEST(SourceOrderTest, TheFolderKnowsItsEpochSize) {
  std::shared_ptr<FakeStorage> storage = GatedStorage();
  PutFolder(*storage, 20);
  SourceHarness harness(ParseSpec("uri: 'root' take: 11"), storage,
                        {.shard = {.rank = 1, .world = 3}});
  EXPECT_EQ(harness.source().epoch_size(), 3);
}

TEST(SourceOrderTest, AsReadyALateReadHoldsUpTheEndOfItsEpochAlone) {
  std::shared_ptr<FakeStorage> storage = GatedStorage();
  PutFolder(*storage, 20);
  SourceHarness harness(ParseSpec("uri: 'root' epochs: 2"), storage,
                        {.seed = 1, .order = RecordOrder::kAsReady});
  harness.PollOnce(4);
  const FakeStorage::PendingRead late = storage->pending().front();
  std::vector<SourceItem> given;
  for (;;) {
    const std::vector<FakeStorage::PendingRead> reads = storage->pending();
    if (reads.back().id == late.id) break;
    storage->Complete(reads.back().id);
    for (SourceItem& item : harness.PollOnce(4)) given.push_back(std::move(item));
    ASSERT_LE(given.size(), 19);
  }
  // The first few of the next epoch have been read, and wait.
  EXPECT_THAT(given, SizeIs(19));
  EXPECT_EQ(given.front().ordinal, 3U);
  harness.source().Advance(19);
  const SourceState state = harness.source().state();
  ASSERT_THAT(state.late, SizeIs(1));
  EXPECT_EQ(state.late[0].ordinal, 0U);
  EXPECT_EQ(state.epoch, 0U);
  storage->Complete(late.id);
  const std::vector<SourceItem> last = harness.PollOnce(1);
  ASSERT_THAT(last, SizeIs(1));
  EXPECT_EQ(last[0].ordinal, 0U);
  EXPECT_TRUE(last[0].ends_epoch);
  harness.source().Advance(1);
  EXPECT_EQ(harness.source().state().epoch, 1U);
  EXPECT_THAT(harness.source().state().late, IsEmpty());
}

TEST(SourceOrderTest, AStateWhoseLateRecordsCannotBeIsRefused) {
  std::shared_ptr<FakeStorage> storage = GatedStorage();
  PutFolder(*storage, 20);
  PutShards(*storage, 3);
  const auto open = [&](const std::string& uri, std::vector<SourceState::Late> late,
                        Shard shard = {}) {
    SourceHarness harness(
        ParseSpec("uri: '" + uri + "'"), storage,
        {.shard = shard, .start = SourceState{.next_ordinal = 10, .late = std::move(late)}});
  };
  open("root", {{.ordinal = 3, .place = {.file = 3}}, {.ordinal = 7, .place = {.file = 19}}});
  EXPECT_THROW(open("root", {{.ordinal = 10}}), Error);                          // to come
  EXPECT_THROW(open("root", {{.ordinal = 3, .place = {.file = 20}}}), Error);    // no such record
  EXPECT_THROW(open("root", {{.ordinal = 3}, {.ordinal = 3}}), Error);           // twice
  EXPECT_THROW(open("root", {{.ordinal = 3}}, {.rank = 0, .world = 2}), Error);  // another rank's
  EXPECT_THROW(open("s1.tar", {{.ordinal = 3}}), Error);  // a stream has none
}

TEST(SourceOrderTest, TakeLeavesTheRestOfTheShardsUnread) {
  std::shared_ptr<FakeStorage> storage = GatedStorage();
  const int shards = PutShards(*storage, 2000, 1);
  proto::Source spec = ParseSpec("take: 3");
  for (int i = 0; i < shards; ++i) spec.add_uri(std::string("s") + std::to_string(i) + ".tar");
  SourceHarness harness(spec, storage, {.limits = {.bytes_in_flight = 1 << 20}});
  EXPECT_THAT(harness.TakeAll(), SizeIs(3));
  EXPECT_LT(storage->requests().size(), 20);
}

}  // namespace
}  // namespace echopipe
