#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include <echopipe/base/mutex.h>
#include <echopipe/base/random.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/io/storage_error.h>

namespace echopipe {
namespace {

using Duration = Clock::Duration;
using Time = Clock::Time;

constexpr Duration kMaxLatency = std::chrono::hours(1);

// Saturates; times are not before the clock's epoch.
Time After(Time time, Duration duration) {
  return duration > Time::max() - time ? Time::max() : time + duration;
}

Duration LatencyOf(const ShapeOptions& options, uint64_t number) {
  const std::array<uint64_t, 2> name = {options.seed, number};
  const double offset = 2 * RandomStream(HashToKey(name)).Uniform() - 1;
  const Duration jitter(std::llround(offset * static_cast<double>(options.jitter.count())));
  return std::max(Duration::zero(), options.latency + jitter);
}

Duration TransferTime(uint64_t bytes, uint64_t bytes_per_second) {
  __extension__ using Wide = unsigned __int128;
  if (bytes_per_second == 0) return Duration::zero();
  const Wide nanoseconds = Wide{bytes} * std::nano::den / bytes_per_second;
  return Duration(static_cast<Duration::rep>(std::min(nanoseconds, Wide{Duration::max().count()})));
}

/// The reads under way. The clock's calls share it, as they may come when the storage is gone.
///
/// A read stays in `reads_` until its callback is about to run. While one is there, or a callback
/// runs, the storage and with it the clock are alive.
class Link : public std::enable_shared_from_this<Link> {
 public:
  using ReadId = Storage::ReadId;

  Link(const ShapeOptions& options, Storage& inner, Clock& clock)
      : options_(options), inner_(inner), clock_(clock) {}

  ReadId Start(ReadRequest request, BufferPool& pool, Storage::Callback callback);
  void Cancel(ReadId id);
  /// Cancels everything and returns when every callback has returned.
  void End();
  StorageStats Stats() const;

 private:
  struct Read {
    std::string path;
    Storage::Callback callback;
    Time ready{};
    std::optional<ReadId> inner_id = {};            // once inner_.Read has returned
    std::optional<Result<ReadResult>> result = {};  // once the inner storage has read
    bool cancelled = false;
  };

  void SetInnerId(ReadId id, ReadId inner_id);
  void InnerDone(ReadId id, Result<ReadResult> result);
  void EnterPipe(ReadId id);
  bool DeliverAt(Time time, ReadId id);
  void Deliver(ReadId id);
  std::optional<Read> Take(ReadId id);
  std::optional<ReadId> AnyInnerDone() const ECHOPIPE_REQUIRES(mutex_);

  const ShapeOptions options_;
  Storage& inner_;
  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<ReadId, Read> reads_ ECHOPIPE_GUARDED_BY(mutex_);
  ReadId next_id_ ECHOPIPE_GUARDED_BY(mutex_) = 1;
  Time pipe_free_ ECHOPIPE_GUARDED_BY(mutex_){};
  int running_callbacks_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  StorageStats stats_ ECHOPIPE_GUARDED_BY(mutex_);
};

Storage::ReadId Link::Start(ReadRequest request, BufferPool& pool, Storage::Callback callback) {
  ReadId id = 0;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
    reads_.emplace(id, Read{.path = request.path,
                            .callback = std::move(callback),
                            .ready = After(clock_.Now(), LatencyOf(options_, id - 1)),
                            .cancelled = ended_});
  }
  try {
    SetInnerId(id, inner_.Read(std::move(request), pool,
                               [self = shared_from_this(), id](Result<ReadResult> result) {
                                 self->InnerDone(id, std::move(result));
                               }));
  } catch (...) {
    MutexLock lock(mutex_);
    reads_.erase(id);
    throw;
  }
  return id;
}

void Link::SetInnerId(ReadId id, ReadId inner_id) {
  {
    MutexLock lock(mutex_);
    const auto read = reads_.find(id);
    if (read == reads_.end()) return;
    read->second.inner_id = inner_id;
    if (!read->second.cancelled) return;
  }
  inner_.Cancel(inner_id);
}

void Link::Cancel(ReadId id) {
  std::optional<ReadId> inner_id;
  {
    MutexLock lock(mutex_);
    const auto found = reads_.find(id);
    if (found == reads_.end() || found->second.cancelled) return;
    Read& read = found->second;
    read.cancelled = true;
    if (read.result)
      DeliverAt(clock_.Now(), id);  // if that fails, it is delivered when it would have been
    else
      inner_id = read.inner_id;
  }
  if (inner_id) inner_.Cancel(*inner_id);
}

void Link::End() {
  mutex_.lock();
  ended_ = true;
  for (auto next = reads_.begin(); next != reads_.end();) {
    const ReadId id = next->first;
    Read& read = next->second;
    read.cancelled = true;
    if (const std::optional<ReadId> inner_id = read.inner_id; inner_id && !read.result) {
      mutex_.unlock();
      inner_.Cancel(*inner_id);
      mutex_.lock();
    }
    next = reads_.upper_bound(id);
  }
  while (!reads_.empty() || running_callbacks_ > 0) {
    const std::optional<ReadId> id = AnyInnerDone();
    if (!id) {
      changed_.Wait(mutex_);
      continue;
    }
    mutex_.unlock();
    Deliver(*id);
    mutex_.lock();
  }
  mutex_.unlock();
}

StorageStats Link::Stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

void Link::InnerDone(ReadId id, Result<ReadResult> result) {
  {
    MutexLock lock(mutex_);
    Read& read = reads_.at(id);
    read.result = std::move(result);
    read.ready = std::max(read.ready, clock_.Now());
    if (!read.cancelled) {
      try {
        clock_.CallAt(read.ready, [self = shared_from_this(), id] { self->EnterPipe(id); });
        return;
      } catch (const std::exception&) {
        read.result = OutOfMemory();
      }
    }
  }
  Deliver(id);
}

void Link::EnterPipe(ReadId id) {
  {
    MutexLock lock(mutex_);
    const auto found = reads_.find(id);
    if (found == reads_.end()) return;
    Read& read = found->second;
    const uint64_t bytes = read.result->ok() ? read.result->value().data->size() : 0;
    pipe_free_ =
        After(std::max(pipe_free_, read.ready), TransferTime(bytes, options_.bytes_per_second));
    if (DeliverAt(pipe_free_, id)) return;
    read.result = OutOfMemory();
  }
  Deliver(id);
}

// False if there is no memory, or no thread, for that.
bool Link::DeliverAt(Time time, ReadId id) {
  try {
    clock_.CallAt(time, [self = shared_from_this(), id] { self->Deliver(id); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Link::Deliver(ReadId id) {
  {
    std::optional<Read> read = Take(id);
    if (!read) return;
    read->callback(std::move(*read->result));
  }
  MutexLock lock(mutex_);
  --running_callbacks_;
  changed_.NotifyAll();
}

// Nothing if a cancellation has been faster.
std::optional<Link::Read> Link::Take(ReadId id) {
  MutexLock lock(mutex_);
  auto node = reads_.extract(id);
  if (node.empty()) return std::nullopt;
  Read& read = node.mapped();
  if (read.cancelled) read.result = internal::StoppedRead(read.path);
  ++running_callbacks_;
  ++stats_.reads;
  if (read.result->ok()) stats_.bytes_read += read.result->value().data->size();
  return std::move(read);
}

std::optional<Storage::ReadId> Link::AnyInnerDone() const {
  const auto found = std::find_if(reads_.begin(), reads_.end(),
                                  [](const auto& read) { return read.second.result.has_value(); });
  if (found == reads_.end()) return std::nullopt;
  return found->first;
}

class ShapedStorage final : public Storage {
 public:
  ShapedStorage(std::shared_ptr<Storage> inner, const ShapeOptions& options,
                std::shared_ptr<Clock> clock)
      : inner_(std::move(inner)),
        clock_(std::move(clock)),
        link_(std::make_shared<Link>(options, *inner_, *clock_)) {}
  ~ShapedStorage() override { link_->End(); }

  Result<std::vector<FolderEntry>> List(const std::string& folder) override {
    return inner_->List(folder);
  }
  Result<uint64_t> Size(const std::string& path) override { return inner_->Size(path); }
  std::vector<Result<std::vector<FolderEntry>>> ListAll(
      const std::vector<std::string>& folders) override {
    return inner_->ListAll(folders);
  }
  std::vector<Result<uint64_t>> Sizes(const std::vector<std::string>& paths) override {
    return inner_->Sizes(paths);
  }
  std::optional<int64_t> ModifiedAt(const std::string& path) override {
    return inner_->ModifiedAt(path);
  }
  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    return link_->Start(std::move(request), pool, std::move(callback));
  }
  void Cancel(ReadId id) override { link_->Cancel(id); }
  StorageStats Stats() const override { return link_->Stats(); }

 private:
  std::shared_ptr<Storage> inner_;
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<Link> link_;
};

void CheckDuration(Duration duration, const char* name) {
  if (duration >= Duration::zero() && duration <= kMaxLatency) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = std::string(name) + " is out of range",
               .where = "MakeShapedStorage",
               .got = std::to_string(duration.count()) + " ns",
               .wanted = "0 to 1 h"});
}

}  // namespace

std::shared_ptr<Storage> MakeShapedStorage(std::shared_ptr<Storage> inner, ShapeOptions options,
                                           std::shared_ptr<Clock> clock) {
  CheckDuration(options.latency, "latency");
  CheckDuration(options.jitter, "jitter");
  return std::make_shared<ShapedStorage>(std::move(inner), options, std::move(clock));
}

}  // namespace echopipe
