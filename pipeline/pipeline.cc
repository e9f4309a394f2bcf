#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/util/message_differencer.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/io/open_source.h>
#include <echopipe/pipeline/graph/decision_log_file.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/graph/shadow_codec.h>
#include <echopipe/pipeline/graph/trace.h>
#include <echopipe/pipeline/graph/traced_storage.h>
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

// What a decision log is good for.
uint64_t FingerprintOf(const PipelineSpec& spec, const Rank& rank) {
  return HashBytes(spec.message().SerializeAsString(),
                   HashToKey(std::array<uint64_t, 2>{rank.rank, rank.world}).low);
}

// The adaptive echo point's.
uint64_t DrawsOf(const internal::ShadowState& state) {
  for (const auto& echo : state.echoes) {
    if (echo.adaptive) return echo.adaptive->order.draws;
  }
  for (const auto& echo : state.batch_echoes) {
    if (echo.adaptive) return echo.adaptive->order.draws;
  }
  return 0;
}

void CheckLogs(const PipelineSpec& spec, const RuntimeOptions& options) {
  const bool replays = !options.replay_log.empty();
  if (!replays && options.decision_log.empty()) return;
  const char* field = replays ? "RuntimeOptions.replay_log" : "RuntimeOptions.decision_log";
  const std::string& path = replays ? options.replay_log : options.decision_log;
  if (internal::MakePlan(spec).adaptive() == nullptr) {
    internal::ThrowInvalidField(field, "nothing is decided", path, "an adaptive echo in the spec");
  }
  if (options.order == RecordOrder::kAsReady) {
    internal::ThrowInvalidField(field, "what is decided is of one order of the records", path,
                                "RecordOrder::kInOrder");
  }
  if (options.replay_log == options.decision_log) {
    internal::ThrowInvalidField(field, "the same file is to be read and written", path,
                                "another file");
  }
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
        clock_(options.clock ? options.clock : MakeSteadyClock()),
        trace_(options.trace.empty() ? nullptr
                                     : std::make_shared<internal::Trace>(options.trace, clock_)),
        storage_(StorageFor(options, trace_)),
        before_(storage_->Stats()),
        log_(options.log),
        decision_log_(MakeDecisionLog(spec, options, rank, start)),
        graph_(
            std::in_place, spec, options, clock_,
            [&](BufferPool& pool, std::function<void()> wake) {
              SourceOptions source{.seed = spec.message().seed(),
                                   .shard = {rank.rank, rank.world},
                                   .order = options.order,
                                   .wake = std::move(wake),
                                   .log = options.log};
              if (start) source.start = start->state.source;
              source.limits.reads_in_flight = options.reads_in_flight;
              if (options.memory_cap > 0) {
                source.limits.bytes_in_flight = internal::ReadAheadOf(options.memory_cap);
              }
              std::unique_ptr<Source> opened = OpenSources(internal::SourcesOf(spec.message()),
                                                           storage_, pool, std::move(source));
              if (start && opened->fingerprint() != start->data_fingerprint) {
                ThrowOther("other records are there than when it was made",
                           spec.message().source(0).uri(0));
              }
              return opened;
            },
            start ? &start->state : nullptr,
            internal::DecisionLogs{.file = decision_log_.get(),
                                   .replay = ReplayOf(spec, options, rank, start)},
            trace_.get()) {}
  ~Impl() {
    graph_.reset();
    LogErrorsOf([this] {
      if (decision_log_) decision_log_->Write();
    });
    LogErrorsOf([this] {
      if (trace_) trace_->Finish();
    });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool is_forked() const { return getpid() != pid_; }
  internal::Graph& graph() const {
    if (is_forked()) {
      throw Error({.code = ErrorCode::kForked,
                   .what = "a pipeline cannot be used in a child process; open it after fork()",
                   .where = "Pipeline"});
    }
    return const_cast<internal::Graph&>(*graph_);
  }
  std::optional<Batch> Next() {
    internal::Graph& from = graph();
    if (decision_log_) decision_log_->WriteIfMuch();
    std::optional<Batch> batch = from.Take();
    if (decision_log_ && !batch) decision_log_->Write();
    return batch;
  }
  PipelineCheckpoint Checkpoint() const {
    proto::Checkpoint message;
    *message.mutable_spec() = spec_.message();
    message.set_rank(rank_.rank);
    message.set_world(rank_.world);
    message.set_data_fingerprint(graph().source().fingerprint());
    internal::Encode(graph().State(), &message);
    // The joint is ahead of that state, and so is its log.
    if (decision_log_) decision_log_->Sync();
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
  template <class Body>
  void LogErrorsOf(Body body) {
    try {
      body();
    } catch (const Error& error) {
      if (log_) log_(error.what());
    }
  }
  static std::shared_ptr<Storage> StorageFor(const RuntimeOptions& options,
                                             const std::shared_ptr<internal::Trace>& trace) {
    std::shared_ptr<Storage> storage =
        options.storage ? options.storage : MakeStorage(options.reads_in_flight, options.http);
    return trace ? internal::MakeTracedStorage(std::move(storage), trace) : storage;
  }
  static std::unique_ptr<internal::DecisionLogFile> MakeDecisionLog(
      const PipelineSpec& spec, const RuntimeOptions& options, const Rank& rank,
      const std::optional<Start>& start) {
    CheckLogs(spec, options);
    if (options.decision_log.empty()) return nullptr;
    return std::make_unique<internal::DecisionLogFile>(
        options.decision_log, FingerprintOf(spec, rank), start ? DrawsOf(start->state) : 0);
  }
  static std::optional<DecisionReader> ReplayOf(const PipelineSpec& spec,
                                                const RuntimeOptions& options, const Rank& rank,
                                                const std::optional<Start>& start) {
    if (options.replay_log.empty()) return std::nullopt;
    const DecisionLog log = internal::LoadDecisionLog(options.replay_log);
    log.CheckIsFor(FingerprintOf(spec, rank));
    return DecisionReader(log, start ? DrawsOf(start->state) : 0);
  }

  pid_t pid_ = getpid();
  PipelineSpec spec_;
  Rank rank_;
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<internal::Trace> trace_;  // null: none
  std::shared_ptr<Storage> storage_;
  StorageStats before_;
  std::function<void(std::string_view)> log_;
  std::unique_ptr<internal::DecisionLogFile> decision_log_;  // null: none
  std::optional<internal::Graph> graph_;
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

std::optional<Batch> Pipeline::Next() { return impl_->Next(); }

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
