#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include <tbb/global_control.h>
#include <tbb/info.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/cpus.h>
#include <echopipe/pipeline/graph/graph.h>
#include <echopipe/pipeline/graph/reread.h>
#include <echopipe/pipeline/graph/verdict.h>
#include <echopipe/pipeline/graph/windows.h>

namespace echopipe::internal {
namespace {

int WantedThreads(const RuntimeOptions& options) {
  return options.threads > 0 ? options.threads : AvailableCpus();
}

// By default oneTBB has a worker less than there are CPUs, as it counts on the calling thread; but
// a pipeline's caller is busy elsewhere. Of all controls alive the least counts: this one leaves
// the program's arenas their workers and room for more, and a lower one of the program's own still
// holds.
size_t WorkerLimit(const RuntimeOptions& options) {
  const int usual = tbb::info::default_concurrency();
  return static_cast<size_t>(std::max(4 * usual, usual + WantedThreads(options)));
}

int ThreadsFor(const RuntimeOptions& options) {
  const int wanted = WantedThreads(options);
  // oneTBB complains on stderr about an arena larger than it may fill.
  const auto workers = static_cast<int>(tbb::global_control::active_value(
                           tbb::global_control::max_allowed_parallelism)) -
                       1;
  return std::clamp(wanted, 1, std::max(workers, 1));
}

// Without any worker allowed, the one slot is the caller's, and oneTBB lends a worker for what is
// enqueued.
unsigned ReservedSlots() {
  return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism) == 1 ? 1
                                                                                              : 0;
}

std::shared_ptr<Item> TombstoneOf(const ShadowItem& from) {
  auto item = std::make_shared<Item>();
  Become(from, *item);
  item->bad = from.bad;
  return item;
}

// Tombstones are there at once, the rest is read again.
std::vector<std::shared_ptr<const Item>> ResidentsAtOnce(
    const std::vector<std::shared_ptr<const ShadowItem>>& residents) {
  std::vector<std::shared_ptr<const Item>> items;
  for (const std::shared_ptr<const ShadowItem>& resident : residents) {
    std::shared_ptr<Item> item;
    if (resident->tombstone) item = TombstoneOf(*resident);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<std::shared_ptr<const Item>> ResidentsAtOnce(
    const std::vector<std::shared_ptr<const ShadowBatch>>& residents) {
  return std::vector<std::shared_ptr<const Item>>(residents.size());
}

std::optional<Inlet::Start> InletStart(const ShadowState* state, size_t edge) {
  if (state == nullptr || state->stand_ins.empty()) return std::nullopt;
  const StandInsState<ShadowItem>& stand_ins = state->stand_ins[edge];
  Inlet::Start start{.released = stand_ins.released,
                     .epoch_has_good = stand_ins.epoch_has_good,
                     .awaits_first = stand_ins.good != nullptr};
  for (const auto& held : stand_ins.held) start.held.push_back(TombstoneOf(*held));
  return start;
}

bool FailsOnBad(const proto::PipelineSpec& spec) {
  return spec.bad_examples().policy() == proto::BadExamples::FAIL;
}

}  // namespace

class Graph::Alarm {
 public:
  explicit Alarm(Graph* graph) : graph_(graph) {}

  void Ring() {
    MutexLock lock(mutex_);
    if (graph_ != nullptr) graph_->WakeAdaptive();
  }
  void Silence() {
    MutexLock lock(mutex_);
    graph_ = nullptr;
  }

 private:
  Mutex mutex_;
  Graph* graph_ ECHOPIPE_GUARDED_BY(mutex_);
};

// What is ahead of the consumer is known the better the sooner credits come back.
uint64_t Graph::Layout::credit_window() const {
  return plan.adaptive() == nullptr ? windows.back()
                                    : std::min(windows.back(), 2 * plan.batch.size());
}

RunwayOptions Graph::Layout::runway() const {
  RunwayOptions options{.low_water = plan.adaptive()->adaptive->low_water};
  options.window = plan.batch_echoes.empty() ? windows.back() : batches_ahead;
  options.batch = plan.batch_echoes.empty() ? plan.batch.size() : 1;
  return options;
}

Graph::Graph(const PipelineSpec& spec, const RuntimeOptions& options, std::shared_ptr<Clock> clock,
             const OpenSource& open_source, const ShadowState* start, DecisionLogs decisions,
             Trace* trace)
    : spec_(spec.message()),
      options_(options),
      clock_(std::move(clock)),
      trace_(trace),
      worker_limit_(tbb::global_control::max_allowed_parallelism, WorkerLimit(options)),
      threads_(ThreadsFor(options)),
      opened_(clock_->Now()),
      bad_examples_(spec_.bad_examples(), start ? start->bad : BadTally(), options),
      arena_(threads_, ReservedSlots()),
      alarm_(std::make_shared<Alarm>(this)) {
  // The graph works in the arena it is made in. Several threads may wait for it at once.
  arena_.execute([&] {
    context_.emplace(
        tbb::task_group_context::isolated,
        tbb::task_group_context::default_traits | tbb::task_group_context::concurrent_wait);
    graph_.emplace(*context_);
    Build(MakePlan(spec), open_source, start, std::move(decisions));
  });
  Post(*source_node_, Message());
}

Graph::~Graph() {
  Stop();
  alarm_->Silence();
  Drive();
  // Ends the reads; what their callbacks have still posted does nothing.
  source_->CloseSource();
  Drive();
}

void Graph::Build(Plan plan, const OpenSource& open_source, const ShadowState* start,
                  DecisionLogs decisions) {
  BatchJoint::Options batch_options = BatchOptionsFor(plan, spec_, options_);
  const PipelineWindows all_windows = WindowsFor(plan, batch_options, options_, threads_);
  batch_options.batches_echoed = all_windows.batches_echoed;
  if (start != nullptr) {
    batch_options.batches_before = start->batches;
    batch_options.epoch_before = start->epoch;
  }
  const Layout layout{.plan = plan,
                      .start = start,
                      .batches_ahead = all_windows.batches_ahead,
                      .windows = all_windows.examples,
                      .holds_batches = batch_options.holds_batches()};
  const std::vector<uint64_t>& windows = layout.windows;

  for (size_t i = 0; i < plan.segments.size(); ++i) {
    segments_.push_back(std::make_unique<Segment>(
        std::move(plan.segments[i]),
        Segment::Options{
            .seed = spec_.seed(),
            .writes_batches = i + 1 == plan.segments.size(),
            .fail_on_bad = FailsOnBad(spec_),
            .name = i == 0 ? "after source" : "after echo " + plan.echoes[i - 1].position,
            .trace = trace_},
        pool_, *clock_));
  }
  outlet_ = std::make_unique<Outlet>(windows.back(), start ? start->steps : 0, *clock_);
  logs_.emplace(plan.echoes.size() + 1);

  JointNode* last = &AddSource(layout, open_source);
  last = &AddExampleEchoes(layout, *last, decisions);
  const size_t edge = plan.echoes.size();
  Inlet inlet(windows.back(), plan.RuleOf(edge), InletStart(start, edge), &logs_->gaps[edge]);
  JointNode& batch =
      AddJoint(std::make_unique<BatchJoint>(batch_options, windows.back(), std::move(inlet),
                                            segments_.back()->writer(), pool_, options_.allocator,
                                            &bad_examples_, *logs_),
               layout.credit_window());
  Connect(*last, segments_.back().get(), batch);
  AddBatchEchoes(layout, batch, decisions);
  if (adaptive_ != nullptr) adaptive_->set_last(*echoes_.back());
  AddTracks();
}

Graph::JointNode& Graph::AddSource(const Layout& layout, const OpenSource& open_source) {
  auto source = std::make_unique<SourceJoint>(
      open_source(pool_,
                  [this] {
                    if (!wake_posted_.exchange(true)) Post(*source_node_, Message());
                  }),
      layout.windows.front(), FailsOnBad(spec_), *clock_, logs_->records,
      layout.start ? RereadsFor(layout.plan, *layout.start) : std::vector<Reread>());
  source_ = source.get();
  shadow_ = std::make_unique<Shadow>(layout.plan, layout.start, *logs_, source_->source());
  source_node_ = &AddJoint(std::move(source), 0);
  return *source_node_;
}

Graph::JointNode& Graph::AddExampleEchoes(const Layout& layout, JointNode& source,
                                          DecisionLogs& decisions) {
  const std::vector<uint64_t>& windows = layout.windows;
  const std::vector<EchoPoint>& points = layout.plan.echoes;
  const uint64_t batch = layout.plan.batch.size();
  JointNode* last = &source;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool is_last = i + 1 == points.size();
    uint64_t idle = Outbox::MostWithheld(is_last ? layout.credit_window() : windows[i + 1]);
    if (is_last) idle += batch - 1 + (layout.holds_batches ? batch : 0);
    JointNode& echo = AddEcho(layout, points[i],
                              {.index = i,
                               .gaps = &logs_->gaps[i],
                               .rule = layout.plan.RuleOf(i),
                               .start = InletStart(layout.start, i)},
                              {windows[i], windows[i + 1], windows[i], idle},
                              layout.start ? &layout.start->echoes[i] : nullptr, decisions);
    Connect(*last, segments_[i].get(), echo);
    last = &echo;
  }
  return *last;
}

// With what makes whole batches in front of them, and what gives these to the consumer behind.
void Graph::AddBatchEchoes(const Layout& layout, JointNode& batch, DecisionLogs& decisions) {
  fill_node_ = std::make_unique<FillNode>(
      *graph_, static_cast<size_t>(threads_),
      [this](const Message& message, FillNode::output_ports_type& ports) {
        Guard([&] { Fill(message, ports); });
      });
  tbb::flow::make_edge(tbb::flow::output_port<0>(batch), *fill_node_);
  outlet_node_ = std::make_unique<OutletNode>(
      *graph_, tbb::flow::serial,
      [this](const Message& message) { Guard([&] { outlet_->Receive(message); }); });

  JointNode* last = &batch;
  tbb::flow::sender<Message>* end = &tbb::flow::output_port<0>(*fill_node_);
  uint64_t upstream = layout.windows.back();  // batches of one example each
  for (size_t i = 0; i < layout.plan.batch_echoes.size(); ++i) {
    JointNode& echo = AddEcho(layout, layout.plan.batch_echoes[i], {.index = i},
                              {upstream, layout.batches_ahead, 1, 0},
                              layout.start ? &layout.start->batch_echoes[i] : nullptr, decisions);
    tbb::flow::make_edge(*end, echo);
    tbb::flow::make_edge(tbb::flow::output_port<1>(echo), *last);
    last = &echo;
    end = &tbb::flow::output_port<0>(echo);
    upstream = layout.batches_ahead;
  }
  tbb::flow::make_edge(*end, *outlet_node_);
  last_joint_node_ = last;
}

template <class T>
Graph::JointNode& Graph::AddEcho(const Layout& layout, const EchoPoint& point,
                                 EchoPointJoint::Position position, EchoPointJoint::Windows around,
                                 const ShadowState::EchoPoint<T>* from, DecisionLogs& decisions) {
  if (point.adaptive) {
    std::optional<AdaptiveJoint::Start> start;
    if (from != nullptr) start = {from->adaptive.value(), ResidentsAtOnce(from->residents)};
    // An epoch of so many steps has nothing to do with the source's, and a batch of two epochs
    // ends the first and counts as the second. Of these, the last says that it is.
    const bool epochs_known = position.gaps != nullptr ||
                              (spec_.steps_per_epoch() == 0 && !layout.plan.batch.across_epochs());
    auto joint = std::make_unique<AdaptiveJoint>(
        point, std::move(position), std::move(start), around,
        AdaptiveJoint::Options{.runway = layout.runway(),
                               .epochs = epochs_known ? layout.plan.epochs : 0,
                               .replay = std::move(decisions.replay)},
        AdaptiveJoint::Surroundings{.outlet = outlet_.get(),
                                    .shadow = &logs_->decisions,
                                    .file = decisions.file,
                                    .wake_at = [this](Clock::Time time) { RingAt(time); }},
        *clock_);
    adaptive_ = joint.get();
    echoes_.push_back(adaptive_);
    adaptive_node_ = &AddJoint(std::move(joint), around.upstream_full);
    return *adaptive_node_;
  }
  std::optional<EchoJoint::Start> start;
  if (from != nullptr) start = {from->state, ResidentsAtOnce(from->residents)};
  auto joint = std::make_unique<EchoJoint>(point, std::move(position), std::move(start), around,
                                           *clock_, outlet_->stalls());
  echoes_.push_back(joint.get());
  return AddJoint(std::move(joint), around.upstream_full);
}

void Graph::RingAt(Clock::Time time) {
  clock_->CallAt(time, [alarm = std::weak_ptr(alarm_)] {
    if (const std::shared_ptr<Alarm> there = alarm.lock()) there->Ring();
  });
}

void Graph::WakeAdaptive() { Post(*adaptive_node_, Message()); }

// What a body throws ends the pipeline; with nothing else, the graph could only end the program.
template <class Body>
void Graph::Guard(const Body& body) noexcept {
  try {
    try {
      body();
    } catch (const Error& error) {
      Fail(error);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      Fail(Error({.code = ErrorCode::kInternal, .what = error.what()}));
    } catch (...) {  // by a function of the user's
      Fail(Error({.code = ErrorCode::kInternal,
                  .what = "something was thrown that is no std::exception"}));
    }
  } catch (const std::bad_alloc&) {
    Fail(OutOfMemory());
  }
}

// Messages may have been lost: nothing goes on from here.
void Graph::Fail(const Error& error) {
  outlet_->Fail(error);
  stopped_.store(true);
}

Graph::JointNode& Graph::AddJoint(std::unique_ptr<Joint> joint, uint64_t upstream_window) {
  auto body = [this, joint = joint.get(), outbox = std::make_shared<Outbox>(upstream_window)](
                  const Message& message, JointNode::output_ports_type& ports) {
    Guard([&] { Receive(*joint, *outbox, message, ports); });
  };
  joints_.push_back(std::move(joint));
  joint_nodes_.push_back(std::make_unique<JointNode>(*graph_, tbb::flow::serial, std::move(body)));
  return *joint_nodes_.back();
}

void Graph::Receive(Joint& joint, Outbox& outbox, const Message& message,
                    JointNode::output_ports_type& ports) {
  if (stopped_.load(std::memory_order_relaxed)) return;
  progress_.fetch_add(1, std::memory_order_relaxed);
  const bool is_source = &joint == source_;
  if (is_source) wake_posted_.store(false);
  // What is read again has no place in the stream for an end with its error.
  const Item* item = message.item.get();
  if (item != nullptr && item->destination && item->bad &&
      EndsPipeline(item->bad->error, FailsOnBad(spec_))) {
    throw NamedError(*item->bad);
  }
  joint.Receive(message, outbox);
  if (trace_ != nullptr) TraceDraws(joint, outbox);
  if (const uint64_t credit = outbox.TakeCredit(); credit > 0) {
    std::get<1>(ports).try_put(Message::Credit(credit));
  }
  if (is_source && !outbox.downstream().empty()) NoteFreshRecords();
  for (const Message& out : outbox.downstream()) std::get<0>(ports).try_put(out);
  outbox.downstream().clear();
  // It looks at what the last echo point has in front of the consumer.
  if (adaptive_ != nullptr && &joint == echoes_.back() && &joint != adaptive_ &&
      message.kind == Message::Kind::kCredit) {
    adaptive_node_->try_put(Message());
  }
}

void Graph::Connect(JointNode& from, Segment* segment, JointNode& to) {
  tbb::flow::make_edge(tbb::flow::output_port<1>(to), from);
  if (segment->empty()) {
    tbb::flow::make_edge(tbb::flow::output_port<0>(from), to);
    return;
  }
  segment_nodes_.push_back(std::make_unique<SegmentNode>(
      *graph_, static_cast<size_t>(threads_), [this, segment](Message message) {
        Guard([&] {
          if (stopped_.load(std::memory_order_relaxed)) return;
          progress_.fetch_add(1, std::memory_order_relaxed);
          message = segment->Process(std::move(message));
        });
        return message;
      }));
  tbb::flow::make_edge(tbb::flow::output_port<0>(from), *segment_nodes_.back());
  tbb::flow::make_edge(*segment_nodes_.back(), to);
}

void Graph::Fill(const Message& message, FillNode::output_ports_type& ports) {
  if (stopped_.load(std::memory_order_relaxed)) return;
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (message.kind == Message::Kind::kEnd) {
    std::get<0>(ports).try_put(message);
    return;
  }
  const std::shared_ptr<BatchBuilder> builder = message.item->builder;
  if (message.item->example) FillSlot(*builder, *message.item);
  if (!builder->ReleaseOne()) return;
  auto item = std::make_shared<Item>();
  item->stream_epoch = builder->epoch();
  item->ends_epoch = builder->ends_epoch();
  item->ends_stream = builder->ends_stream();
  item->batch = builder->Finish();
  item->destination = builder->destination();
  if (trace_ != nullptr) {
    trace_->AddInstant(*batches_track_, "batch",
                       TraceArgs()
                           .Add("number", builder->sequence())
                           .Add("epoch", item->stream_epoch)
                           .Add("examples", uint64_t{item->batch->provenance.size()}));
  }
  Message whole = Message::Of(std::move(item));
  whole.sequence = builder->sequence();
  std::get<0>(ports).try_put(whole);
}

void Graph::FillSlot(const BatchBuilder& builder, const Item& item) {
  TraceBody body(trace_, "fill", item.identity);
  const Clock::Time begin = clock_->Now();
  body.Begin(begin);
  builder.Fill(item);
  const bool is_written = segments_.back()->writer() != nullptr;
  if (!is_written && trace_ == nullptr) return;
  const Clock::Time end = clock_->Now();
  body.End(end);
  if (!is_written) return;
  segments_.back()->CountWriting(end - begin);
  body.AddStep(segments_.back()->writer_name(), begin, end);
}

// What an echo point gave, and where that leaves it.
void Graph::TraceDraws(const Joint& joint, Outbox& outbox) {
  const auto is_this = [&](const TracedEcho& echo) { return echo.joint == &joint; };
  const auto echo = std::ranges::find_if(traced_echoes_, is_this);
  if (echo == traced_echoes_.end()) return;
  for (const Message& out : outbox.downstream()) {
    if (out.kind != Message::Kind::kItem || out.item->destination) continue;
    const bool is_fresh = out.item->identity.uses().back() == 0;
    TraceArgs args;
    args.AddIdentity(out.item->identity).Add("age", out.item->age);
    trace_->AddInstant(echo->track, is_fresh ? "fresh" : "echo", args);
  }
  const uint64_t buffer = echo->joint->residents();
  const uint64_t in_flight = echo->joint->window().in_flight();
  if (buffer == echo->buffer && in_flight == echo->in_flight) return;
  echo->buffer = buffer;
  echo->in_flight = in_flight;
  trace_->AddCounters("echo " + echo->joint->position(),
                      TraceArgs()
                          .Add("buffer", buffer)
                          .Add("in_flight", in_flight)
                          .Add("credits", echo->joint->window().credits()));
}

void Graph::AddTracks() {
  if (trace_ == nullptr) return;
  for (const EchoPointJoint* echo : echoes_) {
    traced_echoes_.push_back(
        {.joint = echo, .track = trace_->AddTrack("echo " + echo->position())});
  }
  batches_track_ = trace_->AddTrack("batches");
}

// From outside the arena: oneTBB wakes a worker for what is enqueued, even where it has none.
template <class Body>
void Graph::Enqueue(Body body) {
  if (stopped_.load()) return;
  graph_->reserve_wait();
  bool posted = false;
  Guard([&] {
    arena_.enqueue([this, body = std::move(body)] {
      Guard(body);
      graph_->release_wait();
    });
    posted = true;
  });
  if (!posted) graph_->release_wait();
}

void Graph::Post(JointNode& node, Message message) {
  Enqueue([&node, message = std::move(message)] { node.try_put(message); });
}

std::optional<Batch> Graph::Take() {
  if (trace_ == nullptr) return TakeUntraced();
  trace_->NameThread("consumer");
  const Clock::Time begin = clock_->Now();
  try {
    std::optional<Batch> batch = TakeUntraced();
    TraceArgs args;
    if (batch) args.Add("step", batch->step()).Add("examples", uint64_t{batch->size()});
    trace_->AddSpan("Next", begin, clock_->Now(), args);
    return batch;
  } catch (const Error& error) {
    trace_->AddSpan("Next", begin, clock_->Now(), TraceArgs().Add("error", ToString(error.code())));
    throw;
  }
}

std::optional<Batch> Graph::TakeUntraced() {
  uint64_t seen = progress_.load();
  const auto help = [&] {
    // Nothing moved: perhaps oneTBB gave the arena no thread. Then this one does the work.
    const bool stuck = progress_.load() == seen;
    if (stuck) Drive();
    return progress_.load() != std::exchange(seen, progress_.load()) && stuck;
  };
  std::optional<Batch> batch = outlet_->Take(help, [this] {
    if (adaptive_ != nullptr && adaptive_->counts_waits()) WakeAdaptive();
  });
  if (batch) {
    Enqueue([this] {
      last_joint_node_->try_put(Message::Credit(1));
      shadow_->FollowIfFree(outlet_->steps());
    });
  }
  return batch;
}

void Graph::Drive() {
  // What oneTBB itself has thrown outside of the bodies comes out here.
  Guard([this] { arena_.execute([this] { graph_->wait_for_all(); }); });
}

void Graph::Stop() {
  outlet_->Fail(Error({.code = ErrorCode::kStopped, .what = "the pipeline was stopped"}));
  stopped_.store(true);
}

void Graph::NoteFreshRecords() {
  const SteadyState now{.totals = outlet_->totals(), .records = source_->records()};
  MutexLock lock(steady_mutex_);
  steady_ = now;
}

void Graph::AddSteadyState(PipelineStats* stats) const {
  const std::optional<Outlet::Totals> first = outlet_->first_batch();
  if (!first) return;
  stats->first_batch_s = Seconds(first->time - opened_);
  stats->stall_s = std::max(0.0, stats->stall_s - first->stall_s);
  MutexLock lock(steady_mutex_);
  const Outlet::Totals& last = steady_.totals;
  const double seconds = Seconds(last.time - first->time);
  if (seconds <= 0) return;
  stats->examples_per_s = static_cast<double>(last.examples - first->examples) / seconds;
  stats->fresh_per_s = static_cast<double>(last.fresh - first->fresh) / seconds;
  stats->stall_share = (last.stall_s - first->stall_s) / seconds;
}

double Graph::RunwaySeconds(const PipelineStats& stats) const {
  const auto ahead = static_cast<double>(echoes_.back()->window().in_flight());
  const double busy = stats.stages.back().busy_s;
  const uint64_t taken = echoes_.size() == segments_.size() - 1 ? stats.examples : stats.batches;
  return taken == 0 ? 0 : ahead * busy / static_cast<double>(taken);
}

PipelineStats Graph::Stats() const {
  const Clock::Time now = clock_->Now();
  const Outlet::Totals totals = outlet_->totals();
  const SourceCounters counters = source_->source().counters();
  PipelineStats stats{.examples = totals.examples,
                      .fresh = totals.fresh,
                      .batches = totals.batches,
                      .seconds = Seconds(now - opened_),
                      .stall_s = totals.stall_s,
                      .records = source_->records(),
                      .bytes_in_flight = counters.bytes_in_flight,
                      .peak_bytes_in_flight = counters.peak_bytes_in_flight,
                      .bad_count = bad_examples_.count(),
                      .bad_examples = bad_examples_.named(),
                      .partial_images = bad_examples_.partial_count()};
  AddSteadyState(&stats);
  const double reading = stats.seconds - Seconds(source_->held(now));
  stats.stages.push_back(
      {.name = "read",
       .items = stats.records,
       .busy_s = reading,
       .seconds_per_item = stats.records == 0 ? 0 : reading / static_cast<double>(stats.records)});
  std::vector<size_t> echo_after;  // stages in front of each echo point
  for (const std::unique_ptr<Segment>& segment : segments_) {
    if (segment != segments_.front()) echo_after.push_back(stats.stages.size());
    for (StageStats& stage : segment->Stats(threads_)) stats.stages.push_back(std::move(stage));
  }
  const double consuming = stats.seconds - stats.first_batch_s - stats.stall_s;
  stats.stages.push_back(
      {.name = "consumer",
       .items = stats.examples,
       .busy_s = std::max(0.0, consuming),
       .seconds_per_item = stats.examples == 0
                               ? 0
                               : std::max(0.0, consuming) / static_cast<double>(stats.examples)});
  stats.windows.push_back(source_->window().Stats("after source"));
  for (const EchoPointJoint* echo : echoes_) {
    stats.echo_points.push_back(echo->Stats(now));
    stats.windows.push_back(echo->window().Stats("after echo " + echo->position()));
  }
  if (adaptive_ != nullptr) stats.adaptive = adaptive_->adaptive_stats();
  if (!echoes_.empty()) stats.runway_s = RunwaySeconds(stats);
  stats.verdict = Verdict(stats, echo_after);
  return stats;
}

}  // namespace echopipe::internal
