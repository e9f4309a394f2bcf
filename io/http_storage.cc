#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <echopipe/io/http/lister.h>
#include <echopipe/io/http/object_versions.h>
#include <echopipe/io/http/server.h>
#include <echopipe/io/http/transfers.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/io/http_storage.h>
#include <echopipe/io/storage_error.h>

namespace echopipe {
namespace {

using internal::HttpDocument;
using internal::HttpPage;
using internal::HttpRead;
using internal::HttpServer;
using internal::HttpUri;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMostVersions = 65'536;
constexpr size_t kMostAskedAtOnce = 32;
constexpr Clock::Duration kLongestPoll = hours(1);

void Require(bool holds, const char* option, const char* wanted) {
  if (holds) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "out of range",
               .where = std::string("HttpOptions.") + option,
               .wanted = wanted});
}

void Validate(const HttpOptions& options) {
  const auto within = [](Clock::Duration value, Clock::Duration least, Clock::Duration most) {
    return value >= least && value <= most;
  };
  const RetryOptions& retry = options.retry;
  Require(within(retry.first_wait, milliseconds(1), hours(24)), "retry.first_wait",
          "1 ms to 1 day");
  Require(within(retry.longest_wait, retry.first_wait, hours(24)), "retry.longest_wait",
          "first_wait to 1 day");
  Require(within(retry.budget, seconds(0), hours(24)), "retry.budget", "0 to 1 day");
  Require(within(options.connect_timeout, milliseconds(1), hours(1)), "connect_timeout",
          "1 ms to 1 h");
  Require(within(options.stall_timeout, milliseconds(1), hours(1)), "stall_timeout", "1 ms to 1 h");
  Require(within(options.deadline, milliseconds(1), hours(24)), "deadline", "1 ms to 1 day");
  Require(options.most_requests >= 1 && options.most_requests <= 1024, "most_requests",
          "1 to 1024");
}

// The results of asking for each path, many at a time.
template <class T>
std::vector<Result<T>> AskAll(const std::vector<std::string>& paths,
                              const std::function<Result<T>(const std::string&)>& ask) {
  std::vector<Result<T>> results(paths.size(), Result<T>(OutOfMemory()));
  std::atomic<size_t> next = 0;
  const auto ask_on = [&]() noexcept {
    for (size_t path = next++; path < paths.size(); path = next++) {
      try {
        results[path] = ask(paths[path]);
      } catch (const std::bad_alloc&) {
        continue;  // as it is
      }
    }
  };
  std::vector<std::jthread> threads;
  try {
    while (threads.size() + 1 < std::min(paths.size(), kMostAskedAtOnce)) {
      threads.emplace_back(ask_on);
    }
  } catch (const std::exception&) {
    // Fewer will do: this thread asks too.
  }
  ask_on();
  threads.clear();
  return results;
}

/// Results of reads, on their way to the callbacks: these have a thread of their own, so that they
/// may block on the storage and slow ones do not hold up the network.
class Callbacks {
 public:
  Callbacks() : thread_([this] { Run(); }) {}

  /// Everything that has been put in is called back. Nothing more may come.
  ~Callbacks() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.NotifyOne();
  }

  /// A callback that hands the result to `callback` in the thread. It needs no memory by then.
  Storage::Callback Defer(Storage::Callback callback) {
    auto entry = std::make_shared<std::list<Entry>>();
    entry->push_back({.callback = std::move(callback), .result = ReadResult()});
    return [this, entry = std::move(entry)](Result<ReadResult> result) {
      entry->front().result = std::move(result);
      {
        MutexLock lock(mutex_);
        due_.splice(due_.end(), *entry);
      }
      changed_.NotifyOne();
    };
  }

 private:
  struct Entry {
    Storage::Callback callback;
    Result<ReadResult> result;
  };

  void Run() {
    mutex_.lock();
    while (true) {
      while (due_.empty() && !ended_) changed_.Wait(mutex_);
      if (due_.empty()) break;
      std::list<Entry> next;
      next.splice(next.end(), due_, due_.begin());
      mutex_.unlock();
      next.front().callback(std::move(next.front().result));
      next.clear();
      mutex_.lock();
    }
    mutex_.unlock();
  }

  Mutex mutex_;
  CondVar changed_;
  std::list<Entry> due_ ECHOPIPE_GUARDED_BY(mutex_);
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

/// One thread does all of the network; other threads leave it their wishes and wake it.
class HttpStorage final : public Storage {
 public:
  explicit HttpStorage(const HttpOptions& options)
      : options_(options),
        transfers_(options),
        versions_(kMostVersions),
        lister_({.get = [this](const std::string& uri,
                               uint64_t most_bytes) { return Get(uri, most_bytes); },
                 .is_object = [this](const std::string& uri) { return Size(uri).ok(); }}),
        network_([this] { Run(); }) {}

  ~HttpStorage() override {
    {
      MutexLock lock(mutex_);
      ended_ = true;
    }
    transfers_.Wake();
    network_.join();
  }

  Result<std::vector<FolderEntry>> List(const std::string& folder) override {
    return lister_.List(folder);
  }

  Result<uint64_t> Size(const std::string& path) override {
    BufferPool pool;
    std::promise<Result<ReadResult>> done;
    Start({.path = path}, pool,
          [&done](Result<ReadResult> result) { done.set_value(std::move(result)); });
    const Result<ReadResult> result = done.get_future().get();
    return result.ok() ? Result<uint64_t>(result.value().object_size) : result.error();
  }

  std::vector<Result<std::vector<FolderEntry>>> ListAll(
      const std::vector<std::string>& folders) override {
    return AskAll<std::vector<FolderEntry>>(
        folders, [this](const std::string& folder) { return List(folder); });
  }

  std::vector<Result<uint64_t>> Sizes(const std::vector<std::string>& paths) override {
    return AskAll<uint64_t>(paths, [this](const std::string& path) { return Size(path); });
  }

  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    return Start(
        std::move(request), pool,
        callbacks_.Defer([this, callback = std::move(callback)](Result<ReadResult> result) {
          meter_.OnRead(result.ok() ? result.value().data->size() : 0);
          callback(std::move(result));
        }));
  }

  void Cancel(ReadId id) override {
    try {
      MutexLock lock(mutex_);
      wishes_.cancelled.push_back(id);
    } catch (const std::bad_alloc&) {
      return;  // as if not cancelled
    }
    transfers_.Wake();
  }

  StorageStats Stats() const override { return meter_.stats(); }

 private:
  /// What other threads have left.
  struct Wishes {
    std::list<std::unique_ptr<HttpRead>> reads;
    std::vector<ReadId> cancelled;
    std::list<std::unique_ptr<HttpPage>> pages;
  };

  ReadId Start(ReadRequest request, BufferPool& pool, Callback callback) {
    const ReadId id = next_id_++;
    std::list<std::unique_ptr<HttpRead>> read;
    read.push_back(nullptr);  // first: a read that exists calls back
    read.front() = std::make_unique<HttpRead>(id, std::move(request), pool, std::move(callback),
                                              std::chrono::steady_clock::now() + options_.deadline);
    {
      MutexLock lock(mutex_);
      if (!network_ended_) wishes_.reads.splice(wishes_.reads.end(), read);
    }
    // Started by a callback that runs at the end.
    if (!read.empty()) Stop(*read.front());
    transfers_.Wake();
    return id;
  }

  Result<HttpDocument> Get(const std::string& uri, uint64_t most_bytes) {
    std::promise<Result<HttpDocument>> document;
    std::list<std::unique_ptr<HttpPage>> page;
    page.push_back(std::make_unique<HttpPage>(
        uri, most_bytes,
        [&document](Result<HttpDocument> result) { document.set_value(std::move(result)); }));
    {
      MutexLock lock(mutex_);
      if (!network_ended_) wishes_.pages.splice(wishes_.pages.end(), page);
    }
    if (!page.empty()) page.front()->End(internal::StoppedRead(uri));
    transfers_.Wake();
    return document.get_future().get();
  }

  static void Stop(HttpRead& read) { read.Fail(internal::StoppedRead(read.request().path)); }

  // Everything below runs in the network's thread.

  void Run() {
    while (!is_ended()) {
      try {
        Grant(TakeWishes());
        transfers_.Poll(AdvanceAll());
      } catch (const std::bad_alloc&) {
        for (auto& [name, server] : servers_) server.DropAll();
      }
    }
    for (auto& [name, server] : servers_) server.StopAll();
    servers_.clear();
    StopNewReads();
  }

  bool is_ended() const {
    MutexLock lock(mutex_);
    return ended_;
  }

  Wishes TakeWishes() {
    MutexLock lock(mutex_);
    return std::exchange(wishes_, {});
  }

  void StopNewReads() {
    Wishes last;
    {
      MutexLock lock(mutex_);
      std::swap(last, wishes_);
      network_ended_ = true;
    }
    for (const auto& read : last.reads) Stop(*read);
    for (const auto& page : last.pages) page->End(internal::StoppedRead(page->uri()));
  }

  void Grant(Wishes wishes) {
    for (std::unique_ptr<HttpPage>& page : wishes.pages) {
      try {
        HttpServer& server = ServerOf(page->uri());
        server.Get(std::move(page));
      } catch (const Error& error) {
        page->End(error);
      }
    }
    for (std::unique_ptr<HttpRead>& read : wishes.reads) {
      try {
        HttpServer& server = ServerOf(read->request().path);
        server.Add(std::move(read));
      } catch (const Error& error) {
        read->Fail(error);
      }
    }
    for (const ReadId id : wishes.cancelled) {
      for (auto& [name, server] : servers_) {
        if (server.Cancel(id)) break;
      }
    }
  }

  HttpServer& ServerOf(const std::string& uri) {
    const std::string name = HttpUri::Parse(uri).server;
    const HttpServer::Shared shared{options_, transfers_, versions_, meter_};
    return servers_.try_emplace(name, name, shared).first->second;
  }

  // How long nothing needs to be done.
  Clock::Duration AdvanceAll() {
    const Clock::Time now = std::chrono::steady_clock::now();
    Clock::Time next = now + kLongestPoll;
    for (auto& [name, server] : servers_) {
      server.Advance(now);
      next = std::min(next, server.next_event());
    }
    return std::max(next - now, Clock::Duration(0));
  }

  const HttpOptions options_;
  internal::HttpMeter meter_;
  internal::Transfers transfers_;
  internal::ObjectVersions versions_;
  internal::HttpLister lister_;
  std::map<std::string, HttpServer> servers_;  // the network thread's
  std::atomic<ReadId> next_id_ = 1;
  mutable Mutex mutex_;
  Wishes wishes_ ECHOPIPE_GUARDED_BY(mutex_);
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  bool network_ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  Callbacks callbacks_;  // its end waits for callbacks, which use all of the above
  std::jthread network_;
};

}  // namespace

std::shared_ptr<Storage> MakeHttpStorage(const HttpOptions& options) {
  Validate(options);
  return std::make_shared<HttpStorage>(options);
}

}  // namespace echopipe
