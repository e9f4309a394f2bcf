#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <stop_token>

#include <nlohmann/json.hpp>

#include <echopipe/base/error.h>
#include <echopipe/cli/timeline.h>

namespace echopipe::cli {

Timeline::Timeline(const Pipeline& pipeline, const std::string& path)
    : pipeline_(pipeline), path_(path), file_(path, std::ios::trunc) {
  Check();
  ticker_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

Timeline::~Timeline() {
  ticker_.request_stop();
  ticker_.join();
}

void Timeline::Check() {
  const std::lock_guard lock(mutex_);
  if (file_) return;
  throw Error({.code = ErrorCode::kIo, .what = "cannot write the timeline", .where = path_});
}

void Timeline::Run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  auto due = std::chrono::steady_clock::now();
  PipelineStats last = pipeline_.Stats();
  while (true) {
    due += std::chrono::seconds(1);
    never.wait_until(lock, stop, due, [] { return false; });
    if (stop.stop_requested()) return;
    PipelineStats now = pipeline_.Stats();
    Write(last, now);
    last = std::move(now);
  }
}

void Timeline::Write(const PipelineStats& last, const PipelineStats& now) {
  const std::lock_guard lock(mutex_);
  file_ << TimelineLine(last, now) << std::endl;
}

std::string TimelineLine(const PipelineStats& last, const PipelineStats& now) {
  const double seconds = std::max(now.seconds - last.seconds, 1e-9);
  const double fresh = static_cast<double>(now.fresh - last.fresh);
  const double examples = static_cast<double>(now.examples - last.examples);
  nlohmann::ordered_json line = {{"second", now.seconds},
                                 {"fresh_per_s", fresh / seconds},
                                 {"examples_per_s", examples / seconds},
                                 {"factor", nullptr},
                                 {"runway_s", now.runway_s},
                                 {"stall_share", 0}};
  if (fresh > 0) line["factor"] = examples / fresh;
  // Until the first batch waiting is start-up, which the figures leave out from then on.
  const double stalled = now.stall_s - (last.batches == 0 ? 0 : last.stall_s);
  line["stall_share"] = std::clamp(stalled / seconds, 0.0, 1.0);
  return line.dump();
}

}  // namespace echopipe::cli
