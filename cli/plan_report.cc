#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <echopipe/cli/numbers.h>
#include <echopipe/cli/plan_report.h>
#include <echopipe/cli/printable.h>
#include <echopipe/cli/sample_sizes.h>
#include <echopipe/pipeline/graph/cpus.h>
#include <echopipe/pipeline/graph/memory_need.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/segment.h>
#include <echopipe/pipeline/graph/windows.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

using internal::EchoPoint;
using internal::MemoryNeed;
using internal::PlannedStage;
using nlohmann::ordered_json;

/// Places for items: a window of credits or a buffer.
struct Room {
  std::string name;
  uint64_t count = 0;
  std::string of;  // "examples"
  uint64_t bytes = 0;
};

/// What the pipeline is made of, from source to consumer.
struct Part {
  std::string kind;
  std::string text;
  ordered_json json;
  std::vector<Room> rooms = {};
};

struct Report {
  std::vector<Part> parts = {};
  SampleSizes sizes = {};
  int threads = 0;
  uint64_t read_ahead = 0;
  uint64_t bytes = 0;      // when all is full; 0: not known
  uint64_t least_cap = 0;  // the same
};

std::string Counted(uint64_t count, const std::string& of) {
  return WithCommas(count) + " " + of + (count == 1 ? "" : of.ends_with("batch") ? "es" : "s");
}

uint64_t ShuffleWindow(const proto::PipelineSpec& message) {
  uint64_t records = 0;
  for (const proto::Source& source : message.source()) records += source.shuffle().window();
  return records;
}

std::string ShuffleText(const proto::Shuffle& shuffle) {
  if (shuffle.has_full()) return "full shuffle";
  return shuffle.window() > 0 ? "shuffle in a window" : "in order";
}

Part SourcePart(const proto::PipelineSpec& message, uint64_t epochs) {
  Part part{.kind = "source", .text = "", .json = {{"kind", "source"}}};
  ordered_json uris = ordered_json::array();
  for (const proto::Source& source : message.source()) {
    for (const std::string& uri : source.uri()) {
      part.text += (part.text.empty() ? "" : ", ") + Printable(uri);
      uris.push_back(uri);
    }
  }
  part.text += "; " + ShuffleText(message.source(0).shuffle()) + ", ";
  part.text += epochs == 0 ? "without end" : Counted(epochs, "epoch");
  part.json["uris"] = std::move(uris);
  part.json["epochs"] = epochs;
  return part;
}

// Which stages are one step: with what, or "".
std::vector<std::string> Fusions(const std::vector<PlannedStage>& stages, bool writes_batches) {
  std::vector<std::string> fusions(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    if (internal::CropBehind(stages, i) != nullptr) fusions[i] = stages[i + 1].name;
  }
  if (writes_batches && internal::WriterOf(stages) != nullptr) fusions.back() = "batch";
  return fusions;
}

Part SegmentPart(const std::vector<PlannedStage>& stages, bool writes_batches) {
  const std::vector<std::string> fusions = Fusions(stages, writes_batches);
  Part part{.kind = "segment", .text = "", .json = {{"kind", "segment"}}};
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) part.text += fusions[i - 1].empty() ? ", " : " + ";
    part.text += stages[i].name;
    if (fusions[i] == "batch") part.text += " (into its place in the batch)";
    list.push_back(
        {{"name", stages[i].name},
         {"fused_with", fusions[i].empty() ? ordered_json() : ordered_json(fusions[i])}});
  }
  if (stages.empty()) part.text = "nothing";
  part.json["stages"] = std::move(list);
  return part;
}

std::string FactorText(const EchoPoint& point) {
  const double factor = point.options.factor.value();
  const bool is_whole = factor == static_cast<double>(static_cast<uint64_t>(factor));
  const std::string text = Decimal(factor, is_whole ? 0 : 2);
  return point.adaptive ? "adaptive, at most " + text : "factor " + text;
}

Part EchoPart(const EchoPoint& point, const std::string& of, uint64_t item_bytes) {
  const auto& options = point.options;
  Part part{.kind = "echo",
            .text = point.position + ": " + FactorText(point) + ", spacing " +
                    WithCommas(options.spacing),
            .json = {{"kind", "echo"},
                     {"position", point.position},
                     {"factor", options.factor.value()},
                     {"adaptive", point.adaptive.has_value()},
                     {"shuffle_buffer", options.shuffle_buffer},
                     {"spacing", options.spacing},
                     {"grouped", options.grouped},
                     {"drain_each_epoch", point.drain_each_epoch}}};
  if (options.grouped) part.text += ", grouped";
  if (point.drain_each_epoch) part.text += ", drained each epoch";
  part.rooms.push_back({"buffer", options.shuffle_buffer, of, options.shuffle_buffer * item_bytes});
  return part;
}

Room WindowOf(uint64_t count, const std::string& of, uint64_t item_bytes) {
  return {"window", count, of, count * item_bytes};
}

/// Goes through a plan from its source to the consumer.
class Planner {
 public:
  Planner(const PipelineSpec& spec, const RuntimeOptions& options)
      : message_(spec.message()), plan_(internal::MakePlan(spec)) {
    report_.threads = options.threads > 0 ? options.threads : internal::AvailableCpus();
    report_.sizes = TakeSample(spec, options);
    report_.sizes.echo_bytes.resize(plan_.echoes.size());
    report_.read_ahead = SourceLimits().bytes_in_flight;
    batch_ = internal::BatchOptionsFor(plan_, message_, options);
    windows_ = internal::WindowsFor(plan_, batch_, options, report_.threads);
  }

  Report Make() {
    AddSource();
    for (size_t i = 0; i < plan_.echoes.size(); ++i) AddEcho(i);
    AddBatch();
    AddConsumer();
    return std::move(report_);
  }

 private:
  void AddSource() {
    Part part = SourcePart(message_, plan_.epochs);
    const uint64_t bytes = report_.sizes.record_bytes;
    const uint64_t window = ShuffleWindow(message_);
    if (window > 0) part.rooms.push_back({"shuffle", window, "record", window * bytes});
    need_ = {.bytes = window * bytes, .item_bytes = bytes};
    AddWithEdge(std::move(part), 0,
                plan_.echoes.empty() ? report_.sizes.example_bytes : report_.sizes.echo_bytes[0]);
  }

  // What is between a joint and the next one has its old size or its new one.
  void AddWithEdge(Part part, size_t segment, uint64_t size_behind) {
    part.rooms.push_back(
        WindowOf(windows_.examples[segment], "example", std::max(need_.item_bytes, size_behind)));
    report_.parts.push_back(std::move(part));
    report_.parts.push_back(
        SegmentPart(plan_.segments[segment], segment + 1 == plan_.segments.size()));
  }

  void AddEcho(size_t i) {
    const SampleSizes& sizes = report_.sizes;
    const uint64_t bytes = sizes.echo_bytes[i];
    need_ = internal::NeedBehindEcho(need_, windows_.examples[i],
                                     plan_.echoes[i].options.shuffle_buffer, bytes);
    const bool is_last = i + 1 == plan_.echoes.size();
    AddWithEdge(EchoPart(plan_.echoes[i], "example", bytes), i + 1,
                is_last ? sizes.example_bytes : sizes.echo_bytes[i + 1]);
  }

  void AddBatch() {
    const SampleSizes& sizes = report_.sizes;
    const uint64_t size = plan_.batch.size();
    const internal::BatchSizes all{.window = windows_.examples.back(),
                                   .size = size,
                                   .batches_echoed = windows_.batches_echoed,
                                   .batch_bytes = size * sizes.slot_bytes,
                                   .example_bytes = sizes.example_bytes,
                                   .shared_bytes = sizes.shared_bytes};
    const bool drops = plan_.batch.remainder() == proto::Batch::DROP;
    Part part{.kind = "batch",
              .text = Counted(size, "example") + ", a remainder is " + (drops ? "dropped" : "kept"),
              .json = {{"kind", "batch"}, {"size", size}, {"drops_remainder", drops}}};
    const uint64_t held = internal::BatchesHeld(all);
    part.rooms.push_back({"batches", held, "batch", held * all.batch_bytes});
    report_.parts.push_back(std::move(part));
    const uint64_t echoed_bytes = all.batch_bytes + size * all.shared_bytes;
    for (const EchoPoint& point : plan_.batch_echoes) {
      Part echo = EchoPart(point, "batch", echoed_bytes);
      echo.rooms.push_back(WindowOf(windows_.batches_ahead, "batch", echoed_bytes));
      report_.parts.push_back(std::move(echo));
    }
    if (sizes.examples == 0) return;
    report_.bytes = internal::NeedOfAll(need_, all);
    report_.least_cap = internal::CapFor(report_.bytes + report_.bytes / 4);
  }

  void AddConsumer() {
    report_.parts.push_back(
        {.kind = "consumer",
         .text = Counted(windows_.batches_ahead, "batch") + " made ahead",
         .json = {{"kind", "consumer"}, {"batches_ahead", windows_.batches_ahead}}});
  }

  const proto::PipelineSpec& message_;
  const internal::Plan plan_;
  internal::BatchJoint::Options batch_;
  internal::PipelineWindows windows_;
  Report report_;
  MemoryNeed need_;
};

std::string Line(const std::string& name, const std::string& text) {
  return name + std::string(name.size() < 10 ? 10 - name.size() : 1, ' ') + text + "\n";
}

std::string RoomLine(const Room& room, bool has_bytes) {
  std::string text = Counted(room.count, room.of);
  if (has_bytes) text += ", " + Bytes(room.bytes);
  return Line("  " + room.name, "  " + text);
}

ordered_json ToJson(const Part& part, bool has_bytes) {
  ordered_json json = part.json;
  ordered_json rooms = ordered_json::object();
  for (const Room& room : part.rooms) {
    rooms[room.name] = {{"count", room.count},
                        {"of", room.of},
                        {"bytes", has_bytes ? ordered_json(room.bytes) : ordered_json()}};
  }
  json["room"] = std::move(rooms);
  return json;
}

}  // namespace

PlanReport::PlanReport(const PipelineSpec& spec, const RuntimeOptions& options)
    : spec_(spec), options_(options) {
  spec_.Validate();
}

std::string PlanReport::Text() const {
  const Report report = Planner(spec_, options_).Make();
  const bool has_bytes = report.sizes.examples > 0;
  std::string text =
      Line("threads", std::to_string(report.threads) + " for decoding and augmenting");
  text +=
      Line("reads", Counted(static_cast<uint64_t>(options_.reads_in_flight), "read") +
                        " in flight, with records read ahead at most " + Bytes(report.read_ahead));
  for (const Part& part : report.parts) {
    text += Line(part.kind, part.text);
    for (const Room& room : part.rooms) text += RoomLine(room, has_bytes);
  }
  if (!has_bytes) return text + Line("memory", "not known: " + Printable(report.sizes.why_none));
  text += Line("memory", "about " + Bytes(report.bytes) + " when all of it is full, as " +
                             Counted(report.sizes.examples, "example") + " look");
  return text + Line("", "the least --memory-cap is about " + Bytes(report.least_cap));
}

std::string PlanReport::Json() const {
  const Report report = Planner(spec_, options_).Make();
  const bool has_bytes = report.sizes.examples > 0;
  const auto known = [&](uint64_t bytes) {
    return has_bytes ? ordered_json(bytes) : ordered_json();
  };
  ordered_json parts = ordered_json::array();
  for (const Part& part : report.parts) parts.push_back(ToJson(part, has_bytes));
  ordered_json json = {{"threads", report.threads},
                       {"reads_in_flight", options_.reads_in_flight},
                       {"read_ahead_bytes", report.read_ahead},
                       {"parts", std::move(parts)},
                       {"examples_looked_at", report.sizes.examples},
                       {"bytes", known(report.bytes)},
                       {"least_memory_cap", known(report.least_cap)}};
  if (!has_bytes) json["why_no_bytes"] = report.sizes.why_none;
  // Names of files need not be UTF-8.
  return json.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace echopipe::cli
