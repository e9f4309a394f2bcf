#pragma once

#include <string>
#include <string_view>

#include <echopipe/base/mutex.h>

namespace echopipe::cli {

/// What the program says on stderr while it works: lines, and on a terminal one status line below
/// them that is written anew. Control characters are escaped. Threads: any.
class Console {
 public:
  /// A quiet one says nothing.
  explicit Console(bool quiet);

  bool on_terminal() const { return on_terminal_; }
  void Line(std::string_view text);
  /// On a terminal in the place of the last status, elsewhere a line.
  void Status(std::string_view text);
  /// Takes the status line away.
  void ClearStatus();

 private:
  void Write(const std::string& text) ECHOPIPE_REQUIRES(mutex_);

  const bool quiet_;
  const bool on_terminal_;
  Mutex mutex_;
  std::string status_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace echopipe::cli
