#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/io/open_source.h>
#include <echopipe/pipeline/graph/plan.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kMaxBatch = 1 << 20;

std::string StageField(size_t index) { return "stage[" + std::to_string(index) + "]"; }

// Runs `check`; an error it throws tells the stage it was found in.
template <class Check>
void Within(const std::string& field, Check check) {
  try {
    check();
  } catch (const Error& error) {
    throw error.Within(field);
  }
}

const proto::Batch& FindBatch(const proto::PipelineSpec& spec) {
  const auto is_batch = [](const proto::Stage& stage) { return stage.has_batch(); };
  if (std::ranges::count_if(spec.stage(), is_batch) != 1) {
    ThrowInvalidField("stage", "a pipeline has one batch stage",
                      std::to_string(std::ranges::count_if(spec.stage(), is_batch)), "1");
  }
  return std::ranges::find_if(spec.stage(), is_batch)->batch();
}

bool HasSkippingStage(const proto::PipelineSpec& spec) {
  return std::ranges::any_of(spec.stage(), [](const proto::Stage& stage) {
    const StageType* type = FindStageType(stage);
    return type != nullptr && type->may_skip;
  });
}

void ValidateBatch(const proto::Batch& batch) {
  if (batch.size() < 1 || batch.size() > kMaxBatch) {
    ThrowInvalidField("batch.size", "out of range", std::to_string(batch.size()),
                      "1 to " + std::to_string(kMaxBatch));
  }
  if (!proto::Batch::Remainder_IsValid(batch.remainder())) {
    ThrowInvalidField("batch.remainder", "unknown value",
                      std::to_string(static_cast<int>(batch.remainder())), "KEEP or DROP");
  }
}

void ValidateBadExamples(const proto::BadExamples& bad) {
  if (!proto::BadExamples::Policy_IsValid(bad.policy())) {
    ThrowInvalidField("bad_examples.policy", "unknown value",
                      std::to_string(static_cast<int>(bad.policy())), "FAIL, SKIP or REPLACE");
  }
  if (bad.has_max_fraction() && !(bad.max_fraction() > 0 && bad.max_fraction() <= 1)) {
    ThrowInvalidField("bad_examples.max_fraction", "out of range",
                      std::to_string(bad.max_fraction()), "a fraction in (0, 1]");
  }
  if (bad.policy() == proto::BadExamples::FAIL && (bad.has_max_count() || bad.has_max_fraction())) {
    ThrowInvalidField("bad_examples", "limits are for SKIP and REPLACE", "policy: FAIL",
                      "policy: SKIP");
  }
}

// Follows which features are certainly pictures of one channel, to refuse a normalize that wants
// three.
class GrayFeatures {
 public:
  void Pass(const proto::Stage& stage) {
    if (stage.has_decode()) {
      const std::string feature = FeatureOrImage(stage.decode().feature());
      if (stage.decode().color() == proto::Decode::GRAY) {
        gray_.insert(feature);
      } else {
        gray_.erase(feature);
      }
    } else if (stage.has_map()) {
      gray_.clear();  // the function may do anything
    } else if (stage.has_normalize()) {
      const proto::Normalize& normalize = stage.normalize();
      if (!gray_.contains(FeatureOrImage(normalize.feature()))) return;
      CheckOneValue("normalize.mean", normalize.mean_size());
      CheckOneValue("normalize.std", normalize.std_size());
    }
  }

 private:
  static void CheckOneValue(const char* field, int values) {
    if (values == 1) return;
    ThrowInvalidField(field, "decode makes pictures of one channel",
                      values == 0 ? "the default of 3 values" : std::to_string(values) + " values",
                      "1 value");
  }

  std::set<std::string> gray_;
};

// Fills in what the message leaves open. `default_spacing` is that of an echo of examples.
EchoOptions OptionsFor(const proto::Echo& echo, bool of_batches, uint64_t default_spacing,
                       uint64_t batch_size) {
  EchoOptions options{.factor = EchoFactor(echo.factor()), .grouped = echo.grouped()};
  const bool trivial = of_batches || options.factor == EchoFactor(1);
  options.spacing = echo.has_spacing()          ? echo.spacing()
                    : trivial || echo.grouped() ? 0
                                                : default_spacing;
  options.shuffle_buffer = echo.has_shuffle_buffer() ? echo.shuffle_buffer()
                           : trivial                 ? std::max(uint64_t{1}, options.spacing)
                                                     : std::max(4 * batch_size, options.spacing);
  options.Validate();
  return options;
}

constexpr uint64_t kAdaptiveBatches = 4;
constexpr uint64_t kAdaptiveBatchSpacing = 2;  // no batch right behind itself

AdaptivePoint AdaptivePointFor(const proto::Echo& echo, bool of_batches, uint64_t default_spacing,
                               uint64_t batch_size) {
  const proto::AdaptiveEcho& adaptive = echo.adaptive();
  AdaptivePoint point;
  AdaptiveOptions& options = point.options;
  options.spacing = echo.has_spacing() ? echo.spacing()
                    : of_batches       ? kAdaptiveBatchSpacing
                                       : default_spacing;
  options.shuffle_buffer =
      echo.has_shuffle_buffer()
          ? echo.shuffle_buffer()
          : std::max(of_batches ? kAdaptiveBatches : 4 * batch_size, options.spacing);
  if (adaptive.has_max_factor()) options.max_factor = adaptive.max_factor();
  if (adaptive.has_max_age()) options.max_age = adaptive.max_age();
  options.Validate();
  if (adaptive.has_low_water_ms()) {
    point.low_water = std::chrono::duration_cast<Clock::Duration>(
        std::chrono::duration<double, std::milli>(adaptive.low_water_ms()));
  }
  return point;
}

EchoPoint PointFor(const proto::Echo& echo, bool of_batches, uint64_t default_spacing,
                   uint64_t batch_size) {
  if (!echo.has_adaptive()) {
    return {.options = OptionsFor(echo, of_batches, default_spacing, batch_size),
            .drain_each_epoch = echo.drain_each_epoch()};
  }
  EchoPoint point{.options = {},
                  .adaptive = AdaptivePointFor(echo, of_batches, default_spacing, batch_size)};
  const AdaptiveOptions& bounds = point.adaptive->options;
  point.options = {.factor = EchoFactor(bounds.max_factor),
                   .shuffle_buffer = bounds.shuffle_buffer,
                   .spacing = bounds.spacing};
  return point;
}

}  // namespace

std::optional<size_t> Plan::adaptive_echo() const {
  for (size_t i = 0; i < echoes.size(); ++i) {
    if (echoes[i].adaptive) return i;
  }
  return std::nullopt;
}

const EchoPoint* Plan::adaptive() const {
  for (const std::vector<EchoPoint>* points : {&echoes, &batch_echoes}) {
    for (const EchoPoint& point : *points) {
      if (point.adaptive) return &point;
    }
  }
  return nullptr;
}

Plan MakePlan(const PipelineSpec& spec) {
  const proto::PipelineSpec& message = spec.message();
  ValidateSources(SourcesOf(message));
  ValidateBadExamples(message.bad_examples());

  Plan plan;
  plan.segments.emplace_back();
  plan.batch = FindBatch(message);
  const proto::BadExamples::Policy policy = message.bad_examples().policy();
  const bool stage_skips = HasSkippingStage(message);
  plan.replaces = policy == proto::BadExamples::REPLACE;
  // Replaced ones leave no gap, but for the last of all, which nothing follows.
  plan.may_skip = policy != proto::BadExamples::FAIL || stage_skips;
  plan.epochs = message.source(0).has_epochs() ? message.source(0).epochs() : 1;
  ValidateBatch(plan.batch);
  const bool leaves_gaps = policy == proto::BadExamples::SKIP || stage_skips;
  const uint64_t spacing = plan.batch.size() * (leaves_gaps ? 2 : 1);

  bool batched = false;
  GrayFeatures gray;
  std::string position = "after source";
  uint64_t points = 0;
  for (int i = 0; i < message.stage_size(); ++i) {
    const proto::Stage& stage = message.stage(i);
    Within(StageField(static_cast<size_t>(i)), [&] {
      const StageType* type = FindStageType(stage);
      if (type == nullptr)
        ThrowInvalidField("stage", "no kind of stage is set", "{}", "decode {}, for example");
      if (type->validate != nullptr) type->validate(stage);
      gray.Pass(stage);
      if (stage.has_echo()) {
        if (points == Identity::kMaxEchoPoints) {
          ThrowInvalidField("echo", "too many echo points", "more",
                            std::to_string(Identity::kMaxEchoPoints) + " at most");
        }
        EchoPoint point = PointFor(stage.echo(), batched, spacing, plan.batch.size());
        if (point.adaptive && plan.adaptive() != nullptr) {
          ThrowInvalidField("echo.adaptive", "a pipeline has one adaptive echo at most",
                            "one " + position + " too",
                            "one, here or " + plan.adaptive()->position);
        }
        point.position = position;
        point.options.seed = message.seed();
        point.options.point = points++;
        if (point.adaptive) {
          point.adaptive->options.seed = point.options.seed;
          point.adaptive->options.point = point.options.point;
        }
        if (batched) {
          plan.batch_echoes.push_back(std::move(point));
        } else {
          plan.echoes.push_back(std::move(point));
          plan.segments.emplace_back();
        }
        return;
      }
      if (batched) {
        ThrowInvalidField(type->name, "comes after batch, where only echo may",
                          std::string(type->name), "a place before batch");
      }
      position = "after " + std::string(type->name);
      if (stage.has_batch()) {
        batched = true;
        return;
      }
      plan.segments.back().push_back({.name = std::string(type->name),
                                      .index = static_cast<uint64_t>(i),
                                      .stage = type->make(stage, spec.functions())});
    });
  }
  return plan;
}

}  // namespace echopipe::internal
