#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <echopipe/base/buffer.h>
#include <echopipe/io/source.h>
#include <echopipe/pipeline/graph/adaptive_joint.h>
#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/graph/batch_joint.h>
#include <echopipe/pipeline/graph/echo_joint.h>
#include <echopipe/pipeline/graph/outlet.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/segment.h>
#include <echopipe/pipeline/graph/shadow.h>
#include <echopipe/pipeline/graph/source_joint.h>
#include <echopipe/pipeline/graph/trace.h>
#include <echopipe/pipeline/options.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Of what an adaptive echo point decides.
struct DecisionLogs {
  DecisionLogFile* file = nullptr;            ///< written to; may be null
  std::optional<DecisionReader> replay = {};  ///< decides instead
};

/// A running pipeline as a oneTBB flow graph.
///
///     source =>[segment]=> echo =>[segment]=> ... =>[segment]=> batch =>[fill]=> (echo =>)* outlet
///
/// Joints (source, echo, batch, outlet) are serial nodes and hold all the state; segments and fill
/// are parallel. Credits flow the other way along the same edges, so that every queue is bounded.
/// No body blocks, none throws.
///
/// Threads  Take(), Stop() and Stats() from any thread; not from a body of the graph.
class Graph {
 public:
  using OpenSource =
      std::function<std::unique_ptr<Source>(BufferPool&, std::function<void()> wake)>;

  /// Begins at `start`, if it is not null. `trace`, if not null, must outlive it. Throws
  /// kInvalidArgument if that is impossible.
  Graph(const PipelineSpec& spec, const RuntimeOptions& options, std::shared_ptr<Clock> clock,
        const OpenSource& open_source, const ShadowState* start = nullptr,
        DecisionLogs decisions = {}, Trace* trace = nullptr);
  /// Takes as long as the longest running body and the cancelling of the reads.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::optional<Batch> Take();
  void Stop();
  /// Where the pipeline stands behind the batches that Take() has given.
  ShadowState State() const { return shadow_->StateAfter(outlet_->steps()); }
  const Source& source() const { return source_->source(); }
  PipelineStats Stats() const;
  int threads() const { return threads_; }
  tbb::task_arena& arena() { return arena_; }
  /// A caller of Take() waits for what is not there yet.
  bool ConsumerWaits() const { return outlet_->HasWaitingCaller(); }
  /// Runs what is ready to run, in this thread too, until the graph has nothing to do.
  void Drive();

 private:
  using JointNode = tbb::flow::multifunction_node<Message, std::tuple<Message, Message>>;
  using SegmentNode = tbb::flow::function_node<Message, Message>;
  using FillNode = tbb::flow::multifunction_node<Message, std::tuple<Message>>;
  using OutletNode = tbb::flow::function_node<Message>;

  /// Where all joints stand in the graph that is being built.
  struct Layout {
    const Plan& plan;
    const ShadowState* start;
    uint64_t batches_ahead;         ///< of the consumer
    std::vector<uint64_t> windows;  ///< of items, behind the source and each echo point of examples
    bool holds_batches;

    uint64_t credit_window() const;
    RunwayOptions runway() const;
  };
  /// Wakes a joint later, unless the graph has gone.
  class Alarm;
  // An echo point, and what its counters have told last.
  struct TracedEcho {
    const EchoPointJoint* joint = nullptr;
    Trace::Track track = {};
    uint64_t buffer = 0;
    uint64_t in_flight = 0;
  };
  // What the consumer had been given when the last fresh record arrived.
  struct SteadyState {
    Outlet::Totals totals;
    uint64_t records = 0;
  };

  void Build(Plan plan, const OpenSource& open_source, const ShadowState* start,
             DecisionLogs decisions);
  /// `from`: its state, or null.
  template <class T>
  JointNode& AddEcho(const Layout& layout, const EchoPoint& point,
                     EchoPointJoint::Position position, EchoPointJoint::Windows around,
                     const ShadowState::EchoPoint<T>* from, DecisionLogs& decisions);
  JointNode& AddSource(const Layout& layout, const OpenSource& open_source);
  JointNode& AddExampleEchoes(const Layout& layout, JointNode& source, DecisionLogs& decisions);
  void AddBatchEchoes(const Layout& layout, JointNode& batch, DecisionLogs& decisions);
  void RingAt(Clock::Time time);
  void WakeAdaptive();
  double RunwaySeconds(const PipelineStats& stats) const;
  JointNode& AddJoint(std::unique_ptr<Joint> joint, uint64_t upstream_window);
  void Connect(JointNode& from, Segment* segment, JointNode& to);
  template <class Body>
  void Guard(const Body& body) noexcept;
  void Fail(const Error& error);
  void Receive(Joint& joint, Outbox& outbox, const Message& message,
               JointNode::output_ports_type& ports);
  void Fill(const Message& message, FillNode::output_ports_type& ports);
  void FillSlot(const BatchBuilder& builder, const Item& item);
  void AddTracks();
  void TraceDraws(const Joint& joint, Outbox& outbox);
  std::optional<Batch> TakeUntraced();
  template <class Body>
  void Enqueue(Body body);
  void Post(JointNode& node, Message message);
  void NoteFreshRecords();
  void AddSteadyState(PipelineStats* stats) const;

  const proto::PipelineSpec spec_;
  const RuntimeOptions options_;
  const std::shared_ptr<Clock> clock_;
  Trace* const trace_;  // null: none
  const tbb::global_control worker_limit_;
  const int threads_;
  const Clock::Time opened_;
  BufferPool pool_;
  BadExamples bad_examples_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Joint>> joints_;
  std::unique_ptr<Outlet> outlet_;
  std::optional<ShadowLogs> logs_;
  std::unique_ptr<Shadow> shadow_;
  SourceJoint* source_ = nullptr;
  std::vector<EchoPointJoint*> echoes_;
  AdaptiveJoint* adaptive_ = nullptr;
  std::vector<TracedEcho> traced_echoes_;
  std::optional<Trace::Track> batches_track_;

  std::atomic<bool> stopped_{false};
  std::atomic<bool> wake_posted_{false};
  std::atomic<uint64_t> progress_{0};
  mutable Mutex steady_mutex_;
  SteadyState steady_ ECHOPIPE_GUARDED_BY(steady_mutex_);

  tbb::task_arena arena_;
  std::optional<tbb::task_group_context> context_;
  std::optional<tbb::flow::graph> graph_;
  std::vector<std::unique_ptr<JointNode>> joint_nodes_;
  std::vector<std::unique_ptr<SegmentNode>> segment_nodes_;
  std::unique_ptr<FillNode> fill_node_;
  std::unique_ptr<OutletNode> outlet_node_;
  JointNode* source_node_ = nullptr;
  JointNode* last_joint_node_ = nullptr;  // where the outlet's credits go
  JointNode* adaptive_node_ = nullptr;
  std::shared_ptr<Alarm> alarm_;
};

}  // namespace echopipe::internal
