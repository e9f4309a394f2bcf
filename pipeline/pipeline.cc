#include <string>
#include <utility>

#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/io/open_source.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe {
namespace {

void RequireWithin(const char* option, int64_t got, int64_t least, int64_t most) {
  if (got >= least && got <= most) return;
  internal::ThrowInvalidField(std::string("RuntimeOptions.") + option, "out of range",
                              std::to_string(got),
                              std::to_string(least) + " to " + std::to_string(most));
}

void Validate(const RuntimeOptions& options, const Rank& rank) {
  RequireWithin("threads", options.threads, 0, 1024);
  RequireWithin("reads_in_flight", options.reads_in_flight, 1, 1024);
  RequireWithin("prefetch", options.prefetch, 2, 1024);
  if (rank.rank >= rank.world) {
    internal::ThrowInvalidField("Rank.rank", "not a rank of this world", std::to_string(rank.rank),
                                "less than " + std::to_string(rank.world));
  }
}

}  // namespace

class Pipeline::Impl {
 public:
  Impl(const PipelineSpec& spec, const RuntimeOptions& options, const Rank& rank)
      : storage_(options.storage ? options.storage : MakeLocalStorage(options.reads_in_flight)),
        bytes_before_(storage_->Stats().bytes_read),
        graph_(spec, options, options.clock ? options.clock : MakeSteadyClock(),
               [&](BufferPool& pool, std::function<void()> wake) {
                 SourceOptions source{.seed = spec.message().seed(),
                                      .shard = {rank.rank, rank.world},
                                      .wake = std::move(wake),
                                      .log = options.log};
                 source.limits.reads_in_flight = options.reads_in_flight;
                 if (options.memory_cap > 0) {
                   source.limits.bytes_in_flight = internal::ReadAheadOf(options.memory_cap);
                 }
                 return OpenSource(spec.message().source(0), storage_, pool, std::move(source));
               }) {}

  bool is_forked() const { return getpid() != pid_; }
  internal::Graph& graph() const {
    if (is_forked()) {
      throw Error({.code = ErrorCode::kForked,
                   .what = "a pipeline cannot be used in a child process; open it after fork()",
                   .where = "Pipeline"});
    }
    return const_cast<internal::Graph&>(graph_);
  }
  uint64_t bytes_read() const { return storage_->Stats().bytes_read - bytes_before_; }

 private:
  pid_t pid_ = getpid();
  std::shared_ptr<Storage> storage_;
  uint64_t bytes_before_;
  internal::Graph graph_;
};

Pipeline::Pipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Pipeline::~Pipeline() {
  // A child has none of the threads that would have to end.
  if (impl_->is_forked()) static_cast<void>(impl_.release());
}

std::unique_ptr<Pipeline> Pipeline::Open(const PipelineSpec& spec, const RuntimeOptions& options,
                                         Rank rank) {
  Validate(options, rank);
  spec.Validate();
  return std::unique_ptr<Pipeline>(new Pipeline(std::make_unique<Impl>(spec, options, rank)));
}

std::optional<Batch> Pipeline::Next() { return impl_->graph().Take(); }

void Pipeline::Stop() { impl_->graph().Stop(); }

PipelineStats Pipeline::Stats() const {
  PipelineStats stats = impl_->graph().Stats();
  stats.bytes_read = impl_->bytes_read();
  return stats;
}

}  // namespace echopipe
