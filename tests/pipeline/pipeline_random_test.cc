// Pipelines put together at random: they come to their end, deliver what they owe, and do so alike.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <echopipe/base/random.h>
#include <echopipe/bench/batch_hash.h>
#include <echopipe/echo/echo_factor.h>
#include <echopipe/tests/support/graph_run.h>
#include <echopipe/tests/support/random_echo.h>

namespace echopipe {
namespace {

using testing::GraphRun;
using testing::kEchoFactors;
using testing::Number;
using testing::SyntheticSource;

/// A pipeline and what it owes.
struct RandomPipeline {
  std::string text;
  SyntheticSource::Options source;
  uint64_t batch_size = 1;
  bool skips = false;
  bool replaces = false;  ///< each bad record: good ones follow
  bool filters = false;
  bool drops = false;
  bool batch_echo = false;
  uint64_t examples = 0;  ///< meant if it neither skips nor drops nor echoes batches
};

std::string RandomEcho(RandomStream& random, uint64_t* items) {
  const char* factor = kEchoFactors[random.Below(kEchoFactors.size())];
  *items = EchoFactor(std::stod(factor)).Uses(*items);
  return testing::RandomEcho(random, factor);
}

RandomPipeline MakeRandomPipeline(RandomStream& random) {
  RandomPipeline pipeline;
  pipeline.source = {.records = 1 + random.Below(60), .epochs = 1 + random.Below(3)};
  pipeline.batch_size = 1 + random.Below(12);
  uint64_t items = pipeline.source.records * pipeline.source.epochs;
  std::string& text = pipeline.text;
  text = "source { uri: 'synthetic' } " + Number("seed", random.Below(1000)) + " ";
  for (uint32_t stages = random.Below(5); stages > 0; --stages) {
    switch (random.Below(3)) {
      case 0:
        text += "stage { map { function: 'nothing' } } ";
        break;
      case 1:
        text += RandomEcho(random, &items);
        break;
      case 2:
        if (random.Below(2) > 0) break;
        text += "stage { filter { function: 'some' } } ";
        pipeline.skips = true;
        break;
    }
  }
  pipeline.examples = items;
  pipeline.drops = random.Below(3) == 0;
  text += "stage { batch {" + Number("size", pipeline.batch_size) +
          (pipeline.drops ? " remainder: DROP" : "") +
          (random.Below(3) == 0 ? " across_epochs: true" : "") + " } } ";
  pipeline.batch_echo = random.Below(3) == 0;
  if (pipeline.batch_echo) text += RandomEcho(random, &items);
  if (random.Below(4) == 0) text += Number("steps_per_epoch", 1 + random.Below(5)) + " ";
  if (random.Below(3) == 0) {
    const bool replaces = random.Below(2) == 0;
    text += replaces ? "bad_examples { policy: REPLACE }" : "bad_examples { policy: SKIP }";
    for (uint32_t bad = random.Below(6); bad > 0; --bad) {
      pipeline.source.bad.insert(random.Below(static_cast<uint32_t>(pipeline.source.records)));
    }
    pipeline.replaces = replaces && !pipeline.source.bad.contains(pipeline.source.records - 1);
    pipeline.filters = pipeline.skips;
    pipeline.skips = true;
  }
  return pipeline;
}

struct Delivered {
  std::string hash = {};
  uint64_t examples = 0;
  std::string end = {};
  bool operator==(const Delivered&) const = default;
};

Delivered Deliver(const RandomPipeline& pipeline, const RuntimeOptions& options) {
  const PipelineSpec spec =
      PipelineSpec::FromText(pipeline.text)
          .WithMap("nothing", [](Example&) {})
          .WithFilter("some", [](const Example& example) { return *example.label() % 4 != 1; });
  GraphRun run(spec, pipeline.source, options);
  Delivered delivered;
  BatchHash hash;
  try {
    while (const std::optional<Batch> batch = run.graph().Take()) {
      hash.Add(*batch);
      delivered.examples += batch->size();
      EXPECT_GE(batch->size(), 1u);
      EXPECT_LE(batch->size(), pipeline.batch_size);
    }
  } catch (const Error& error) {  // an epoch of which nothing was left
    EXPECT_TRUE(pipeline.skips && error.code() == ErrorCode::kEmpty) << error.what();
    delivered.end = error.what();
  }
  delivered.hash = hash.Hex();
  for (const WindowStats& window : run.graph().Stats().windows) {
    EXPECT_LE(window.peak_in_flight, window.window) << window.name;
  }
  return delivered;
}

TEST(PipelineRandomTest, EachComesToItsEndDeliversWhatItOwesAndDoesSoAlike) {
  RandomStream random(HashToKey(std::array<uint64_t, 1>{2024}));
  for (int round = 0; round < 300; ++round) {
    const RandomPipeline pipeline = MakeRandomPipeline(random);
    SCOPED_TRACE(pipeline.text + " over " + std::to_string(pipeline.source.records) + " records");
    const Delivered one = Deliver(pipeline, {.threads = 1, .reads_in_flight = 1});
    const bool leaves_gaps = pipeline.skips && !(pipeline.replaces && !pipeline.filters);
    if (!leaves_gaps && !pipeline.drops && !pipeline.batch_echo) {
      EXPECT_EQ(one.examples, pipeline.examples);
    }
    const RuntimeOptions other{.threads = static_cast<int>(random.Between(2, 5)),
                               .reads_in_flight = static_cast<int>(random.Between(1, 40)),
                               .prefetch = static_cast<int>(random.Between(2, 9))};
    EXPECT_EQ(Deliver(pipeline, other), one);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace echopipe
