// What an adaptive echo promises of a whole pipeline, however its link and its consumer behave.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/graph/shadow_codec.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/random_echo.h>
#include <echopipe/tests/support/random_pipeline.h>
#include <echopipe/tests/support/virtual_run.h>

namespace echopipe {
namespace {

using internal::DecisionLogFile;
using internal::ShadowState;
using testing::HashOf;
using testing::MakeRandomPipelineWith;
using testing::Number;
using testing::OneIn;
using testing::Play;
using testing::PlayAtOnce;
using testing::RandomPipeline;
using testing::SpecWithFunctions;
using testing::TempFolder;
using testing::VirtualResult;
using testing::VirtualRun;

constexpr uint64_t kMostSteps = 120;  // of a random case
constexpr uint64_t kMostBatch = 12;   // of the generator

// ---- random cases

constexpr std::string_view kDrop = " remainder: DROP";

size_t CountEchoes(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find("stage { echo {", at)) != text.npos; ++at) ++count;
  return count;
}

std::string Replace(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

/// A pipeline with an adaptive echo, and the same with one that repeats nothing.
struct Case {
  RandomPipeline pipeline;
  std::string adaptive;
  std::string once;  ///< and drops no examples: with echoes among them, others remain
  size_t point = 0;  ///< the adaptive one's place among the echo points
  size_t points = 0;
  bool drops = false;  ///< fresh examples, in remainders
  uint32_t max_factor = 8;

  bool Has(std::string_view words) const { return adaptive.find(words) != adaptive.npos; }
  /// Echoes change the order of what later echo points give, and how often each is used.
  bool keeps_order() const { return point + 1 == points; }
  bool is_endless() const { return Has("epochs: 0"); }
  /// A batch that has been delivered cannot be told any more that it was the last of its epoch, if
  /// a run that goes on behind it gives that epoch no other.
  bool may_miss_a_mark() const { return Has(kDrop) || Has("bad_examples") || Has("filter"); }
  /// Batches are of one epoch each.
  bool keeps_epochs_apart() const {
    return !Has("across_epochs") && !Has("steps_per_epoch") && !echoes_batches();
  }
  bool echoes_batches() const {
    return adaptive.find("stage { echo {", adaptive.find("stage { batch")) != adaptive.npos;
  }
  /// Whether and when an echo is bad depends on which there are.
  bool echoes_may_be_bad() const { return Has("throws at some"); }
  /// Whom later echo points' orders let stand in for whom.
  bool echoes_decide_stand_ins() const { return Has("REPLACE") && !keeps_order(); }
};

std::string AnyAdaptive(RandomStream& random, uint32_t max_factor) {
  std::string adaptive = "stage { echo { adaptive {" + Number("max_factor", max_factor);
  if (OneIn(random, 3)) adaptive += Number("low_water_ms", random.Below(200));
  if (OneIn(random, 4)) adaptive += Number("max_age", 40 + random.Below(300));
  adaptive += " }";
  if (OneIn(random, 2)) {
    const uint64_t size = 1 + random.Below(40);
    adaptive += Number("shuffle_buffer", size) +
                Number("spacing", random.Below(static_cast<uint32_t>(size) + 1));
  }
  return adaptive + " } } ";
}

Case MakeCase(RandomStream& random) {
  Case made;
  made.max_factor = OneIn(random, 2) ? 8 : 1 + random.Below(10);
  const std::string stage = AnyAdaptive(random, made.max_factor);
  made.pipeline = MakeRandomPipelineWith(stage, random);
  made.adaptive = made.pipeline.Text();
  made.once = Replace(made.adaptive, stage, "stage { echo { factor: 1 } } ");
  if (made.adaptive.find(stage) < made.adaptive.find("stage { batch")) {
    made.once = Replace(made.once, kDrop, "");
    made.drops = made.Has(kDrop);
  }
  made.points = CountEchoes(made.adaptive);
  made.point = CountEchoes(std::string_view(made.adaptive).substr(0, made.adaptive.find(stage)));
  // So that a folder's records take their time on the link.
  for (auto& [path, bytes] : made.pipeline.objects) {
    if (path.starts_with("root/") && !bytes.empty())
      bytes.resize(std::max<size_t>(bytes.size(), 1000), '.');
  }
  return made;
}

Clock::Duration Milliseconds(RandomStream& random, uint32_t most) {
  return std::chrono::milliseconds(1 + random.Below(most));
}

VirtualRun RunOf(const Case& the_case, const PipelineSpec& spec) {
  return {.spec = spec,
          .objects = the_case.pipeline.objects,
          .rank = the_case.pipeline.rank,
          .most_batches = kMostSteps};
}

/// Link, consumer and threads, as they may be: all that decides what happens when.
VirtualRun AnyRun(RandomStream& random, const Case& the_case, const PipelineSpec& spec) {
  VirtualRun run = RunOf(the_case, spec);
  run.per_record = Milliseconds(random, 20);
  run.latency = Milliseconds(random, 10);
  // Of each batch, and now and then of one.
  const uint32_t most = 2 * random.Below(100);
  run.per_batch = [most, seed = random.Below(1000)](uint64_t batch) {
    RandomStream moment(HashToKey(std::array<uint64_t, 2>{seed, batch}));
    return Milliseconds(moment, OneIn(moment, 10) ? 1000 : 1 + most);
  };
  Clock::Duration at{};
  for (uint32_t stops = random.Below(4); stops > 0; --stops) {
    at += Milliseconds(random, 1500);
    const Clock::Duration length = Milliseconds(random, 2000);
    run.stops.push_back({.at = at, .length = length});
    at += length;
  }
  run.runtime.threads = static_cast<int>(random.Between(1, 4));
  run.runtime.prefetch = static_cast<int>(random.Between(2, 5));
  run.runtime.reads_in_flight = static_cast<int>(random.Between(1, 20));
  run.keeps_states = true;
  return run;
}

// ---- what a run gave

/// Of each batch its hash, and behind it the checkpoint; and how it ended.
struct Delivered {
  std::map<uint64_t, std::string> hashes = {};
  std::map<uint64_t, std::string> checkpoints = {};
  std::string error = {};

  void Add(const VirtualResult& result) {
    for (size_t i = 0; i < result.batches.size(); ++i) {
      const Batch& batch = result.batches[i].batch;
      hashes[batch.step()] = HashOf(batch);
      if (!result.states[i]) continue;
      proto::Checkpoint message;
      internal::Encode(*result.states[i], &message);
      checkpoints[batch.step() + 1] = message.SerializeAsString();
    }
    error = result.error ? result.error->what() : "";
  }
  /// Behind so many steps.
  Delivered From(uint64_t step) const {
    return {{hashes.lower_bound(step), hashes.end()},
            {checkpoints.upper_bound(step), checkpoints.end()},
            error};
  }
};

Delivered DeliveredBy(const VirtualResult& result) {
  Delivered delivered;
  delivered.Add(result);
  return delivered;
}

/// No batch of an epoch comes behind the one that ends it.
void ExpectEpochsEndOnce(const VirtualResult& before, uint64_t step, const VirtualResult& behind) {
  std::optional<uint64_t> ended;
  for (const VirtualResult* result : {&before, &behind}) {
    for (const VirtualResult::Taken& taken : result->batches) {
      const Batch& batch = taken.batch;
      if (result == &before && batch.step() >= step) break;
      if (ended) {
        EXPECT_GT(batch.epoch(), *ended) << "step " << batch.step();
      }
      if (batch.end_of_epoch()) ended = batch.epoch();
    }
  }
}

void ExpectSame(const Delivered& got, const Delivered& wanted) {
  EXPECT_EQ(got.hashes, wanted.hashes);
  EXPECT_TRUE(got.checkpoints == wanted.checkpoints);
  EXPECT_EQ(got.error, wanted.error);
}

ShadowState StateIn(const std::string& checkpoint, const PipelineSpec& spec) {
  proto::Checkpoint message;
  EXPECT_TRUE(message.ParseFromString(checkpoint));
  return internal::Decode(message, internal::MakePlan(spec));
}

uint64_t DrawsOf(const ShadowState& state) {
  for (const auto& echo : state.echoes) {
    if (echo.adaptive) return echo.adaptive->order.draws;
  }
  for (const auto& echo : state.batch_echoes) {
    if (echo.adaptive) return echo.adaptive->order.draws;
  }
  ADD_FAILURE() << "nothing adaptive";
  return 0;
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

/// Examples that are fresh at the adaptive point, with their pixels, and each item's uses there.
/// Of what later echo points repeat, the first use.
struct Uses {
  explicit Uses(const Case& the_case)
      : point(the_case.point), leaves_out_stand_ins(the_case.echoes_decide_stand_ins()) {}

  void Add(const VirtualResult& result, uint64_t end_step = ~uint64_t{0}) {
    for (const VirtualResult::Taken& taken : result.batches) {
      if (taken.batch.step() >= end_step) return;
      for (size_t i = 0; i < taken.batch.size(); ++i) Add(taken.batch, i);
    }
  }
  void Add(const Batch& batch, size_t i) {
    const Provenance provenance = batch.provenance(i);
    const Identity& identity = provenance.identity;
    const auto later = identity.uses().subspan(point + 1);
    if (std::ranges::any_of(later, [](uint32_t use) { return use > 0; })) return;
    const std::string name = NameOf(identity, point);
    of_item[name].push_back(identity.use[point]);
    echoes += identity.use[point] > 0 ? 1 : 0;
    if (identity.use[point] > 0 || (provenance.stands_in && leaves_out_stand_ins)) return;
    fresh.push_back(name + ":" + provenance.key + ":" + std::to_string(PixelsOf(batch, i)));
  }

  size_t point;
  bool leaves_out_stand_ins;
  std::vector<std::string> fresh = {};
  std::map<std::string, std::vector<uint32_t>> of_item = {};
  uint64_t echoes = 0;
};

void ExpectWithin(const Uses& uses, uint32_t max_factor) {
  for (const auto& [item, of_item] : uses.of_item) {
    std::vector<uint32_t> sorted = of_item;
    std::ranges::sort(sorted);
    EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << item;
    EXPECT_LT(sorted.back(), max_factor) << item;
  }
}

// ---- the laws

/// The most fresh examples that a whole run may drop: a remainder for each epoch.
size_t MostDropped(const Case& the_case) {
  const size_t most_epochs = the_case.is_endless() ? kMostSteps : 4;
  return the_case.drops ? (kMostBatch - 1) * most_epochs : 0;
}

/// `a` is the beginning of `b`, but for so many that it leaves out.
void ExpectWithout(const std::vector<std::string>& a, const std::vector<std::string>& b,
                   size_t most_missing) {
  size_t missing = 0;
  size_t at = 0;
  for (const std::string& name : a) {
    while (at < b.size() && b[at] != name) ++at, ++missing;
    ASSERT_LT(at, b.size()) << name << " is not there, or not in this order";
    ++at;
  }
  EXPECT_LE(missing, most_missing);
}

/// With its echoes deleted, a run is the one at factor 1.
void ExpectFactorOne(const Case& the_case, std::vector<std::string> fresh, const std::string& error,
                     bool whole) {
  VirtualRun run = RunOf(the_case, SpecWithFunctions(the_case.once));
  // Batches may be smaller at factor 1.
  run.most_batches = the_case.is_endless() ? kMostBatch * kMostSteps : ~uint64_t{0};
  const VirtualResult result = PlayAtOnce(run);
  Uses once(the_case);
  once.Add(result);
  const bool once_is_whole = !the_case.is_endless() && !result.error;
  if (!the_case.keeps_order()) {
    if (!once_is_whole || !whole) return;
    std::ranges::sort(fresh);
    std::ranges::sort(once.fresh);
  }
  ExpectWithout(fresh, once.fresh, MostDropped(the_case));
  if (!whole) return;
  const bool ends_alike =
      !the_case.echoes_may_be_bad() && the_case.keeps_order() && !the_case.drops;
  if (ends_alike) {
    EXPECT_EQ(error, result.error ? result.error->what() : "");
  }
  if (ends_alike || error.empty()) {
    EXPECT_GE(fresh.size() + MostDropped(the_case), once.fresh.size());
  }
}

/// Runs it with a log in this file.
VirtualResult PlayWithLog(VirtualRun run, const std::string& path) {
  DecisionLogFile file(path, 1, run.start == nullptr ? 0 : DrawsOf(*run.start));
  run.decisions = {.file = &file};
  VirtualResult result = Play(run);
  file.Write();
  return result;
}

/// What a replay gives, on another machine, at once.
Delivered Replay(VirtualRun run, const std::string& path) {
  const DecisionLog log = internal::LoadDecisionLog(path);
  run.decisions = {.replay = DecisionReader(log, run.start == nullptr ? 0 : DrawsOf(*run.start))};
  return DeliveredBy(PlayAtOnce(run));
}

class CaseCheck {
 public:
  CaseCheck(RandomStream& random, const Case& the_case)
      : random_(random), case_(the_case), spec_(SpecWithFunctions(the_case.adaptive)) {}

  /// The number of echoes seen.
  uint64_t Run() {
    const VirtualResult live = PlayWithLog(AnyRun(random_, case_, spec_), path_);
    Uses uses(case_);
    uses.Add(live);
    CheckUses(uses, live);
    const Delivered all = DeliveredBy(live);
    CheckReplays(all);
    if (!all.checkpoints.empty() && !::testing::Test::HasFailure()) GoOn(live, all);
    return uses.echoes;
  }

 private:
  void CheckUses(const Uses& uses, const VirtualResult& last) {
    ExpectWithin(uses, case_.max_factor);
    ExpectFactorOne(case_, uses.fresh, last.error ? last.error->what() : "",
                    last.error || last.batches.size() < kMostSteps);
  }

  /// From the start, and from two checkpoints, one behind the other: the same batches, and the same
  /// checkpoints byte for byte; but for the one in front of `loose`.
  void CheckReplays(const Delivered& all, std::optional<uint64_t> loose = std::nullopt) {
    Delivered replayed = Replay(AnyRun(random_, case_, spec_), path_);
    if (loose) {
      replayed.hashes[*loose - 1] = all.hashes.at(*loose - 1);
      replayed.checkpoints[*loose] = all.checkpoints.at(*loose);
    }
    ExpectSame(replayed, all);
    const Delivered* from = &replayed;
    Delivered rest;
    for (int link = 0; link < 2 && !from->checkpoints.empty(); ++link) {
      const auto& [step, checkpoint] = AnyOf(from->checkpoints);
      SCOPED_TRACE("replayed behind step " + std::to_string(step));
      const ShadowState state = StateIn(checkpoint, spec_);
      VirtualRun run = AnyRun(random_, case_, spec_);
      run.start = &state;
      run.most_batches = kMostSteps - step;
      const Delivered wanted = all.From(step);
      rest = Replay(run, path_);
      ExpectSame(rest, wanted);
      from = &rest;
    }
  }

  /// A run that goes on from a checkpoint as things are then, in the same log.
  void GoOn(const VirtualResult& live, const Delivered& all) {
    const auto& [step, checkpoint] = AnyOf(all.checkpoints);
    SCOPED_TRACE("resumed behind step " + std::to_string(step));
    const ShadowState state = StateIn(checkpoint, spec_);
    VirtualRun run = AnyRun(random_, case_, spec_);
    run.start = &state;
    run.most_batches = kMostSteps - step;
    const VirtualResult rest = PlayWithLog(run, path_);
    Uses uses(case_);
    uses.Add(live, step);
    uses.Add(rest);
    ExpectWithin(uses, case_.max_factor);
    ExpectFactorOne(case_, uses.fresh, rest.error ? rest.error->what() : "",
                    rest.error || rest.batches.size() < run.most_batches);

    Delivered both = all;
    both.hashes.erase(both.hashes.lower_bound(step), both.hashes.end());
    both.checkpoints.erase(both.checkpoints.upper_bound(step), both.checkpoints.end());
    both.Add(rest);
    if (case_.keeps_epochs_apart()) ExpectEpochsEndOnce(live, step, rest);
    CheckReplays(both, case_.may_miss_a_mark() ? std::optional(step) : std::nullopt);
  }

  const std::pair<const uint64_t, std::string>& AnyOf(
      const std::map<uint64_t, std::string>& checkpoints) {
    return *std::next(checkpoints.begin(),
                      random_.Below(static_cast<uint32_t>(checkpoints.size())));
  }

  RandomStream& random_;
  const Case& case_;
  const PipelineSpec spec_;
  const TempFolder folder_;
  const std::string path_ = folder_.Path("decisions");
};

// Sanitizers are slow; the other builds try them all.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kCases = 20;
#else
constexpr uint64_t kCases = 100;
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
    const Case the_case = MakeCase(random);
    SCOPED_TRACE(the_case.adaptive + "rank " + std::to_string(the_case.pipeline.rank.rank) +
                 " of " + std::to_string(the_case.pipeline.rank.world));
    echoes += CaseCheck(random, the_case).Run();
    if (::testing::Test::HasFailure()) return;
  }
  RecordProperty("echoes", static_cast<int>(echoes));
  if (cases >= 20) {
    EXPECT_GT(echoes, 10 * cases) << "the law was hardly tried";
  }
}

}  // namespace
}  // namespace echopipe
