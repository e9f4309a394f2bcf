#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <echopipe/base/clock.h>
#include <echopipe/base/mutex.h>
#include <echopipe/base/random.h>
#include <echopipe/io/http/flight_window.h>
#include <echopipe/io/http/object_versions.h>
#include <echopipe/io/http/page.h>
#include <echopipe/io/http/read.h>
#include <echopipe/io/http/read_plan.h>
#include <echopipe/io/http/transfers.h>

namespace echopipe::internal {

/// Counts what the network does.
///
/// Threads  Every method may be called from any thread.
class HttpMeter {
 public:
  enum class Attempt { kFirst, kRetry, kResume };

  void OnRequest(Attempt attempt);
  void OnRequestEnd();
  void OnRead(uint64_t bytes);
  void OnThrottled(Clock::Duration time);
  StorageStats stats() const;

 private:
  mutable Mutex mutex_;
  StorageStats stats_ ECHOPIPE_GUARDED_BY(mutex_);
};

/// Everything under way with one server: reads become requests, requests that fail are sent again,
/// and as many of either are under way as the server and the link can do with.
///
/// Threads  One caller at a time: the one that polls `transfers`. Callbacks of reads run in these
///          calls and in Transfers::Poll().
/// Errors   Any call but the last three may throw std::bad_alloc; then DropAll() is due.
class HttpServer {
 public:
  /// What all servers share; it must outlive them.
  struct Shared {
    const HttpOptions& options;
    Transfers& transfers;
    ObjectVersions& versions;
    HttpMeter& meter;
  };

  /// `name` is "http://host:port".
  HttpServer(std::string name, const Shared& shared);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void Add(std::unique_ptr<HttpRead> read);
  /// Ends a read with kStopped. False if it is none of this server's.
  bool Cancel(Storage::ReadId id);
  void Get(std::unique_ptr<HttpPage> page);
  /// Starts what may start now, and fails reads that are past their deadline.
  void Advance(Clock::Time now);
  /// Ends all reads with kStopped.
  void StopAll();
  /// Ends everything for want of memory: whatever was half done when it was noticed.
  void DropAll();
  /// When Advance() is to be called again at the latest.
  Clock::Time next_event() const;

 private:
  class Exchange;
  class RangeExchange;
  class HeadExchange;
  class DocumentExchange;
  using Exchanges = std::list<std::unique_ptr<Exchange>>;
  using Reads = std::unordered_map<Storage::ReadId, std::unique_ptr<HttpRead>>;

  std::unique_ptr<Exchange> NextDue(Clock::Time now);
  uint64_t MostBytesOfRequest() const;
  void Begin(std::unique_ptr<Exchange> exchange, Clock::Time now);
  void FailLate(Clock::Time now);
  void CutOffStalled(Clock::Time now);
  void DropUnwanted();
  void OnThrottled(Clock::Time now, std::optional<Clock::Duration> retry_after);
  void EndThrottling(Clock::Time now);
  HttpRead* Find(Storage::ReadId id) const;
  void Succeed(Storage::ReadId id);
  void Fail(Storage::ReadId id, Error error);
  std::unique_ptr<HttpRead> Take(Storage::ReadId id);
  Reads TakeAll();
  Clock::Time FailingSince(Clock::Time attempt);
  Clock::Duration patience() const;
  RetryOptions retry_options() const;

  std::string name_;
  Shared shared_;
  FlightWindow window_;
  ReadPlan plan_;
  RandomStream random_;
  double fill_ = 1;  // of the bytes asked for, what objects have: small ones end before
  std::optional<Clock::Time> failing_since_;
  bool has_answered_ = false;
  Clock::Time last_sign_of_life_ = Clock::Time::min();
  std::optional<Clock::Time> throttled_since_;
  Reads reads_;
  std::multimap<Clock::Time, Storage::ReadId> deadlines_;
  std::deque<std::unique_ptr<Exchange>> fresh_;  // heads and documents, not begun
  Exchanges under_way_;
  std::multimap<Clock::Time, std::unique_ptr<Exchange>> waiting_;  // for another attempt
};

}  // namespace echopipe::internal
