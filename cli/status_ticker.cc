#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include <echopipe/cli/status_ticker.h>

namespace echopipe::cli {
namespace {

void CallEvery(std::chrono::milliseconds period, std::stop_token stop, auto call) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    never.wait_for(lock, stop, period, [] { return false; });
    if (!stop.stop_requested()) call();
  }
}

}  // namespace

StatusTicker::StatusTicker(Console& console, std::function<std::string()> text)
    : console_(console), text_(std::move(text)) {
  const std::chrono::milliseconds period(console.on_terminal() ? 200 : 5000);
  ticker_ = std::jthread([this, period](const std::stop_token& stop) {
    CallEvery(period, stop, [this] { console_.Status(text_()); });
  });
}

StatusTicker::~StatusTicker() {
  ticker_.request_stop();
  ticker_.join();
  console_.ClearStatus();
}

}  // namespace echopipe::cli
