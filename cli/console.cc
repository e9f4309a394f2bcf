#include <cstdio>

#include <unistd.h>

#include <echopipe/cli/console.h>
#include <echopipe/cli/printable.h>

namespace echopipe::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

Console::Console(bool quiet) : quiet_(quiet), on_terminal_(isatty(STDERR_FILENO) != 0) {}

void Console::Line(std::string_view text) {
  MutexLock lock(mutex_);
  const std::string line = Printable(text) + "\n";
  Write(status_.empty() ? line : std::string(kClearLine) + line + status_);
}

void Console::Status(std::string_view text) {
  if (!on_terminal_) return Line(text);
  MutexLock lock(mutex_);
  status_ = Printable(text);
  Write(std::string(kClearLine) + status_);
}

void Console::ClearStatus() {
  MutexLock lock(mutex_);
  if (!status_.empty()) Write(std::string(kClearLine));
  status_.clear();
}

void Console::Write(const std::string& text) {
  if (!quiet_) std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace echopipe::cli
