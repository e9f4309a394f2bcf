#include <cstdlib>
#include <memory>
#include <stop_token>
#include <utility>

#include <echopipe/base/buffer.h>
#include <echopipe/cli/console.h>
#include <echopipe/cli/count_flag.h>
#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/interrupt.h>
#include <echopipe/cli/numbers.h>
#include <echopipe/cli/source_pass.h>
#include <echopipe/cli/spec_file.h>
#include <echopipe/cli/status_ticker.h>
#include <echopipe/pipeline/tensor.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

constexpr const char* kLook = "look";
constexpr uint64_t kBatch = 64;

// What is left of an example that was looked at: the same for all, so that they make batches.
class Remains {
 public:
  Remains() : tensor_(TensorBuilder(DType::kUint8, {1}, pool_).Finish()) {}
  void TakePlaceOf(Example& example) const {
    Example left;
    left.mutable_provenance() = std::move(example.mutable_provenance());
    left.Set(kLook, tensor_);
    example = std::move(left);
  }

 private:
  BufferPool pool_;
  Tensor tensor_;
};

std::string StatusOf(const PipelineStats& stats) {
  std::string text = WithCommas(stats.records) + " records, " + Bytes(stats.bytes_read);
  if (stats.bad_count > 0) text += ", " + WithCommas(stats.bad_count) + " bad";
  return text;
}

PassResult::End Consume(Pipeline& pipeline, const std::stop_token& stop,
                        std::optional<Error>* error) {
  try {
    while (pipeline.Next()) {
      if (stop.stop_requested()) return PassResult::End::kInterrupted;
    }
    return PassResult::End::kData;
  } catch (const Error& thrown) {
    if (stop.stop_requested() && thrown.code() == ErrorCode::kStopped) {
      return PassResult::End::kInterrupted;
    }
    // None good is a result too.
    if (thrown.code() == ErrorCode::kEmpty && pipeline.Stats().bad_count > 0) {
      return PassResult::End::kData;
    }
    *error = thrown;
    return PassResult::End::kFailed;
  }
}

}  // namespace

SourcePass::SourcePass(CLI::App& command)
    : spec_flags_(command, SpecFlags::Parts::kRecords), http_flags_(command) {
  command.add_option("SPEC", spec_file_,
                     "The file of a spec in protobuf's text format, or - for standard input; its "
                     "source is read, once and whole.");
  AddCountFlag(command, "--threads", runtime_.threads, {0, 1024},
               "0, the default: as many as there are CPUs.")
      ->group("Runtime");
  AddCountFlag(command, "--reads-in-flight", runtime_.reads_in_flight, {1, 1024},
               "Reads under way at once.")
      ->default_str(std::to_string(runtime_.reads_in_flight))
      ->group("Runtime");
  command.add_flag("-q,--quiet", quiet_, "No progress.")->group("Output");
}

PipelineSpec SourcePass::given_spec() const {
  return spec_flags_.AddTo(spec_file_.empty() ? PipelineSpec() : ReadSpec(spec_file_));
}

PipelineSpec SourcePass::SpecFor(Depth depth) const {
  const PipelineSpec given = given_spec();
  proto::PipelineSpec message;
  message.mutable_bad_examples()->set_policy(proto::BadExamples::SKIP);
  *message.mutable_source() = given.message().source();
  if (message.source_size() > 1) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "one source at a time is looked at",
                 .where = "source",
                 .got = std::to_string(message.source_size()),
                 .wanted = "1"});
  }
  for (proto::Source& source : *message.mutable_source()) {
    source.clear_shuffle();
    source.clear_take();
    source.set_epochs(1);
  }
  if (depth == Depth::kDecode) {
    for (const proto::Stage& stage : given.message().stage()) {
      if (!stage.has_decode()) continue;
      *message.add_stage() = stage;
      // What a run puts up with is wrong all the same.
      message.mutable_stage()->rbegin()->mutable_decode()->clear_accept_truncated();
    }
    if (message.stage().empty()) message.add_stage()->mutable_decode();
  }
  message.add_stage()->mutable_map()->set_function(kLook);
  message.add_stage()->mutable_batch()->set_size(kBatch);
  return PipelineSpec(message);
}

PassResult SourcePass::Run(Depth depth, const Watchers& watchers) const {
  const Remains remains;
  const PipelineSpec spec = SpecFor(depth).WithMap(kLook, [&](Example& example) {
    watchers.look(example);
    remains.TakePlaceOf(example);
  });

  const Interrupt interrupt;
  Console console(quiet_);
  RuntimeOptions options = runtime_;
  options.http = http_flags_.options();
  options.on_bad_example = [&](const BadExample& bad) {
    console.ClearStatus();  // what follows may be written in its place
    watchers.on_bad(bad);
  };
  const std::unique_ptr<Pipeline> pipeline = [&] {
    // Listing a server's folders may take long, and there is nothing to lose yet.
    const std::stop_callback leave(interrupt.token(), [] { std::_Exit(kInterrupted); });
    return Pipeline::Open(spec, options);
  }();
  PassResult result;
  {
    const std::stop_callback on_stop(interrupt.token(), [&] { pipeline->Stop(); });
    const StatusTicker ticker(console, [&] { return StatusOf(pipeline->Stats()); });
    result.end = Consume(*pipeline, interrupt.token(), &result.error);
  }
  result.stats = pipeline->Stats();
  return result;
}

}  // namespace echopipe::cli
