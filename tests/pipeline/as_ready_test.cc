// RecordOrder::kAsReady: the order is given up, and nothing else.

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/random_pipeline.h>

namespace echopipe {
namespace {

using testing::FakeStorage;
using testing::MakeRandomPipeline;
using testing::OneIn;
using testing::RandomPipeline;
using testing::SpecWithFunctions;

/// Objects whose reads end in a random order, as long as it lives.
class Shuffled {
 public:
  Shuffled(const std::map<std::string, std::string>& objects, uint64_t seed)
      : thread_([this, seed](const std::stop_token& stop) { Serve(seed, stop); }) {
    for (const auto& [path, bytes] : objects) storage_->Put(path, bytes);
  }

  std::shared_ptr<FakeStorage> storage() const { return storage_; }

 private:
  void Serve(uint64_t seed, const std::stop_token& stop) {
    RandomStream random({.low = seed, .high = 11});
    while (!stop.stop_requested()) {
      const std::vector<FakeStorage::PendingRead> reads = storage_->pending();
      if (reads.empty()) {
        std::this_thread::yield();
      } else {
        storage_->Complete(reads[random.Below(static_cast<uint32_t>(reads.size()))].id);
      }
    }
  }

  std::shared_ptr<FakeStorage> storage_ = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
  std::jthread thread_;
};

using Fresh = std::multiset<std::tuple<uint64_t, std::string, uint64_t>>;

uint64_t HashOfImage(const Batch& batch, size_t i) {
  const std::span<const uint8_t> images = batch.Get("image").bytes();
  const size_t size = images.size() / batch.size();
  return HashBytes({reinterpret_cast<const char*>(images.data()) + i * size, size});
}

/// Each record's first use: its epoch, its key and, unless sources are mixed, its pixels. Of a mix
/// the leader's alone: how the others' records fall into it is the order's.
void AddFresh(const Batch& batch, bool is_mixed, Fresh* fresh) {
  for (size_t i = 0; i < batch.size(); ++i) {
    const Provenance from = batch.provenance(i);
    const bool is_fresh =
        std::ranges::all_of(from.identity.uses(), [](uint32_t use) { return use == 0; });
    if (!is_fresh || from.uri->starts_with("more/")) continue;
    fresh->emplace(from.identity.epoch, from.key, is_mixed ? 0 : HashOfImage(batch, i));
  }
}

RuntimeOptions RandomOptions(RandomStream& random, std::shared_ptr<Storage> storage) {
  return {.threads = static_cast<int>(random.Between(1, 4)),
          .reads_in_flight = static_cast<int>(random.Between(2, 20)),
          .order = RecordOrder::kAsReady,
          .prefetch = static_cast<int>(random.Between(2, 6)),
          .storage = std::move(storage)};
}

/// What is delivered over a few restores, one of the other; it may be the order's run in between.
Fresh DeliverWithRestores(const PipelineSpec& spec, const RandomPipeline& made, bool is_mixed,
                          RandomStream& random) {
  Fresh fresh;
  std::optional<PipelineCheckpoint> checkpoint;
  for (int link = 0;; ++link) {
    const Shuffled objects(made.objects, random.Below(1000));
    RuntimeOptions options = RandomOptions(random, objects.storage());
    if (OneIn(random, 4)) options.order = RecordOrder::kInOrder;
    const std::unique_ptr<Pipeline> pipeline =
        checkpoint ? Pipeline::Restore(spec, *checkpoint, options, made.rank)
                   : Pipeline::Open(spec, options, made.rank);
    for (uint64_t left = link == 3 ? ~uint64_t{0} : random.Below(9); left > 0; --left) {
      const std::optional<Batch> batch = pipeline->Next();
      if (!batch) return fresh;
      AddFresh(*batch, is_mixed, &fresh);
    }
    checkpoint = pipeline->Checkpoint();
  }
}

#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kCases = 100;
#else
constexpr uint64_t kCases = 400;
#endif

TEST(AsReadyTest, NothingIsLostAndNothingComesTwiceAcrossAnyRestores) {
  uint64_t tried = 0;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    RandomStream random(HashToKey(std::array<uint64_t, 2>{0x7265616479, seed}));
    const RandomPipeline made = MakeRandomPipeline(random);
    const std::string text = made.Text();
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    // Which ones are left over, or bad, or come before an endless run is stopped, is the order's.
    if (has("DROP") || has("policy") || has("epochs: 0")) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
    const bool is_mixed = has("more/");
    const PipelineSpec spec = SpecWithFunctions(text);
    Fresh in_order;
    {
      const Shuffled objects(made.objects, seed);
      RuntimeOptions options = RandomOptions(random, objects.storage());
      options.order = RecordOrder::kInOrder;
      const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options, made.rank);
      while (const std::optional<Batch> batch = pipeline->Next()) {
        AddFresh(*batch, is_mixed, &in_order);
      }
    }
    ASSERT_EQ(DeliverWithRestores(spec, made, is_mixed, random), in_order);
    ++tried;
  }
  EXPECT_GT(tried, kCases / 4);
}

std::map<std::string, std::string> FolderOf(int records) {
  std::map<std::string, std::string> objects;
  for (int i = 0; i < records; ++i) {
    objects["root/c/" + std::to_string(100 + i) + ".jpg"] = "record " + std::to_string(i);
  }
  return objects;
}

const char* const kFolder = "source { uri: 'root' } stage { batch { size: 4 } }";

TEST(AsReadyTest, ALateRecordHoldsUpNoBatchButItsOwn) {
  const auto storage = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
  for (const auto& [path, bytes] : FolderOf(40)) storage->Put(path, bytes);
  const std::unique_ptr<Pipeline> pipeline =
      Pipeline::Open(PipelineSpec::FromText(kFolder),
                     {.threads = 1, .order = RecordOrder::kAsReady, .storage = storage});
  std::atomic<bool> is_late = true;
  const std::jthread server([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const FakeStorage::PendingRead& read : storage->pending()) {
        if (!is_late || !read.request.path.ends_with("102.jpg")) storage->Complete(read.id);
      }
      std::this_thread::yield();
    }
  });
  std::vector<std::string> keys;
  for (int step = 0; step < 9; ++step) {  // all but the last
    const std::optional<Batch> batch = pipeline->Next();
    ASSERT_TRUE(batch);
    for (size_t i = 0; i < batch->size(); ++i) keys.push_back(batch->provenance(i).key);
  }
  EXPECT_THAT(keys, ::testing::Not(::testing::Contains("c/102.jpg")));
  is_late = false;
  const std::optional<Batch> last = pipeline->Next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->size(), 4U);
  EXPECT_TRUE(last->end_of_epoch());
  int found = 0;
  for (size_t i = 0; i < last->size(); ++i) {
    if (last->provenance(i).key != "c/102.jpg") continue;
    EXPECT_EQ(last->provenance(i).identity.ordinal, 2U);
    ++found;
  }
  EXPECT_EQ(found, 1);
  EXPECT_FALSE(pipeline->Next());
}

TEST(AsReadyTest, ALateRecordComesBehindARestore) {
  const auto gated = std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
  const auto immediate = std::make_shared<FakeStorage>();
  for (const auto& [path, bytes] : FolderOf(40)) {
    gated->Put(path, bytes);
    immediate->Put(path, bytes);
    if (!path.ends_with("102.jpg")) gated->OpenGateFor(path);
  }
  const PipelineSpec spec = PipelineSpec::FromText(kFolder);
  RuntimeOptions options{.threads = 1, .order = RecordOrder::kAsReady, .storage = gated};
  std::multiset<std::string> keys;
  const auto add = [&](const Batch& batch) {
    for (size_t i = 0; i < batch.size(); ++i) keys.insert(batch.provenance(i).key);
  };
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(spec, options);
  for (int step = 0; step < 5; ++step) add(*pipeline->Next());
  const PipelineCheckpoint checkpoint =
      PipelineCheckpoint::FromBytes(pipeline->Checkpoint().ToBytes());
  pipeline->Stop();
  EXPECT_THAT(checkpoint.message().source().late_ordinal(), ::testing::Contains(2U));
  EXPECT_EQ(keys.count("c/102.jpg"), 0U);

  options.storage = immediate;
  const std::unique_ptr<Pipeline> restored = Pipeline::Restore(spec, checkpoint, options);
  while (const std::optional<Batch> batch = restored->Next()) add(*batch);
  EXPECT_EQ(keys.size(), 40U);
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 40U);
}

TEST(AsReadyTest, DecisionsOfOneOrderAreNeitherWrittenDownNorReplayedInAnother) {
  const PipelineSpec spec = PipelineSpec::FromText(
      "source { uri: 'root' } stage { echo { adaptive {} } } stage { batch { size: 4 } }");
  const auto error_of = [&](const std::string& decision_log, const std::string& replay_log) {
    RuntimeOptions options;
    options.order = RecordOrder::kAsReady;
    options.decision_log = decision_log;
    options.replay_log = replay_log;
    try {
      Pipeline::Open(spec, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_THAT(error_of("", "run.log"), ::testing::HasSubstr("replay_log"));
  EXPECT_THAT(error_of("run.log", ""), ::testing::HasSubstr("decision_log"));
}

}  // namespace
}  // namespace echopipe
