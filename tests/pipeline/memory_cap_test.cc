// Memory caps that are too small for the buffers a spec asks for, and those that are enough.

#include <cstdint>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/image_data.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe {
namespace {

using testing::FakeStorage;

constexpr uint64_t kImages = 60;

/// A folder "data" and a shard "a.tar" of the same images.
std::shared_ptr<FakeStorage> ImageStorage() {
  auto storage = std::make_shared<FakeStorage>();
  testing::TarBuilder tar;
  int images = 0;
  for (const auto& [name, bytes] : testing::MakeImages(kImages, 3)) {
    storage->Put("data/" + name, bytes);
    const std::string key = std::to_string(images++);
    tar.AddFile(key + ".jpg", bytes).AddFile(key + ".cls", "1");
  }
  storage->Put("a.tar", tar.AddEnd().bytes());
  return storage;
}

struct Outcome {
  uint64_t examples = 0;
  std::string error = {};
  bool operator==(const Outcome&) const = default;
};

Outcome OutcomeOf(const PipelineSpec& spec, const RuntimeOptions& options) {
  Outcome outcome;
  try {
    const auto pipeline = Pipeline::Open(spec, options);
    for (const Batch& batch : *pipeline) outcome.examples += batch.size();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    outcome.error = error.what();
  }
  return outcome;
}

/// The cap that an error asks for.
uint64_t WantedCap(const std::string& error) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(
      error, found,
      std::regex("about ([0-9]+) bytes are missing.*got ([0-9]+), wanted about ([0-9]+)")))
      << error;
  if (found.size() != 4) return 0;
  EXPECT_EQ(std::stoull(found[1]) + std::stoull(found[2]), std::stoull(found[3]));
  return std::stoull(found[3]);
}

class MemoryCap : public ::testing::TestWithParam<std::tuple<std::string, int, int>> {
 protected:
  // Pictures of several sizes are decoded, so that examples differ in theirs.
  PipelineSpec Spec() const {
    const auto& [source, points, threads] = GetParam();
    const std::string echo = "stage { echo { factor: 2 shuffle_buffer: 30 spacing: 8 } } ";
    return PipelineSpec::FromText(
        "source { " + source + " epochs: 4 } " + (points > 1 ? echo : "") + "stage { decode {} } " +
        (points > 0 ? echo : "") +
        "stage { resize { height: 40 width: 40 } } stage { normalize {} } "
        "stage { batch { size: 8 } } stage { echo { factor: 1.5 } }");
  }
  RuntimeOptions Options(uint64_t cap) const {
    return {.threads = std::get<2>(GetParam()),
            .reads_in_flight = 4,
            .memory_cap = cap,
            .storage = storage_};
  }

 private:
  std::shared_ptr<FakeStorage> storage_ = ImageStorage();
};

TEST_P(MemoryCap, ThatIsTooSmallNamesOneThatWillDoBeforeAnyBatchAndAlwaysTheSame) {
  const Outcome refused = OutcomeOf(Spec(), Options(10'000));
  EXPECT_EQ(refused.examples, 0u);
  const uint64_t wanted = WantedCap(refused.error);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(OutcomeOf(Spec(), Options(10'000)), refused);

  const Outcome uncapped = OutcomeOf(Spec(), Options(0));
  EXPECT_EQ(uncapped.error, "");
  EXPECT_EQ(OutcomeOf(Spec(), Options(wanted)), uncapped);
  EXPECT_EQ(WantedCap(OutcomeOf(Spec(), Options(wanted / 2)).error), wanted)
      << "it does not depend on the cap";
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, MemoryCap,
    ::testing::Combine(::testing::Values("uri: 'data'", "uri: 'a.tar'",
                                         "uri: 'a.tar' shuffle { window: 20 }"),
                       ::testing::Values(0, 1, 2), ::testing::Values(1, 4)));

std::string SpecText(const std::string& stages, const std::string& source = "uri: 'data'") {
  return "source { " + source + " epochs: 4 } stage { decode {} } " + stages;
}

uint64_t Needed(const std::string& text, const RuntimeOptions& options = {}) {
  RuntimeOptions capped = options;
  capped.threads = 1;
  capped.memory_cap = 1;
  capped.storage = ImageStorage();
  return WantedCap(OutcomeOf(PipelineSpec::FromText(text), capped).error);
}

TEST(MemoryCapTest, CountsWhatEachBufferHolds) {
  const std::string resize = "stage { resize { height: 40 width: 40 } } ";
  const std::string batch = "stage { batch { size: 8 } } ";
  const uint64_t plain = Needed(SpecText(resize + batch));
  // Of 4,800 bytes each, with a quarter more, and as much again for three for reading ahead.
  const uint64_t bytes = 1000 * 4800 * 5 / 4;
  const uint64_t more = bytes + bytes / 3;
  const auto echoed = [&](const std::string& buffer) {
    return Needed(SpecText(resize + "stage { echo { factor: 2 shuffle_buffer: " + buffer +
                           " spacing: 8 } } " + batch));
  };
  EXPECT_NEAR(static_cast<double>(echoed("1020") - echoed("20")), static_cast<double>(more), 3);
  const auto batch_echoed = [&](const std::string& buffer) {
    return Needed(SpecText(resize + batch + "stage { echo { factor: 2 shuffle_buffer: " + buffer +
                           " spacing: 1 } }"));
  };
  EXPECT_NEAR(static_cast<double>(batch_echoed("130") - batch_echoed("5")),
              static_cast<double>(more), 3);
  EXPECT_GT(Needed(SpecText(resize + batch), {.prefetch = 12}), plain + 10 * 8 * 4800);
  const auto windowed = [&](const std::string& window) {
    return Needed(SpecText(resize + batch, "uri: 'a.tar' shuffle { window: " + window + " }"));
  };
  EXPECT_GT(windowed("1020"), windowed("20"));
}

TEST(MemoryCapTest, BatchesFromTheUsersAllocatorCountToo) {
  const std::string text = SpecText(
      "stage { resize { height: 40 width: 40 } } "
      "stage { normalize {} } stage { batch { size: 8 } } ");
  const auto allocate = [](size_t bytes) {
    return std::shared_ptr<uint8_t>(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  };
  EXPECT_EQ(Needed(text, {.allocator = allocate}), Needed(text));
}

TEST(MemoryCapTest, ThatExamplesOutgrowIsAnErrorInItsPlace) {
  const PipelineSpec spec =
      PipelineSpec::FromText(
          "source { uri: 'data' epochs: 0 } stage { map { function: 'grow' } } "
          "stage { batch { size: 6 } }")
          .WithMap("grow", [](Example& example) {
            if (example.provenance().identity.epoch < 2) return;
            BufferPool pool;
            const auto large = pool.Allocate(1'000'000);
            example.Set("image", Tensor(DType::kBytes, {1'000'000}, large));
          });
  const RuntimeOptions options{.threads = 2, .memory_cap = 3'000'000, .storage = ImageStorage()};
  const Outcome outcome = OutcomeOf(spec, options);
  EXPECT_GE(outcome.examples, 2 * kImages) << "all that came before is delivered";
  EXPECT_LT(outcome.examples, 3 * kImages);
  EXPECT_GT(WantedCap(outcome.error), 3'000'000u);
  EXPECT_EQ(OutcomeOf(spec, options), outcome);
}

TEST(MemoryNeedTest, TheLeastCapLeavesWhatIsNeededBesideReadingAhead) {
  using internal::CapFor;
  using internal::ReadAheadOf;
  for (const uint64_t bytes :
       {0ul, 1ul, 2ul, 3ul, 4ul, 1000ul, 402'653'183ul, 402'653'184ul, 1'000'000'007ul}) {
    const uint64_t cap = CapFor(bytes);
    EXPECT_GE(cap - ReadAheadOf(cap), bytes);
    EXPECT_LE(cap - ReadAheadOf(cap), bytes + 2);
  }
}

}  // namespace
}  // namespace echopipe
