#include <algorithm>
#include <memory>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/cli/sample_sizes.h>
#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/segment.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

constexpr uint64_t kExamples = 16;

/// What passes one place. Threads: any.
class Scale {
 public:
  void Weigh(const Example& example) {
    MutexLock lock(mutex_);
    bytes_.Add(internal::BytesOf(example));
    shared_bytes_.Add(internal::SharedBytesOf(example));
  }
  uint64_t bytes() const {
    MutexLock lock(mutex_);
    return bytes_.bytes();
  }
  uint64_t shared_bytes() const {
    MutexLock lock(mutex_);
    return shared_bytes_.bytes();
  }

 private:
  mutable Mutex mutex_;
  internal::MeanSize bytes_ ECHOPIPE_GUARDED_BY(mutex_);
  internal::MeanSize shared_bytes_ ECHOPIPE_GUARDED_BY(mutex_);
};

/// The pipeline of a few examples, without echoes, with a scale in front, in the place of each echo
/// point of examples, and in front of batch.
class WeighedSpec {
 public:
  explicit WeighedSpec(const PipelineSpec& spec) : spec_(spec.WithMessage(proto::PipelineSpec())) {
    message_ = spec.message();
    message_.clear_stage();
    message_.clear_steps_per_epoch();
    message_.mutable_bad_examples()->Clear();
    message_.mutable_bad_examples()->set_policy(proto::BadExamples::SKIP);
    LimitSources();
    AddScale();
    // What the last stage makes, it may write straight into the batch.
    const internal::Plan plan = internal::MakePlan(spec);
    const auto& last = plan.segments.back();
    const bool is_written = internal::WriterOf(last) != nullptr;
    for (int i = 0; i < spec.message().stage_size(); ++i) {
      const proto::Stage& stage = spec.message().stage(i);
      if (stage.has_batch()) break;
      if (is_written && static_cast<uint64_t>(i) == last.back().index) AddScale();
      if (stage.has_echo()) {
        AddScale();
      } else {
        *message_.add_stage() = stage;
      }
    }
    if (!is_written) AddScale();
    message_.add_stage()->mutable_batch()->set_size(1);
  }

  PipelineSpec spec() const { return spec_.WithMessage(message_); }
  const std::vector<std::shared_ptr<Scale>>& scales() const { return scales_; }

 private:
  void LimitSources() {
    for (proto::Source& source : *message_.mutable_source()) {
      if (source.shuffle().window() > 0) source.clear_shuffle();
      source.set_epochs(1);
    }
    proto::Source& first = *message_.mutable_source(0);
    first.set_take(first.take() == 0 ? kExamples : std::min(first.take(), kExamples));
    for (int i = 1; i < message_.source_size(); ++i) message_.mutable_source(i)->clear_epochs();
  }

  void AddScale() {
    const std::string name = "scale " + std::to_string(scales_.size());
    scales_.push_back(std::make_shared<Scale>());
    spec_ = spec_.WithMap(name, [scale = scales_.back()](Example& e) { scale->Weigh(e); });
    message_.add_stage()->mutable_map()->set_function(name);
  }

  PipelineSpec spec_;
  proto::PipelineSpec message_;
  std::vector<std::shared_ptr<Scale>> scales_;
};

bool IsElsewhere(const proto::PipelineSpec& message) {
  return std::ranges::any_of(message.source(), [](const proto::Source& source) {
    return std::ranges::any_of(
        source.uri(), [](const std::string& uri) { return uri.find("://") != std::string::npos; });
  });
}

SampleSizes Weigh(const PipelineSpec& spec, const RuntimeOptions& options) {
  const WeighedSpec weighed(spec);
  const std::unique_ptr<Pipeline> pipeline = Pipeline::Open(weighed.spec(), options);
  SampleSizes sizes;
  internal::MeanSize slots;
  while (const std::optional<Batch> batch = pipeline->Next()) {
    uint64_t bytes = 0;
    for (const Batch::Feature& feature : batch->features()) bytes += feature.tensor.bytes().size();
    slots.Add(bytes);
    ++sizes.examples;
  }
  const auto& scales = weighed.scales();
  sizes.record_bytes = scales.front()->bytes();
  for (size_t i = 1; i + 1 < scales.size(); ++i) sizes.echo_bytes.push_back(scales[i]->bytes());
  sizes.example_bytes = scales.back()->bytes();
  sizes.shared_bytes = scales.back()->shared_bytes();
  sizes.slot_bytes = slots.bytes();
  return sizes;
}

}  // namespace

SampleSizes TakeSample(const PipelineSpec& spec, const RuntimeOptions& options) {
  if (IsElsewhere(spec.message())) return {.why_none = "the data are not on this machine"};
  try {
    return Weigh(spec, {.threads = options.threads, .reads_in_flight = options.reads_in_flight});
  } catch (const Error& error) {
    return {.why_none = error.what()};
  }
}

}  // namespace echopipe::cli
