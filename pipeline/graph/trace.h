#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <echopipe/base/clock.h>
#include <echopipe/base/error.h>
#include <echopipe/base/file_descriptor.h>
#include <echopipe/base/mutex.h>
#include <echopipe/pipeline/example.h>

namespace echopipe::internal {

/// What an event tells beside its name and time: the members of a JSON object.
class TraceArgs {
 public:
  TraceArgs& Add(std::string_view name, uint64_t value);
  /// What is no UTF-8 becomes U+FFFD; of a long text, the beginning.
  TraceArgs& Add(std::string_view name, std::string_view text);
  TraceArgs& Add(std::string_view name, std::span<const uint32_t> values);
  TraceArgs& AddIdentity(const Identity& identity);

  const std::string& json() const { return json_; }

 private:
  void AddName(std::string_view name);

  std::string json_;
};

/// Writes what is done when, on which thread, into a file: Chrome's trace event format.
///
/// Buffering  Events wait as text for a thread that writes them; nobody waits for the disk. What
///            comes while kMostWaiting bytes wait is lost, and counted in the file.
/// End        After each write, and so whatever ends the program, the file is a whole JSON object.
/// Errors     After a failed write nothing more is written; Finish() tells.
/// Threads    Every method from any thread.
class Trace {
 public:
  static constexpr size_t kMostWaiting = size_t{4} << 20;

  /// Throws kIo if the file cannot be opened, kInvalidArgument if one is there that is no trace.
  /// Times are told from now on.
  Trace(const std::string& path, std::shared_ptr<const Clock> clock);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  Clock::Time Now() const { return clock_->Now(); }

  /// A row of its own beside those of the threads.
  struct Track {
    uint64_t id = 0;
  };
  Track AddTrack(std::string_view name);
  /// Names the calling thread's row, unless it has done something already.
  void NameThread(std::string_view name);

  /// Something that this thread did.
  void AddSpan(std::string_view name, Clock::Time begin, Clock::Time end, const TraceArgs& args);
  /// Something that was under way beside the threads, and may overlap others.
  void AddAsync(std::string_view name, Clock::Time begin, Clock::Time end, const TraceArgs& args);
  void AddInstant(Track track, std::string_view name, const TraceArgs& args);
  /// What these numbers, by name, are from now on.
  void AddCounters(std::string_view name, const TraceArgs& values);

  /// Writes all that there is, and no more. Throws kIo if something could not be written.
  void Finish();

 private:
  friend class TraceBody;

  std::string Head(char phase, std::string_view name, uint64_t track, Clock::Time time) const;
  std::string Span(std::string_view name, uint64_t track, Clock::Time begin, Clock::Time end,
                   const TraceArgs& args) const;
  uint64_t ThreadTrack();
  void Add(std::string_view events, uint64_t count);
  void WriteUntilFinished();
  void Write(const std::string& events, uint64_t count, uint64_t lost);

  const std::shared_ptr<const Clock> clock_;
  const Clock::Time begin_;
  const std::string path_;
  FileDescriptor file_;
  int64_t size_ = 0;  // of the file without what closes it; the writing thread's own
  Mutex mutex_;
  CondVar changed_;
  std::string waiting_ ECHOPIPE_GUARDED_BY(mutex_);
  uint64_t waiting_count_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t lost_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t next_id_ ECHOPIPE_GUARDED_BY(mutex_) = 1;
  uint64_t next_track_ ECHOPIPE_GUARDED_BY(mutex_) = 1;
  uint64_t workers_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  std::map<std::thread::id, uint64_t> threads_ ECHOPIPE_GUARDED_BY(mutex_);
  bool finished_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ ECHOPIPE_GUARDED_BY(mutex_);
  std::jthread writer_;
};

/// What one run of a node's body did: a span, and in it one for each step.
///
/// With a null trace it does nothing, and reads no clock.
class TraceBody {
 public:
  /// `trace` and the others must outlive it.
  TraceBody(Trace* trace, std::string_view name, const Identity& identity)
      : trace_(trace), name_(name), identity_(identity) {}
  /// Tells of it, unless it has not begun.
  ~TraceBody();
  TraceBody(const TraceBody&) = delete;
  TraceBody& operator=(const TraceBody&) = delete;

  void Begin(Clock::Time begin) { begin_ = end_ = begin; }
  void AddStep(std::string_view name, Clock::Time begin, Clock::Time end);
  /// The step under way came to nothing.
  void AddFailure(std::string_view name, const Error& error);
  void End(Clock::Time end) { end_ = end; }

 private:
  Trace* trace_;
  std::string_view name_;
  const Identity& identity_;
  std::optional<Clock::Time> begin_;
  Clock::Time end_;
  std::string steps_;
  uint64_t count_ = 0;
};

}  // namespace echopipe::internal
