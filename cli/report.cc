#include <algorithm>
#include <functional>
#include <sstream>

#include <nlohmann/json.hpp>

#include <echopipe/cli/numbers.h>
#include <echopipe/cli/report.h>

namespace echopipe::cli {
namespace {

using nlohmann::ordered_json;

struct Row {
  std::string name;
  std::function<std::string(const JobResult&)> value;
};

void AddEchoPoint(size_t i, const std::string& position, std::vector<Row>* rows) {
  const std::string name = "echo " + position + ": ";
  rows->push_back({name + "R", [i](const JobResult& run) {
                     return Decimal(run.stats.echo_points.at(i).r, 2);
                   }});
  rows->push_back({name + "factor", [i](const JobResult& run) {
                     return Decimal(run.stats.echo_points.at(i).factor, 2);
                   }});
  rows->push_back({name + "effective", [i](const JobResult& run) {
                     return Decimal(run.stats.echo_points.at(i).factor_effective, 2);
                   }});
}

void AddNetwork(std::vector<Row>* rows) {
  const auto add = [rows](const char* name, auto value) {
    rows->push_back({name, [value](const JobResult& run) { return value(run.stats.network); }});
  };
  add("network", [](const NetworkStats& network) {
    return Bytes(static_cast<uint64_t>(network.bytes_per_s)) + "/s";
  });
  add("requests", [](const NetworkStats& network) { return WithCommas(network.requests); });
  add("most at once",
      [](const NetworkStats& network) { return WithCommas(network.peak_requests_in_flight); });
  add("sent again", [](const NetworkStats& network) { return WithCommas(network.retries); });
  add("throttled",
      [](const NetworkStats& network) { return Decimal(network.throttled_s, 1) + " s"; });
}

// For a column without one there is nothing to tell.
void AddAdaptive(std::vector<Row>* rows) {
  const auto add = [rows](const char* name, auto value) {
    rows->push_back({name, [value](const JobResult& run) {
                       return run.stats.adaptive ? value(*run.stats.adaptive) : std::string();
                     }});
  };
  add("adaptive: echoes",
      [](const AdaptiveStats& adaptive) { return Percent(adaptive.echo_share); });
  add("adaptive: longest bridged",
      [](const AdaptiveStats& adaptive) { return Decimal(adaptive.longest_bridged_s, 2) + " s"; });
}

// Without a steady state there is nothing to tell of it.
std::string Steady(const JobResult& run, const std::string& figure) {
  return run.stats.examples_per_s > 0 ? figure : "too short";
}

std::vector<Row> Rows(const JobResult& first) {
  using Run = JobResult;
  std::vector<Row> rows = {
      {"examples", [](const Run& run) { return WithCommas(run.stats.examples); }},
      {"of these fresh", [](const Run& run) { return WithCommas(run.stats.fresh); }},
      {"batches", [](const Run& run) { return WithCommas(run.stats.batches); }},
      {"seconds", [](const Run& run) { return Decimal(run.stats.seconds, 1); }},
      {"examples/s", [](const Run& run) { return Steady(run, Rate(run.stats.examples_per_s)); }},
      {"fresh/s", [](const Run& run) { return Steady(run, Rate(run.stats.fresh_per_s)); }},
      {"stall share", [](const Run& run) { return Steady(run, Percent(run.stats.stall_share)); }},
      {"first batch after",
       [](const Run& run) { return Decimal(run.stats.first_batch_s, 2) + " s"; }},
      {"bytes read", [](const Run& run) { return Bytes(run.stats.bytes_read); }},
      {"bad examples", [](const Run& run) { return WithCommas(run.stats.bad_count); }},
  };
  if (first.stats.partial_images > 0) {
    rows.push_back(
        {"partial images", [](const Run& run) { return WithCommas(run.stats.partial_images); }});
  }
  if (first.stats.network.requests > 0) AddNetwork(&rows);
  if (first.first_step > 0) {
    rows.push_back({"first step", [](const Run& run) { return WithCommas(run.first_step); }});
  }
  if (first.checkpoints > 0) {
    rows.push_back({"checkpoints", [](const Run& run) { return WithCommas(run.checkpoints); }});
  }
  const std::vector<EchoPointStats>& points = first.stats.echo_points;
  for (size_t i = 0; i < points.size(); ++i) AddEchoPoint(i, points[i].position, &rows);
  if (first.stats.adaptive) AddAdaptive(&rows);
  return rows;
}

std::string Right(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string_view ToString(JobResult::End end) {
  switch (end) {
    case JobResult::End::kData:
      return "data";
    case JobResult::End::kMaxBatches:
      return "max_batches";
    case JobResult::End::kInterrupted:
      return "interrupted";
    case JobResult::End::kFailed:
      return "failed";
  }
  return "";
}

ordered_json ToJson(const BadExample& bad) {
  return {{"uri", bad.uri},
          {"key", bad.key},
          {"stage", bad.stage},
          {"kind", ToString(bad.error.code())},
          {"what", bad.error.what()}};
}

ordered_json ToJson(const EchoPointStats& point) {
  return {{"position", point.position},
          {"factor", point.factor},
          {"adaptive", point.adaptive},
          {"r", point.r},
          {"factor_effective", point.factor_effective},
          {"draws", point.draws},
          {"admitted", point.admitted},
          {"exceptions", point.exceptions}};
}

ordered_json ToJson(const AdaptiveStats::Span& span) { return {span.fresh, span.echoes}; }

ordered_json ToJson(const StageStats& stage) {
  return {{"name", stage.name},
          {"items", stage.items},
          {"busy_s", stage.busy_s},
          {"seconds_per_item", stage.seconds_per_item}};
}

ordered_json ToJson(const NetworkStats& network) {
  return {{"bytes_per_s", network.bytes_per_s},
          {"requests", network.requests},
          {"retries", network.retries},
          {"resumed", network.resumed},
          {"peak_requests_in_flight", network.peak_requests_in_flight},
          {"throttled_s", network.throttled_s}};
}

ordered_json ToJson(const WindowStats& window) {
  return {{"name", window.name},
          {"window", window.window},
          {"in_flight", window.in_flight},
          {"peak_in_flight", window.peak_in_flight}};
}

template <class T>
ordered_json ToJson(const std::vector<T>& values) {
  ordered_json list = ordered_json::array();
  for (const T& value : values) list.push_back(ToJson(value));
  return list;
}

ordered_json ToJson(const AdaptiveStats& adaptive) {
  return {{"fresh", adaptive.fresh},           {"echoes", adaptive.echoes},
          {"echo_share", adaptive.echo_share}, {"longest_bridged_s", adaptive.longest_bridged_s},
          {"residents", adaptive.residents},   {"uses_left", adaptive.uses_left},
          {"span_s", adaptive.span_s},         {"history", ToJson(adaptive.history)}};
}

}  // namespace

std::string Table(const std::vector<Column>& runs) {
  std::ostringstream table;
  const std::vector<Row> rows = Rows(*runs.front().second);
  size_t label = 0;
  for (const Row& row : rows) label = std::max(label, row.name.size());
  size_t width = 12;
  for (const Column& run : runs) width = std::max(width, run.first.size());
  if (runs.size() > 1) {
    table << std::string(label, ' ');
    for (const Column& run : runs) table << "  " << Right(run.first, width);
    table << "\n";
  }
  for (const Row& row : rows) {
    table << row.name << std::string(label - row.name.size(), ' ');
    for (const Column& run : runs) table << "  " << Right(row.value(*run.second), width);
    table << "\n";
  }
  return table.str();
}

std::string Json(const JobResult& result) {
  const PipelineStats& stats = result.stats;
  ordered_json json = {
      {"examples", stats.examples},
      {"fresh", stats.fresh},
      {"echoes", stats.examples - stats.fresh},
      {"batches", stats.batches},
      {"seconds", stats.seconds},
      {"first_batch_s", stats.first_batch_s},
      {"examples_per_s", stats.examples_per_s},
      {"fresh_per_s", stats.fresh_per_s},
      {"stall_s", stats.stall_s},
      {"stall_share", stats.stall_share},
      {"records", stats.records},
      {"bytes_read", stats.bytes_read},
      {"network", ToJson(stats.network)},
      {"peak_bytes_in_flight", stats.peak_bytes_in_flight},
      {"bad_count", stats.bad_count},
      {"bad_examples", ToJson(stats.bad_examples)},
      {"partial_images", stats.partial_images},
      {"threads", result.threads},
      {"first_step", result.first_step},
      {"checkpoints", result.checkpoints},
      {"stages", ToJson(stats.stages)},
      {"echo_points", ToJson(stats.echo_points)},
      {"windows", ToJson(stats.windows)},
      {"verdict", stats.verdict},
      {"end", ToString(result.end)},
  };
  if (stats.adaptive) json["adaptive"] = ToJson(*stats.adaptive);
  if (result.error) json["error"] = result.error->what();
  if (!result.hash.empty()) json["hash"] = result.hash;
  // Names of files need not be UTF-8, and may hold what a terminal takes for commands.
  return json.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace echopipe::cli
