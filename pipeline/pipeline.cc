#include <string>
#include <utility>

#include <google/protobuf/util/message_differencer.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/io/open_source.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/graph/shadow_codec.h>
#include <echopipe/pipeline/graph/verdict.h>
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

[[noreturn]] void ThrowOther(std::string what, std::string got, std::string wanted = {}) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = std::move(what),
               .where = "checkpoint",
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

void CheckSame(const proto::PipelineSpec& then, const proto::PipelineSpec& now) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(then, now)) return;
  ThrowOther("it is of another spec", differences.substr(0, differences.find('\n')));
}

}  // namespace

class Pipeline::Impl {
 public:
  /// Goes on from a state of the data with this fingerprint, if there is one.
  struct Start {
    internal::ShadowState state;
    uint64_t data_fingerprint = 0;
  };

  Impl(const PipelineSpec& spec, const RuntimeOptions& options, const Rank& rank,
       const std::optional<Start>& start)
      : spec_(spec),
        rank_(rank),
        storage_(options.storage ? options.storage
                                 : MakeStorage(options.reads_in_flight, options.http)),
        before_(storage_->Stats()),
        graph_(
            spec, options, options.clock ? options.clock : MakeSteadyClock(),
            [&](BufferPool& pool, std::function<void()> wake) {
              SourceOptions source{.seed = spec.message().seed(),
                                   .shard = {rank.rank, rank.world},
                                   .wake = std::move(wake),
                                   .log = options.log};
              if (start) source.start = start->state.source;
              source.limits.reads_in_flight = options.reads_in_flight;
              if (options.memory_cap > 0) {
                source.limits.bytes_in_flight = internal::ReadAheadOf(options.memory_cap);
              }
              std::unique_ptr<Source> opened =
                  OpenSource(spec.message().source(0), storage_, pool, std::move(source));
              if (start && opened->fingerprint() != start->data_fingerprint) {
                ThrowOther("other records are there than when it was made",
                           spec.message().source(0).uri(0));
              }
              return opened;
            },
            start ? &start->state : nullptr) {}

  bool is_forked() const { return getpid() != pid_; }
  internal::Graph& graph() const {
    if (is_forked()) {
      throw Error({.code = ErrorCode::kForked,
                   .what = "a pipeline cannot be used in a child process; open it after fork()",
                   .where = "Pipeline"});
    }
    return const_cast<internal::Graph&>(graph_);
  }
  PipelineCheckpoint Checkpoint() const {
    proto::Checkpoint message;
    *message.mutable_spec() = spec_.message();
    message.set_rank(rank_.rank);
    message.set_world(rank_.world);
    message.set_data_fingerprint(graph().source().fingerprint());
    internal::Encode(graph().State(), &message);
    return PipelineCheckpoint(std::move(message));
  }
  /// Since Open; the storage may have served others before.
  StorageStats read() const {
    StorageStats read = storage_->Stats();
    read.bytes_read -= before_.bytes_read;
    read.requests -= before_.requests;
    read.retries -= before_.retries;
    read.resumed -= before_.resumed;
    read.throttled_s -= before_.throttled_s;
    return read;
  }

 private:
  pid_t pid_ = getpid();
  PipelineSpec spec_;
  Rank rank_;
  std::shared_ptr<Storage> storage_;
  StorageStats before_;
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
  return std::unique_ptr<Pipeline>(
      new Pipeline(std::make_unique<Impl>(spec, options, rank, std::nullopt)));
}

std::unique_ptr<Pipeline> Pipeline::Restore(const PipelineSpec& spec,
                                            const PipelineCheckpoint& checkpoint,
                                            const RuntimeOptions& options, Rank rank) {
  Validate(options, rank);
  const proto::Checkpoint& message = checkpoint.message();
  CheckSame(message.spec(), spec.message());
  if (message.rank() != rank.rank || message.world() != rank.world) {
    const auto name = [](uint64_t number, uint64_t world) {
      return "rank " + std::to_string(number) + " of " + std::to_string(world);
    };
    ThrowOther("it is another rank's", name(rank.rank, rank.world),
               name(message.rank(), message.world()));
  }
  const Impl::Start start{internal::Decode(message, internal::MakePlan(spec)),
                          message.data_fingerprint()};
  return std::unique_ptr<Pipeline>(
      new Pipeline(std::make_unique<Impl>(spec, options, rank, start)));
}

std::optional<Batch> Pipeline::Next() { return impl_->graph().Take(); }

void Pipeline::Stop() { impl_->graph().Stop(); }

PipelineCheckpoint Pipeline::Checkpoint() const { return impl_->Checkpoint(); }

PipelineStats Pipeline::Stats() const {
  PipelineStats stats = impl_->graph().Stats();
  const StorageStats read = impl_->read();
  stats.bytes_read = read.bytes_read;
  if (read.requests == 0) return stats;
  stats.network = {
      .requests = read.requests,
      .retries = read.retries,
      .resumed = read.resumed,
      .requests_in_flight = read.requests_in_flight,
      .peak_requests_in_flight = read.peak_requests_in_flight,
      .throttled_s = read.throttled_s,
      .bytes_per_s = stats.seconds > 0 ? static_cast<double>(read.bytes_read) / stats.seconds : 0};
  stats.verdict += " " + internal::NetworkVerdict(stats);
  return stats;
}

}  // namespace echopipe
