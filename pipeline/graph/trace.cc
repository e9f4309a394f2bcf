#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <echopipe/base/read_file.h>
#include <echopipe/pipeline/graph/trace.h>

namespace echopipe::internal {
namespace {

using nlohmann::json;

constexpr size_t kWriteAt = size_t{64} << 10;
// So that a file that is looked at while it grows is not far behind.
constexpr std::chrono::milliseconds kWriteAfter{200};
constexpr size_t kLongestText = 512;

constexpr std::string_view kOpening =
    "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"echopipe\"}}";

// Wherever the file is cut off, these make it whole.
std::string Closing(uint64_t lost) {
  return "\n],\"otherData\":{\"lost_events\":" + std::to_string(lost) + "}}\n";
}

std::string Quoted(std::string_view text) {
  return json(std::string(text.substr(0, kLongestText)))
      .dump(-1, ' ', true, json::error_handler_t::replace);
}

// Microseconds; all digits that there are, so that what nests does so in the file too.
std::string Microseconds(Clock::Duration duration) {
  std::array<char, 32> text{};
  const auto ns = static_cast<long long>(duration.count());
  std::snprintf(text.data(), text.size(), "%lld.%03lld", ns / 1000, ns % 1000);
  return text.data();
}

// A trace may be overwritten, and nothing else.
const std::string& OverwritablePath(const std::string& path) {
  CheckOverwritable(path, "trace", std::string(kOpening.substr(0, kOpening.find('\n'))));
  return path;
}

Error WriteError(const std::string& path, int reason) {
  return Error({.code = ErrorCode::kIo,
                .what = "cannot be written: " + std::generic_category().message(reason),
                .where = path});
}

}  // namespace

void TraceArgs::AddName(std::string_view name) {
  if (!json_.empty()) json_ += ',';
  json_.append("\"").append(name).append("\":");
}

TraceArgs& TraceArgs::Add(std::string_view name, uint64_t value) {
  AddName(name);
  json_ += std::to_string(value);
  return *this;
}

TraceArgs& TraceArgs::Add(std::string_view name, std::string_view text) {
  AddName(name);
  json_ += Quoted(text);
  return *this;
}

TraceArgs& TraceArgs::Add(std::string_view name, std::span<const uint32_t> values) {
  AddName(name);
  std::string_view separator = "[";
  for (const uint32_t value : values) {
    json_.append(std::exchange(separator, ",")).append(std::to_string(value));
  }
  json_ += values.empty() ? "[]" : "]";
  return *this;
}

TraceArgs& TraceArgs::AddIdentity(const Identity& identity) {
  Add("epoch", identity.epoch).Add("ordinal", identity.ordinal);
  return identity.echo_points == 0 ? *this : Add("use", identity.uses());
}

Trace::Trace(const std::string& path, std::shared_ptr<const Clock> clock)
    : clock_(std::move(clock)),
      begin_(clock_->Now()),
      path_(OverwritablePath(path)),
      file_(path, O_WRONLY | O_CREAT | O_TRUNC) {
  if (!file_.is_open()) throw WriteError(path_, errno).Within("RuntimeOptions.trace");
  Write(std::string(kOpening), 0, 0);
  writer_ = std::jthread([this] { WriteUntilFinished(); });
}

Trace::~Trace() {
  try {
    Finish();
  } catch (const Error&) {  // nobody has asked
  }
}

Trace::Track Trace::AddTrack(std::string_view name) {
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    id = next_track_++;
  }
  const std::string at = ",\"pid\":1,\"tid\":" + std::to_string(id) + ",\"args\":{";
  Add(",\n{\"ph\":\"M\",\"name\":\"thread_name\"" + at + "\"name\":" + Quoted(name) + "}}", 1);
  Add(",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\"" + at +
          "\"sort_index\":" + std::to_string(id) + "}}",
      1);
  return {id};
}

void Trace::NameThread(std::string_view name) {
  {
    MutexLock lock(mutex_);
    if (threads_.contains(std::this_thread::get_id())) return;
  }
  const Track track = AddTrack(name);
  MutexLock lock(mutex_);
  threads_.emplace(std::this_thread::get_id(), track.id);
}

uint64_t Trace::ThreadTrack() {
  uint64_t worker = 0;
  {
    MutexLock lock(mutex_);
    const auto known = threads_.find(std::this_thread::get_id());
    if (known != threads_.end()) return known->second;
    worker = ++workers_;
  }
  NameThread("worker " + std::to_string(worker));
  return ThreadTrack();
}

std::string Trace::Head(char phase, std::string_view name, uint64_t track, Clock::Time time) const {
  std::string text = ",\n{\"ph\":\"";
  text += phase;
  text.append("\",\"name\":").append(Quoted(name)).append(",\"pid\":1,\"tid\":");
  text.append(std::to_string(track)).append(",\"ts\":").append(Microseconds(time - begin_));
  return text;
}

std::string Trace::Span(std::string_view name, uint64_t track, Clock::Time begin, Clock::Time end,
                        const TraceArgs& args) const {
  std::string text = Head('X', name, track, begin);
  text.append(",\"dur\":").append(Microseconds(end - begin));
  text.append(",\"args\":{").append(args.json()).append("}}");
  return text;
}

void Trace::AddSpan(std::string_view name, Clock::Time begin, Clock::Time end,
                    const TraceArgs& args) {
  Add(Span(name, ThreadTrack(), begin, end, args), 1);
}

void Trace::AddAsync(std::string_view name, Clock::Time begin, Clock::Time end,
                     const TraceArgs& args) {
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
  }
  const std::string rest =
      ",\"cat\":" + Quoted(name) + ",\"id\":" + std::to_string(id) + ",\"args\":{";
  Add(Head('b', name, 0, begin) + rest + args.json() + "}}" + Head('e', name, 0, end) + rest + "}}",
      2);
}

void Trace::AddInstant(Track track, std::string_view name, const TraceArgs& args) {
  Add(Head('i', name, track.id, Now()) + ",\"s\":\"t\",\"args\":{" + args.json() + "}}", 1);
}

void Trace::AddCounters(std::string_view name, const TraceArgs& values) {
  Add(Head('C', name, 0, Now()) + ",\"args\":{" + values.json() + "}}", 1);
}

void Trace::Add(std::string_view events, uint64_t count) {
  MutexLock lock(mutex_);
  if (finished_ || error_ || waiting_.size() + events.size() > kMostWaiting) {
    lost_ += count;
    return;
  }
  const bool is_much = waiting_.size() >= kWriteAt;
  waiting_ += events;
  waiting_count_ += count;
  if (!is_much && waiting_.size() >= kWriteAt) changed_.NotifyAll();
}

void Trace::WriteUntilFinished() {
  for (bool finished = false; !finished;) {
    std::string events;
    uint64_t count = 0;
    uint64_t lost = 0;
    {
      MutexLock lock(mutex_);
      if (!finished_ && waiting_.size() < kWriteAt) changed_.WaitFor(mutex_, kWriteAfter);
      events.swap(waiting_);
      count = std::exchange(waiting_count_, 0);
      lost = lost_;
      finished = finished_;
    }
    if (!events.empty() || finished) Write(events, count, lost);
  }
}

// What closes the file goes along each time, and is written over the next time.
void Trace::Write(const std::string& events, uint64_t count, uint64_t lost) {
  const std::string all = events + Closing(lost);
  std::string_view rest = all;
  while (!rest.empty()) {
    const auto done = static_cast<int64_t>(all.size() - rest.size());
    const ssize_t written = pwrite(file_.get(), rest.data(), rest.size(), size_ + done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      MutexLock lock(mutex_);
      if (!error_) error_ = WriteError(path_, reason);
      lost_ += count;
      return;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(events.size());
}

void Trace::Finish() {
  {
    MutexLock lock(mutex_);
    finished_ = true;
    changed_.NotifyAll();
  }
  if (writer_.joinable()) writer_.join();
  MutexLock lock(mutex_);
  if (error_) throw *error_;
}

TraceBody::~TraceBody() {
  if (trace_ == nullptr || !begin_) return;
  try {
    const std::string whole = trace_->Span(name_, trace_->ThreadTrack(), *begin_, end_,
                                           TraceArgs().AddIdentity(identity_));
    // A viewer takes the first of two that begin at once for the outer one.
    trace_->Add(whole + steps_, count_ + 1);
  } catch (const std::bad_alloc&) {  // the pipeline itself will notice
  }
}

void TraceBody::AddStep(std::string_view name, Clock::Time begin, Clock::Time end) {
  if (trace_ == nullptr) return;
  steps_ +=
      trace_->Span(name, trace_->ThreadTrack(), begin, end,
                   TraceArgs().Add("epoch", identity_.epoch).Add("ordinal", identity_.ordinal));
  ++count_;
  end_ = end;
}

void TraceBody::AddFailure(std::string_view name, const Error& error) {
  if (trace_ == nullptr || !begin_) return;
  const Clock::Time now = trace_->Now();
  steps_ += trace_->Span(name, trace_->ThreadTrack(), end_, now,
                         TraceArgs()
                             .Add("epoch", identity_.epoch)
                             .Add("ordinal", identity_.ordinal)
                             .Add("error", ToString(error.code())));
  ++count_;
  end_ = now;
}

}  // namespace echopipe::internal
