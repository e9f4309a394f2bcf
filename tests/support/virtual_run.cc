#include <algorithm>
#include <stop_token>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <echopipe/io/open_source.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/support/virtual_run.h>

namespace echopipe::testing {
namespace {

constexpr uint64_t kRecordBytes = 1000;

bool IsFresh(const Identity& identity) {
  return std::ranges::all_of(identity.uses(), [](uint32_t use) { return use == 0; });
}

std::shared_ptr<FakeStorage> MakeObjects(const VirtualRun& run, FakeStorage::Mode mode) {
  auto objects = std::make_shared<FakeStorage>(mode);
  for (const auto& [path, bytes] : run.objects) objects->Put(path, bytes);
  for (int i = 0; i < run.records && run.objects.empty(); ++i) {
    objects->Put("data/class/" + std::to_string(10000 + i) + ".jpg",
                 std::string(kRecordBytes, 'x'));
  }
  return objects;
}

internal::Graph::OpenSource OpenerOf(const VirtualRun& run, std::shared_ptr<Storage> storage) {
  return [&run, storage = std::move(storage)](BufferPool& pool, std::function<void()> wake) {
    SourceOptions options{.seed = run.spec.message().seed(),
                          .shard = {run.rank.rank, run.rank.world},
                          .order = run.runtime.order,
                          .wake = std::move(wake)};
    if (run.start != nullptr) options.start = run.start->source;
    options.limits.reads_in_flight = run.runtime.reads_in_flight;
    return OpenSources(internal::SourcesOf(run.spec.message()), storage, pool, std::move(options));
  };
}

std::optional<internal::ShadowState> StateOf(internal::Graph& graph) {
  try {
    return graph.State();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kStopped);
    return std::nullopt;
  }
}

class Player {
 public:
  explicit Player(const VirtualRun& run)
      : run_(run),
        objects_(MakeObjects(run, FakeStorage::Mode::kGated)),
        storage_(run.per_record.count() == 0 && run.latency.count() == 0
                     ? std::static_pointer_cast<Storage>(objects_)
                     : MakeShapedStorage(objects_, ShapeOf(run), clock_)),
        graph_(run.spec, run.runtime, clock_, OpenerThatIsServed(), run.start, run.decisions) {}

  VirtualResult Result() {
    for (const VirtualRun::Stop& stop : run_.stops) {
      for (const auto& [time, shut] : {std::pair(stop.at, true), {stop.at + stop.length, false}}) {
        clock_->CallAt(Clock::Time() + time, [this, shut = shut] { shut_ = shut; });
      }
    }
    if (run_.keeps_seconds) NoteSecondAt(Clock::Time() + std::chrono::seconds(1));
    std::jthread consumer([this] { Consume(); });
    while (!Settle()) {
      if (!clock_->AdvanceToNext()) {
        ADD_FAILURE() << "nothing can move any more";
        graph_.Stop();
        break;
      }
    }
    consumer.join();
    result_.stats = graph_.Stats();
    result_.seconds = std::move(seconds_);
    // What is still on the link ends with its time alone.
    graph_.Stop();
    do {
      objects_->CompleteAll();
    } while (clock_->AdvanceToNext());
    return std::move(result_);
  }

 private:
  static ShapeOptions ShapeOf(const VirtualRun& run) {
    ShapeOptions options{.latency = run.latency, .jitter = run.latency / 2};
    if (run.per_record.count() > 0) {
      options.bytes_per_second =
          kRecordBytes * 1'000'000'000 / static_cast<uint64_t>(run.per_record.count());
    }
    return options;
  }

  // What is read to open a source, a manifest, is waited for.
  internal::Graph::OpenSource OpenerThatIsServed() {
    return [this](BufferPool& pool, std::function<void()> wake) {
      const std::jthread server([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          if (objects_->CompleteAll() > 0 || clock_->AdvanceToNext()) continue;
          std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
      });
      return OpenerOf(run_, storage_)(pool, std::move(wake));
    };
  }

  Clock::Duration Now() const { return clock_->Now() - Clock::Time(); }

  void Consume() {
    try {
      for (uint64_t taken = 0; taken < run_.most_batches; ++taken) {
        const Clock::Duration called = Now();
        std::optional<Batch> batch = graph_.Take();
        if (!batch) break;
        const Clock::Duration now = Now();
        if (run_.keeps_states) result_.states.push_back(StateOf(graph_));
        const Clock::Duration step = run_.per_batch
                                         ? run_.per_batch(taken)
                                         : run_.per_example * static_cast<int64_t>(batch->size());
        result_.batches.push_back({*std::move(batch), now, now - called});
        Step(step);
      }
    } catch (const Error& error) {
      result_.error = error;
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  void NoteSecondAt(Clock::Time time) {
    clock_->CallAt(time, [this, time] {
      if (ended()) return;
      seconds_.push_back(graph_.Stats());
      NoteSecondAt(time + std::chrono::seconds(1));
    });
  }
  void Step(Clock::Duration length) {
    std::unique_lock lock(mutex_);
    ++taken_;
    stepping_ = true;
    clock_->CallAt(clock_->Now() + length, [this] {
      const std::lock_guard inner(mutex_);
      stepping_ = false;
      stepped_.notify_all();
    });
    stepped_.wait(lock, [this] { return !stepping_; });
  }

  // Lets everything happen that can at this time; true once the consumer has come to the end.
  bool Settle() {
    while (true) {
      const uint64_t before = taken();
      do {
        graph_.Drive();
      } while (CompleteReads());
      // Not a yield, which on a busy machine is to wait until all others have had their turn.
      while (!ConsumerIsAtRest()) std::this_thread::sleep_for(std::chrono::microseconds(20));
      graph_.Drive();  // what the consumer has left to do
      if (CompleteReads() || !ConsumerIsAtRest()) continue;
      const std::lock_guard lock(mutex_);
      if (taken_ == before) return ended_;
    }
  }
  bool CompleteReads() { return !shut_ && objects_->CompleteAll() > 0; }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  uint64_t taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  bool ConsumerIsAtRest() {
    const std::lock_guard lock(mutex_);
    return ended_ || stepping_ || graph_.ConsumerWaits();
  }

  const VirtualRun& run_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  const std::shared_ptr<FakeStorage> objects_;
  const std::shared_ptr<Storage> storage_;
  bool shut_ = false;
  std::mutex mutex_;
  std::condition_variable stepped_;
  uint64_t taken_ = 0;
  bool stepping_ = false;
  bool ended_ = false;
  std::vector<PipelineStats> seconds_;
  VirtualResult result_;  // the consumer's until it has ended
  internal::Graph graph_;
};

}  // namespace

VirtualResult Play(const VirtualRun& run) { return Player(run).Result(); }

VirtualResult PlayAtOnce(const VirtualRun& run) {
  VirtualResult result;
  internal::Graph graph(run.spec, run.runtime, MakeSteadyClock(),
                        OpenerOf(run, MakeObjects(run, FakeStorage::Mode::kImmediate)), run.start,
                        run.decisions);
  try {
    while (result.batches.size() < run.most_batches) {
      std::optional<Batch> batch = graph.Take();
      if (!batch) break;
      if (run.keeps_states) result.states.push_back(StateOf(graph));
      result.batches.push_back({.batch = *std::move(batch)});
    }
  } catch (const Error& error) {
    result.error = error;
  }
  result.stats = graph.Stats();
  return result;
}

double VirtualResult::StallShare(Clock::Duration from, Clock::Duration to) const {
  Clock::Duration waited{};
  for (const Taken& taken : batches) {
    if (taken.at > from && taken.at <= to) waited += taken.waited;
  }
  return std::chrono::duration<double>(waited) / std::chrono::duration<double>(to - from);
}

double VirtualResult::Factor(Clock::Duration from, Clock::Duration to) const {
  uint64_t examples = 0;
  uint64_t fresh = 0;
  for (const Taken& taken : batches) {
    if (taken.at <= from || taken.at > to) continue;
    for (size_t i = 0; i < taken.batch.size(); ++i) {
      ++examples;
      fresh += IsFresh(taken.batch.provenance(i).identity) ? 1 : 0;
    }
  }
  return fresh == 0 ? 0 : static_cast<double>(examples) / static_cast<double>(fresh);
}

}  // namespace echopipe::testing
