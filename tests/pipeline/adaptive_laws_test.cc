// What an adaptive echo promises of a whole pipeline, however its link and its consumer behave.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/graph/shadow_codec.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/random_echo.h>
#include <echopipe/tests/support/virtual_run.h>

namespace echopipe {
namespace {

using namespace std::chrono_literals;
using testing::Number;
using testing::Play;
using testing::PlayAtOnce;
using testing::TempFolder;
using testing::VirtualResult;
using testing::VirtualRun;

bool OneIn(RandomStream& random, uint32_t n) { return random.Below(n) == 0; }

// [6, 8, 3] uint8 that differ with each record.
void MakePixels(Example& example) {
  RandomStream random({.low = HashBytes(example.provenance().key), .high = 1});
  BufferPool pool;
  TensorBuilder pixels(DType::kUint8, {6, 8, 3}, pool);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels.data()[i] = static_cast<uint8_t>(random.Below(256));
  }
  example.Set("image", std::move(pixels).Finish());
}

void ThrowAtSome(Example& example) {
  uint64_t hash = HashBytes(example.provenance().key);
  for (const uint32_t use : example.provenance().identity.uses()) hash += 7 * use;
  if (hash % 9 == 0) throw std::runtime_error("not this one");
}

PipelineSpec SpecOf(const std::string& text) {
  return PipelineSpec::FromText(text)
      .WithMap("pixels", MakePixels)
      .WithMap("throws at some", ThrowAtSome);
}

/// A pipeline with an adaptive echo, and the same with an echo that repeats nothing.
struct Case {
  std::string adaptive;
  std::string once;
  size_t point = 0;  ///< of the adaptive one among the echo points
  uint32_t max_factor = 8;
  int records = 0;
  uint64_t batch = 1;
};

Case MakeCase(RandomStream& random) {
  Case made;
  made.records = static_cast<int>(random.Between(15, 90));
  made.batch = static_cast<uint64_t>(random.Between(1, 9));
  std::string before = Number("seed", random.Below(1000)) + " source { uri: 'data'" +
                       Number("epochs", 1 + random.Below(3)) +
                       (OneIn(random, 2) ? " shuffle { full {} } } " : " } ");
  const bool skips = OneIn(random, 3);
  if (skips) before += "bad_examples { policy: SKIP } ";
  if (OneIn(random, 5)) before += Number("steps_per_epoch", 2 + random.Below(5)) + " ";
  const std::vector<std::string> stages = {
      "map { function: 'pixels' }", "random_flip {}",
      skips ? "map { function: 'throws at some' }" : "random_flip {}",
      "random_crop { height: 4 width: 4 padding: 2 }",
      "batch {" + Number("size", made.batch) + (OneIn(random, 4) ? " remainder: DROP" : "") +
          (OneIn(random, 3) ? " across_epochs: true" : "") + " }"};
  std::string adaptive = " adaptive {";
  if (OneIn(random, 2)) {
    made.max_factor = 1 + random.Below(10);
    adaptive += Number("max_factor", made.max_factor);
  }
  if (OneIn(random, 3)) adaptive += Number("low_water_ms", random.Below(200));
  if (OneIn(random, 4)) adaptive += Number("max_age", 40 + random.Below(300));
  adaptive += " }";
  const size_t place = random.Below(static_cast<uint32_t>(stages.size()) + 1);
  std::string buffer;
  if (OneIn(random, 2)) {
    const uint64_t size = 1 + random.Below(40);
    buffer = Number("shuffle_buffer", size) +
             Number("spacing", random.Below(static_cast<uint32_t>(size) + 1));
  }
  std::string after;
  for (size_t i = 0; i <= stages.size(); ++i) {
    if (i > 0) (i <= place ? before : after) += "stage { " + stages[i - 1] + " } ";
    if (i < place && OneIn(random, 8)) {
      before += "stage { echo { factor: 1.5 shuffle_buffer: 12 spacing: 3 } } ";
      ++made.point;
    }
  }
  made.adaptive = before + "stage { echo {" + adaptive + buffer + " } } " + after;
  made.once = before + "stage { echo { factor: 1 } } " + after;
  return made;
}

Clock::Duration Milliseconds(RandomStream& random, uint32_t most) {
  return std::chrono::milliseconds(1 + random.Below(most));
}

/// Link, consumer and threads, as they may be.
VirtualRun AnyRun(RandomStream& random, const Case& the_case, const PipelineSpec& spec) {
  VirtualRun run{.spec = spec, .records = the_case.records};
  run.per_record = Milliseconds(random, 20);
  run.latency = Milliseconds(random, 10);
  run.per_example = Milliseconds(random, 12);
  Clock::Duration at{};
  for (uint32_t stops = random.Below(4); stops > 0; --stops) {
    at += Milliseconds(random, 1500);
    const Clock::Duration length = Milliseconds(random, 2000);
    run.stops.push_back({.at = at, .length = length});
    at += length;
  }
  run.runtime.threads = static_cast<int>(random.Between(2, 4));
  run.runtime.prefetch = static_cast<int>(random.Between(2, 5));
  run.runtime.reads_in_flight = static_cast<int>(random.Between(1, 20));
  return run;
}

std::string HashOf(const Batch& batch) {
  BatchHash hash;
  hash.Add(batch);
  return hash.Hex() + (batch.end_of_epoch() ? " ends epoch " : " of epoch ") +
         std::to_string(batch.epoch());
}

std::vector<std::string> HashesOf(const VirtualResult& result, size_t from = 0) {
  std::vector<std::string> hashes;
  for (size_t i = from; i < result.batches.size(); ++i) {
    hashes.push_back(HashOf(result.batches[i].batch));
  }
  return hashes;
}

std::string NameOf(const Identity& identity, size_t points) {
  std::string name = std::to_string(identity.epoch) + "." + std::to_string(identity.ordinal);
  for (size_t i = 0; i < points; ++i) name += "," + std::to_string(identity.use[i]);
  return name;
}

uint64_t PixelsOf(const Batch& batch, size_t i) {
  const std::span<const uint8_t> bytes = batch.Get("image").bytes();
  const size_t size = bytes.size() / batch.size();
  return HashBytes({reinterpret_cast<const char*>(bytes.data()) + i * size, size});
}

/// What came of a run: examples that were fresh at the adaptive point, with their pixels, and each
/// item's uses there.
struct Uses {
  std::vector<std::string> fresh;
  std::map<std::string, std::vector<uint32_t>> of_item;
  uint64_t echoes = 0;

  void Add(const VirtualResult& result, size_t point, size_t most = ~size_t{0}) {
    for (size_t b = 0; b < std::min(most, result.batches.size()); ++b) {
      const Batch& batch = result.batches[b].batch;
      for (size_t i = 0; i < batch.size(); ++i) {
        const Identity identity = batch.provenance(i).identity;
        const std::string name = NameOf(identity, point);
        of_item[name].push_back(identity.use[point]);
        echoes += identity.use[point] > 0 ? 1 : 0;
        if (identity.use[point] == 0) {
          fresh.push_back(name + ":" + std::to_string(PixelsOf(batch, i)));
        }
      }
    }
  }
};

void ExpectWithin(const Uses& uses, uint32_t max_factor) {
  for (const auto& [item, of_item] : uses.of_item) {
    std::vector<uint32_t> sorted = of_item;
    std::ranges::sort(sorted);
    EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << item;
    EXPECT_LT(sorted.back(), max_factor) << item;
  }
}

/// Remainders and the steps they make depend on how many echoes there are: dropped, examples that
/// would be in an e = 1 run may be missing at the end of an epoch, or those missing there be here.
bool LosesExamples(const Case& the_case) {
  return the_case.adaptive.find("DROP") != std::string::npos;
}

internal::ShadowState ThroughACheckpoint(const PipelineSpec& spec,
                                         const internal::ShadowState& state) {
  proto::Checkpoint message;
  internal::Encode(state, &message);
  proto::Checkpoint again;
  EXPECT_TRUE(again.ParseFromString(message.SerializeAsString()));
  return internal::Decode(again, internal::MakePlan(spec));
}

uint64_t DrawsOf(const internal::ShadowState& state) {
  for (const auto& echo : state.echoes) {
    if (echo.adaptive) return echo.adaptive->order.draws;
  }
  return state.batch_echoes.at(0).adaptive->order.draws;
}

/// The number of echoes seen.
uint64_t CheckCase(RandomStream& random) {
  const Case the_case = MakeCase(random);
  SCOPED_TRACE(the_case.adaptive + " of " + std::to_string(the_case.records));
  const PipelineSpec spec = SpecOf(the_case.adaptive);
  const TempFolder folder;
  const std::string path = folder.Path("decisions");

  VirtualRun run = AnyRun(random, the_case, spec);
  run.keeps_states = true;
  VirtualResult live;
  {
    internal::DecisionLogFile file(path, 1, 0);
    run.decisions.file = &file;
    live = Play(run);
    file.Write();
  }
  EXPECT_FALSE(live.error) << live.error->what();
  VirtualRun once_run{.spec = SpecOf(the_case.once), .records = the_case.records};
  Uses uses;
  Uses once;
  uses.Add(live, the_case.point);
  once.Add(PlayAtOnce(once_run), the_case.point);
  ExpectWithin(uses, the_case.max_factor);
  if (!LosesExamples(the_case)) {
    EXPECT_EQ(uses.fresh, once.fresh);
  }

  // On another machine, at once.
  const DecisionLog log = internal::LoadDecisionLog(path);
  VirtualRun replay = AnyRun(random, the_case, spec);
  replay.decisions.replay = DecisionReader(log, 0);
  EXPECT_EQ(HashesOf(PlayAtOnce(replay)), HashesOf(live));

  // Behind some step, as the log goes on, and as it may go.
  if (live.batches.empty()) return uses.echoes;
  const size_t step = random.Below(static_cast<uint32_t>(live.batches.size()));
  SCOPED_TRACE("restored behind batch " + std::to_string(step));
  const internal::ShadowState state = ThroughACheckpoint(spec, live.states[step]);
  VirtualRun resumed = AnyRun(random, the_case, spec);
  resumed.start = &state;
  resumed.decisions.replay = DecisionReader(log, DrawsOf(state));
  EXPECT_EQ(HashesOf(PlayAtOnce(resumed)), HashesOf(live, step + 1));
  resumed.decisions.replay = std::nullopt;
  const VirtualResult rest = Play(resumed);
  EXPECT_FALSE(rest.error) << rest.error->what();
  Uses all;
  all.Add(live, the_case.point, step + 1);
  all.Add(rest, the_case.point);
  ExpectWithin(all, the_case.max_factor);
  if (!LosesExamples(the_case)) {
    EXPECT_EQ(all.fresh, once.fresh);
  }
  return uses.echoes;
}

// Sanitizers are slow; the other builds try them all.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kCases = 40;
#else
constexpr uint64_t kCases = 200;
#endif

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// ECHOPIPE_ADAPTIVE_CASES and ECHOPIPE_ADAPTIVE_SEED choose how many cases, from which on.
TEST(AdaptiveLawsTest, WithoutItsEchoesARunIsTheOneAtFactorOneAndItsLogBringsThemBack) {
  const uint64_t first = NumberFrom("ECHOPIPE_ADAPTIVE_SEED", 0);
  const uint64_t cases = NumberFrom("ECHOPIPE_ADAPTIVE_CASES", kCases);
  uint64_t echoes = 0;
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE("ECHOPIPE_ADAPTIVE_CASES=1 ECHOPIPE_ADAPTIVE_SEED=" + std::to_string(seed));
    RandomStream random(HashToKey(std::array<uint64_t, 2>{0x61646170, seed}));
    echoes += CheckCase(random);
    if (::testing::Test::HasFailure()) return;
  }
  RecordProperty("echoes", static_cast<int>(echoes));
  if (cases >= 10) {
    EXPECT_GT(echoes, 20 * cases) << "the law was hardly tried";
  }
}

}  // namespace
}  // namespace echopipe
