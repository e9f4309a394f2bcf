#include <atomic>
#include <chrono>
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
using internal::HttpRead;
using internal::HttpServer;
using internal::HttpUri;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMostVersions = 65'536;
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
  Require(within(options.stall_timeout, seconds(1), hours(1)), "stall_timeout", "1 s to 1 h");
  Require(within(options.deadline, milliseconds(1), hours(24)), "deadline", "1 ms to 1 day");
  Require(options.most_requests >= 1 && options.most_requests <= 1024, "most_requests",
          "1 to 1024");
}

/// One thread does all of it; other threads leave it their wishes and wake it.
class HttpStorage final : public Storage {
 public:
  explicit HttpStorage(const HttpOptions& options)
      : options_(options),
        transfers_(options),
        versions_(kMostVersions),
        lister_({.get = [this](const std::string& uri,
                               uint64_t most_bytes) { return Get(uri, most_bytes); },
                 .is_object = [this](const std::string& uri) { return Size(uri).ok(); }}),
        thread_([this] { Run(); }) {}

  ~HttpStorage() override {
    {
      MutexLock lock(mutex_);
      ended_ = true;
    }
    transfers_.Wake();
  }

  Result<std::vector<FolderEntry>> List(const std::string& folder) override {
    return lister_.List(folder);
  }

  Result<uint64_t> Size(const std::string& path) override {
    BufferPool pool;
    std::promise<Result<uint64_t>> size;
    Start({.path = path}, pool, [&](const Result<ReadResult>& result) {
      size.set_value(result.ok() ? Result<uint64_t>(result.value().object_size) : result.error());
    });
    return size.get_future().get();
  }

  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    return Start(std::move(request), pool,
                 [this, callback = std::move(callback)](Result<ReadResult> result) {
                   meter_.OnRead(result.ok() ? result.value().data->size() : 0);
                   callback(std::move(result));
                 });
  }

  void Cancel(ReadId id) override {
    try {
      MutexLock lock(mutex_);
      cancelled_.push_back(id);
    } catch (const std::bad_alloc&) {
      return;  // as if not cancelled
    }
    transfers_.Wake();
  }

  StorageStats Stats() const override { return meter_.stats(); }

 private:
  struct Page {
    std::string uri;
    uint64_t most_bytes = 0;
    HttpServer::DocumentDone done;
  };

  ReadId Start(ReadRequest request, BufferPool& pool, Callback callback) {
    const ReadId id = next_id_++;
    std::list<std::unique_ptr<HttpRead>> read;
    read.push_back(nullptr);  // first: a read that exists calls back
    read.front() = std::make_unique<HttpRead>(id, std::move(request), pool, std::move(callback),
                                              std::chrono::steady_clock::now() + options_.deadline);
    {
      MutexLock lock(mutex_);
      reads_.splice(reads_.end(), read);
    }
    transfers_.Wake();
    return id;
  }

  Result<HttpDocument> Get(const std::string& uri, uint64_t most_bytes) {
    std::promise<Result<HttpDocument>> document;
    {
      MutexLock lock(mutex_);
      pages_.push_back({.uri = uri, .most_bytes = most_bytes, .done = [&](auto result) {
                          document.set_value(std::move(result));
                        }});
    }
    transfers_.Wake();
    return document.get_future().get();
  }

  // Everything below runs in the thread.

  void Run() {
    while (!is_ended()) {
      try {
        TakeWishes();
        transfers_.Poll(AdvanceAll());
      } catch (const std::bad_alloc&) {
        for (auto& [name, server] : servers_) server.DropAll();
      }
    }
    // Callbacks may start further reads.
    do {
      for (auto& [name, server] : servers_) server.StopAll();
    } while (StopNewReads());
    servers_.clear();
  }

  bool is_ended() const {
    MutexLock lock(mutex_);
    return ended_;
  }

  bool StopNewReads() {
    std::list<std::unique_ptr<HttpRead>> reads;
    {
      MutexLock lock(mutex_);
      reads.swap(reads_);
    }
    for (const auto& read : reads) read->Fail(internal::StoppedRead(read->request().path));
    return !reads.empty();
  }

  void TakeWishes() {
    std::list<std::unique_ptr<HttpRead>> reads;
    std::vector<ReadId> cancelled;
    std::list<Page> pages;
    {
      MutexLock lock(mutex_);
      reads.swap(reads_);
      cancelled.swap(cancelled_);
      pages.swap(pages_);
    }
    for (Page& page : pages) {
      try {
        ServerOf(page.uri).Get(page.uri, page.most_bytes, page.done);
      } catch (const Error& error) {
        page.done(error);
      }
    }
    for (std::unique_ptr<HttpRead>& read : reads) {
      try {
        HttpServer& server = ServerOf(read->request().path);
        server.Add(std::move(read));
      } catch (const Error& error) {
        read->Fail(error);
      }
    }
    for (const ReadId id : cancelled) {
      for (auto& [name, server] : servers_) {
        if (server.Cancel(id)) break;
      }
    }
  }

  HttpServer& ServerOf(const std::string& uri) {
    const std::string name = HttpUri::Parse(uri).server;
    return servers_
        .try_emplace(name, name, HttpServer::Shared{options_, transfers_, versions_, meter_})
        .first->second;
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
  std::map<std::string, HttpServer> servers_;  // the thread's
  std::atomic<ReadId> next_id_ = 1;
  mutable Mutex mutex_;
  std::list<std::unique_ptr<HttpRead>> reads_ ECHOPIPE_GUARDED_BY(mutex_);
  std::vector<ReadId> cancelled_ ECHOPIPE_GUARDED_BY(mutex_);
  std::list<Page> pages_ ECHOPIPE_GUARDED_BY(mutex_);
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace

std::shared_ptr<Storage> MakeHttpStorage(const HttpOptions& options) {
  Validate(options);
  return std::make_shared<HttpStorage>(options);
}

}  // namespace echopipe
