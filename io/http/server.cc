#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>
#include <variant>
#include <vector>

#include <echopipe/io/http/answer.h>
#include <echopipe/io/http/retries.h>
#include <echopipe/io/http/server.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/io/storage_error.h>

namespace echopipe::internal {
namespace {

// Of an answer that is no use; beyond that a new connection is cheaper.
constexpr uint64_t kMostDropped = uint64_t{64} << 10;
// Read in vain between neighbouring reads.
constexpr uint64_t kMaxGap = uint64_t{16} << 10;
constexpr uint64_t kRequestsAtOnce = 4;
constexpr uint64_t kLeastRequest = uint64_t{256} << 10;
constexpr uint64_t kMostRequest = uint64_t{4} << 20;
constexpr uint64_t kGuessedDocument = uint64_t{64} << 10;
constexpr uint64_t kGuessedHead = 1024;
constexpr double kLeastBytesPerSecond = 1000;
constexpr Clock::Duration kFirstContactBudget = std::chrono::seconds(10);

Clock::Time Now() { return std::chrono::steady_clock::now(); }

std::string Seconds(Clock::Duration time) {
  const double tenths = std::chrono::duration<double>(time).count() * 10;
  return std::to_string(static_cast<int64_t>(tenths) / 10) + "." +
         std::to_string(static_cast<int64_t>(tenths) % 10) + " s";
}

Error ChangedError(const std::string& path) {
  return Error(
      {.code = ErrorCode::kIo, .what = "the object changed while it was read", .where = path});
}

Error FolderError(const std::string& path) {
  return Error({.code = ErrorCode::kIo, .what = "it is a folder", .where = path});
}

}  // namespace

void HttpMeter::OnRequest(Attempt attempt) {
  MutexLock lock(mutex_);
  ++stats_.requests;
  if (attempt != Attempt::kFirst) ++stats_.retries;
  if (attempt == Attempt::kResume) ++stats_.resumed;
  ++stats_.requests_in_flight;
  stats_.peak_requests_in_flight =
      std::max(stats_.peak_requests_in_flight, stats_.requests_in_flight);
}

void HttpMeter::OnRequestEnd() {
  MutexLock lock(mutex_);
  --stats_.requests_in_flight;
}

void HttpMeter::OnRead(uint64_t bytes) {
  MutexLock lock(mutex_);
  ++stats_.reads;
  stats_.bytes_read += bytes;
}

void HttpMeter::OnThrottled(Clock::Duration time) {
  MutexLock lock(mutex_);
  stats_.throttled_s += std::chrono::duration<double>(time).count();
}

StorageStats HttpMeter::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

/// One request, over all of its attempts.
class HttpServer::Exchange : public TransferReceiver {
 public:
  Exchange(HttpServer& server, std::string path) : server_(server), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Somebody still waits for it.
  virtual bool is_wanted() const = 0;
  /// Ends it for all who wait.
  virtual void GiveUp(const Error& error) = 0;

  /// May throw what Transfers::Start() does; then it is not counted anywhere.
  void Begin(Clock::Time now) {
    answer_.reset();
    dropped_ = 0;
    idle_since_ = now;
    Watch(now);
    TransferRequest request = MakeRequest();
    request.uri = server_.name_ + PercentEncode(path_.substr(server_.name_.size()));
    if (server_.shared_.options.credentials) {
      request.credentials = server_.shared_.options.credentials(path_);
    }
    transfer_ = server_.shared_.transfers.Start(request, *this);
    flight_ = server_.window_.Start(now, expected_bytes());
    server_.shared_.meter.OnRequest(attempt_);
    is_counted_ = true;
  }

  /// When it is to be looked at again, and whether it has come too slowly by then.
  Clock::Time watch_end() const { return watch_begin_ + server_.patience(); }
  bool IsStalled(Clock::Time now) {
    const double seconds = std::chrono::duration<double>(now - watch_begin_).count();
    if (static_cast<double>(watched_bytes_) < kLeastBytesPerSecond * seconds) return true;
    Watch(now);
    return false;
  }
  /// Precondition: IsStalled().
  void CutOff() {
    server_.shared_.transfers.Abort(transfer_);
    const std::string time = Seconds(server_.patience());
    OnEnd({.kind = TransferEnd::Kind::kTimeout,
           .why = answer_ ? "the answer stalled for " + time : "no answer within " + time});
  }

  void Abort() {
    server_.shared_.transfers.Abort(transfer_);
    if (!std::exchange(is_counted_, false)) return;
    server_.window_.OnFailure(flight_);
    server_.shared_.meter.OnRequestEnd();
  }

  void OnHead(const AnswerHead& head) final {
    try {
      server_.has_answered_ = true;
      // What contradicts itself in its head need not end either.
      is_worth_draining_ = head.status >= 300 && head.content_length.value_or(0) <= kMostDropped;
      answer_ = JudgeHead(head);
      const auto* later = std::get_if<TryLater>(&*answer_);
      if (later == nullptr) server_.EndThrottling(Now());
      if (later == nullptr || !later->throttled) server_.last_sign_of_life_ = Now();
      if (std::holds_alternative<GoodAnswer>(*answer_)) OnGoodHead(std::get<GoodAnswer>(*answer_));
    } catch (const std::bad_alloc&) {
      answer_ = UnreadForMemory(path_);
    } catch (Error& error) {
      answer_ = std::move(error);  // a copy would need memory
    }
  }

  bool OnBody(std::span<const uint8_t> bytes) final {
    server_.window_.OnBytes(Now(), flight_, bytes.size());
    watched_bytes_ += bytes.size();
    const auto* good = std::get_if<GoodAnswer>(&*answer_);
    if (good == nullptr || good->length == 0) {
      dropped_ += bytes.size();
      return is_worth_draining_ && dropped_ <= kMostDropped;
    }
    try {
      if (Accept(bytes)) OnProgress();
    } catch (const std::bad_alloc&) {
      answer_ = UnreadForMemory(path_);
    } catch (Error& error) {
      answer_ = std::move(error);
    }
    if (!std::holds_alternative<GoodAnswer>(*answer_)) return false;
    return is_wanted() || bytes_left() <= kMostDropped;
  }

  void OnEnd(const TransferEnd& end) final {
    std::unique_ptr<Exchange> self = TakeSelf();
    const Clock::Time now = Now();
    is_counted_ = false;
    server_.shared_.meter.OnRequestEnd();
    const auto* refusal = answer_ ? std::get_if<Error>(&*answer_) : nullptr;
    const auto* later = answer_ ? std::get_if<TryLater>(&*answer_) : nullptr;
    const bool is_good = answer_ && std::holds_alternative<GoodAnswer>(*answer_);
    const bool is_complete = end.kind == TransferEnd::Kind::kComplete && is_good && has_all();
    if (refusal != nullptr || is_complete) {
      server_.window_.OnSuccess(flight_);
      if (refusal != nullptr) return GiveUp(*refusal);
      return Finish();
    }
    const bool throttled =
        later != nullptr ? later->throttled : end.kind == TransferEnd::Kind::kTimeout;
    if (!throttled) server_.window_.OnFailure(flight_);
    if (throttled) server_.window_.OnThrottled(flight_);
    if (!is_wanted()) return;
    if (end.kind == TransferEnd::Kind::kNoMemory) return GiveUp(UnreadForMemory(path_));
    if (later == nullptr && end.kind == TransferEnd::Kind::kImpossible) {
      return GiveUp(Error({.code = ErrorCode::kIo, .what = end.why, .where = path_}));
    }
    TryAgain(std::move(self), now,
             later != nullptr
                 ? *later
                 : TryLater{.why = end.why.empty() ? "the answer ended too early" : end.why});
  }

 protected:
  virtual TransferRequest MakeRequest() = 0;
  virtual uint64_t expected_bytes() const = 0;
  virtual Answer JudgeHead(const AnswerHead& head) = 0;
  virtual void OnGoodHead(const GoodAnswer& answer) = 0;
  /// Takes bytes of a good answer. True if they need not come again.
  virtual bool Accept(std::span<const uint8_t> bytes) = 0;
  /// Precondition: the answer is a good one.
  virtual bool has_all() const = 0;
  /// Of the answer under way.
  virtual uint64_t bytes_left() const { return 0; }
  virtual void Finish() = 0;

  /// What another attempt is.
  virtual HttpMeter::Attempt attempt_after_failure() const { return HttpMeter::Attempt::kRetry; }

  HttpServer& server() const { return server_; }
  FlightWindow::Flight& flight() { return flight_; }

 private:
  void OnProgress() {
    retries_.OnProgress();
    idle_since_ = Now();
    server_.last_sign_of_life_ = idle_since_;
  }

  void Watch(Clock::Time now) {
    watch_begin_ = now;
    watched_bytes_ = 0;
  }

  // It goes on living as long as what is given.
  std::unique_ptr<Exchange> TakeSelf() {
    const auto self = std::ranges::find_if(
        server_.under_way_, [this](const auto& exchange) { return exchange.get() == this; });
    std::unique_ptr<Exchange> taken = std::move(*self);
    server_.under_way_.erase(self);
    return taken;
  }

  void TryAgain(std::unique_ptr<Exchange> self, Clock::Time now, const TryLater& reason) {
    const std::optional<Clock::Time> next =
        retries_.OnFailure(server_.retry_options(), server_.FailingSince(idle_since_), now,
                           reason.retry_after, server_.random_);
    if (reason.throttled) server_.OnThrottled(now, next ? reason.retry_after : std::nullopt);
    if (next) {
      attempt_ = attempt_after_failure();
      server_.waiting_.emplace(*next, std::move(self));
      return;
    }
    std::string what = reason.why + "; given up after " + std::to_string(retries_.failures()) +
                       (retries_.failures() == 1 ? " attempt" : " attempts") + " in " +
                       Seconds(retries_.since_first(now));
    if (reason.retry_after) what += ", asked to wait for " + Seconds(*reason.retry_after);
    GiveUp(Error({.code = IsServerGone(now) ? ErrorCode::kUnavailable : ErrorCode::kIo,
                  .what = what,
                  .where = path_}));
  }

  // Nothing has been answered for half of the time that was to be spent on it, or since this
  // request failed first.
  bool IsServerGone(Clock::Time now) const {
    const auto* later = answer_ ? std::get_if<TryLater>(&*answer_) : nullptr;
    const bool is_answered = answer_ && !(later != nullptr && later->throttled);
    const Clock::Time silent_since =
        std::max(retries_.first_failure(), now - server_.retry_options().budget / 2);
    return !is_answered && server_.last_sign_of_life_ < silent_since;
  }

  HttpServer& server_;
  std::string path_;  // with the server's name in front
  Retries retries_;
  HttpMeter::Attempt attempt_ = HttpMeter::Attempt::kFirst;
  Transfers::Id transfer_ = 0;
  bool is_counted_ = false;  // in the window and by the meter
  FlightWindow::Flight flight_;
  std::optional<Answer> answer_;    // to the attempt under way
  bool is_worth_draining_ = false;  // of a body that is no use
  uint64_t dropped_ = 0;
  Clock::Time idle_since_;  // the attempt began, or bytes came
  Clock::Time watch_begin_;
  uint64_t watched_bytes_ = 0;  // since then
};

/// Brings bytes for one or more reads.
class HttpServer::RangeExchange final : public Exchange {
 public:
  RangeExchange(HttpServer& server, ReadPlan::Request request)
      : Exchange(server, request.path), request_(std::move(request)) {}

  bool is_wanted() const override {
    return std::ranges::any_of(request_.parts, [this](const ReadPlan::Part& part) {
      return server().Find(part.read) != nullptr;
    });
  }

  void GiveUp(const Error& error) override {
    for (const ReadPlan::Part& part : request_.parts) server().Fail(part.read, error);
  }

 private:
  // A range that goes on beyond all numbers ends with them.
  uint64_t end() const {
    return request_.offset + std::min(request_.length, ~uint64_t{0} - request_.offset);
  }

  TransferRequest MakeRequest() override {
    at_ = request_.offset + received_;
    if (const ObjectVersion* known = server().shared_.versions.Find(path()); !version_ && known) {
      version_ = *known;
    }
    TransferRequest request;
    request.range = {.first = at_, .last = std::max(at_, end() - 1)};
    if (version_ && version_->has_strong_etag()) request.if_match = version_->etag;
    return request;
  }

  uint64_t expected_bytes() const override {
    const double asked = static_cast<double>(request_.length - received_);
    return static_cast<uint64_t>(size_ ? asked : asked * server().fill_);
  }

  Answer JudgeHead(const AnswerHead& head) override {
    if (head.path.ends_with('/')) return FolderError(path());
    // One that ignores Range begins anew.
    if (head.status == 200) return JudgeAnswer(head, request_.offset, request_.length, path());
    return JudgeAnswer(head, at_, request_.length - received_, path());
  }

  void OnGoodHead(const GoodAnswer& answer) override {
    if (version_ && !version_->IsSameAs(answer.version)) throw ChangedError(path());
    version_ = answer.version;
    server().shared_.versions.Set(path(), answer.version);
    at_ = answer.first;
    answer_end_ = answer.first + answer.length;
    size_ = answer.version.size;
    server().window_.Expect(flight(), answer.length);
    const double fill = static_cast<double>(answer.length) / static_cast<double>(end() - at_);
    if (at_ < end()) server().fill_ += (std::min(fill, 1.0) - server().fill_) / 8;
    // Later pieces may have come before: this is about what is behind them.
    for (const ReadPlan::Part& part : request_.parts) {
      HttpRead* const read = server().Find(part.read);
      if (read == nullptr) continue;
      if (!read->SetSize(*size_)) throw ChangedError(path());
      server().plan_.SetSize(part.read, *size_);
    }
  }

  bool Accept(std::span<const uint8_t> bytes) override {
    const uint64_t begin = at_;
    at_ += bytes.size();
    if (at_ > answer_end_) {
      throw Error(
          {.code = ErrorCode::kIo, .what = "the server sends more than it said", .where = path()});
    }
    const uint64_t reached = std::min(at_, end());
    const uint64_t had = request_.offset + received_;
    if (reached <= had) return false;
    received_ = reached - request_.offset;
    for (const ReadPlan::Part& part : request_.parts) {
      Give(part, std::max(begin, had), bytes.subspan(had > begin ? had - begin : 0));
    }
    return true;
  }

  // Of this part alone: others bring the rest of its read.
  void Give(const ReadPlan::Part& part, uint64_t begin, std::span<const uint8_t> bytes) {
    const uint64_t from = std::max(begin, part.offset);
    const uint64_t to = std::min(begin + bytes.size(), part.offset + part.length);
    HttpRead* const read = server().Find(part.read);
    if (from >= to || read == nullptr) return;
    read->Fill(from, bytes.subspan(from - begin, to - from));
    if (read->is_complete()) server().Succeed(part.read);
  }

  bool has_all() const override {
    return request_.offset + received_ >= std::min(end(), std::max(*size_, request_.offset));
  }

  uint64_t bytes_left() const override { return answer_end_ - at_; }

  void Finish() override {
    for (const ReadPlan::Part& part : request_.parts) {
      const HttpRead* const read = server().Find(part.read);
      if (read != nullptr && read->is_complete()) server().Succeed(part.read);
    }
  }

  HttpMeter::Attempt attempt_after_failure() const override {
    return received_ > 0 ? HttpMeter::Attempt::kResume : HttpMeter::Attempt::kRetry;
  }

  ReadPlan::Request request_;
  uint64_t received_ = 0;  // of the request's bytes, from its beginning
  uint64_t at_ = 0;        // the object's byte that comes next
  uint64_t answer_end_ = 0;
  std::optional<ObjectVersion> version_;
  std::optional<uint64_t> size_;
};

/// Brings an object's size, for a read of no bytes.
class HttpServer::HeadExchange final : public Exchange {
 public:
  HeadExchange(HttpServer& server, const HttpRead& read)
      : Exchange(server, read.request().path), read_(read.id()) {}

  bool is_wanted() const override { return server().Find(read_) != nullptr; }
  void GiveUp(const Error& error) override { server().Fail(read_, error); }

 private:
  TransferRequest MakeRequest() override {
    TransferRequest request;
    request.head = true;
    return request;
  }
  uint64_t expected_bytes() const override { return kGuessedHead; }

  Answer JudgeHead(const AnswerHead& head) override {
    if (head.path.ends_with('/')) return FolderError(path());
    return JudgeAnswer(head, 0, 0, path());
  }

  void OnGoodHead(const GoodAnswer& answer) override {
    if (HttpRead* const read = server().Find(read_)) read->SetSize(answer.version.size);
  }

  bool Accept(std::span<const uint8_t>) override { return true; }
  bool has_all() const override { return true; }
  void Finish() override { server().Succeed(read_); }

  Storage::ReadId read_;
};

/// Brings a whole text.
class HttpServer::DocumentExchange final : public Exchange {
 public:
  DocumentExchange(HttpServer& server, std::unique_ptr<HttpPage> page)
      : Exchange(server, page->uri()), page_(std::move(page)) {}

  bool is_wanted() const override { return true; }
  void GiveUp(const Error& error) override { page_->End(error); }

 private:
  TransferRequest MakeRequest() override {
    document_ = {};
    return {};
  }

  uint64_t expected_bytes() const override { return kGuessedDocument; }

  Answer JudgeHead(const AnswerHead& head) override {
    document_.content_type = head.content_type;
    document_.path = head.path;
    if (auto refusal = JudgeDocument(head, path())) {
      return std::visit([](auto& reason) -> Answer { return std::move(reason); }, *refusal);
    }
    GoodAnswer answer;
    answer.length = page_->most_bytes();
    return answer;
  }

  void OnGoodHead(const GoodAnswer&) override {}

  bool Accept(std::span<const uint8_t> bytes) override {
    if (bytes.size() > page_->most_bytes() - document_.body.size()) {
      throw Error({.code = ErrorCode::kLimitExceeded,
                   .what = "the server's text is too long",
                   .where = path(),
                   .wanted = "at most " + std::to_string(page_->most_bytes()) + " bytes"});
    }
    document_.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return false;  // another attempt begins anew
  }

  bool has_all() const override { return true; }
  void Finish() override { page_->End(std::move(document_)); }

  std::unique_ptr<HttpPage> page_;
  HttpDocument document_;
};

HttpServer::HttpServer(std::string name, const Shared& shared)
    : name_(std::move(name)),
      shared_(shared),
      window_({.most_requests = shared.options.most_requests}),
      plan_(kMaxGap),
      // Servers must not be met by retries in step.
      random_(HashToKey(
          std::array{HashBytes(name_), static_cast<uint64_t>(Now().time_since_epoch().count())})) {}

HttpServer::~HttpServer() {
  for (const auto& exchange : under_way_) exchange->Abort();
}

void HttpServer::DropAll() { TakeAll(); }

void HttpServer::StopAll() {
  for (const auto& [id, read] : TakeAll()) read->Fail(StoppedRead(read->request().path));
}

// Needs no memory. A callback may add reads, but not here.
HttpServer::Reads HttpServer::TakeAll() {
  for (const auto& exchange : under_way_) exchange->Abort();
  under_way_.clear();
  waiting_.clear();
  fresh_.clear();
  plan_.Clear();
  deadlines_.clear();
  return std::exchange(reads_, {});
}

// All requests of a dead server have one budget.
Clock::Time HttpServer::FailingSince(Clock::Time attempt) {
  if (!failing_since_ || last_sign_of_life_ >= *failing_since_) failing_since_ = attempt;
  return std::min(attempt, *failing_since_);
}

// With an answer: no longer than it may take to fail.
Clock::Duration HttpServer::patience() const {
  constexpr Clock::Duration kLeast = std::chrono::milliseconds(100);
  return std::min(shared_.options.stall_timeout, std::max(kLeast, retry_options().budget));
}

RetryOptions HttpServer::retry_options() const {
  RetryOptions options = shared_.options.retry;
  if (!has_answered_) options.budget = std::min(options.budget, kFirstContactBudget);
  return options;
}

void HttpServer::Add(std::unique_ptr<HttpRead> read) {
  const HttpRead& added = *read;
  reads_.emplace(added.id(), std::move(read));
  deadlines_.emplace(added.deadline(), added.id());
  if (added.request().length == 0) {
    fresh_.push_back(std::make_unique<HeadExchange>(*this, added));
  } else {
    plan_.Add(added.id(), added.request());
  }
}

bool HttpServer::Cancel(Storage::ReadId id) {
  if (Find(id) == nullptr) return false;
  Fail(id, StoppedRead(Find(id)->request().path));
  DropUnwanted();
  return true;
}

void HttpServer::Get(std::unique_ptr<HttpPage> page) {
  fresh_.push_back(std::make_unique<DocumentExchange>(*this, std::move(page)));
}

void HttpServer::Advance(Clock::Time now) {
  FailLate(now);
  CutOffStalled(now);
  while (window_.HasRoom(now)) {
    std::unique_ptr<Exchange> next = NextDue(now);
    if (!next) return;
    if (next->is_wanted()) Begin(std::move(next), now);
  }
}

// What has failed before goes first.
std::unique_ptr<HttpServer::Exchange> HttpServer::NextDue(Clock::Time now) {
  std::unique_ptr<Exchange> next;
  if (!waiting_.empty() && waiting_.begin()->first <= now) {
    next = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  } else if (!fresh_.empty()) {
    next = std::move(fresh_.front());
    fresh_.pop_front();
  } else if (std::optional<ReadPlan::Request> request = plan_.Next(MostBytesOfRequest())) {
    next = std::make_unique<RangeExchange>(*this, *std::move(request));
  }
  return next;
}

// Some of them, that the link has others while one ends and the next begins; not more, since
// what is read first comes the later the more share the link with it.
uint64_t HttpServer::MostBytesOfRequest() const {
  return std::clamp(window_.most_bytes_now() / kRequestsAtOnce, kLeastRequest, kMostRequest);
}

void HttpServer::Begin(std::unique_ptr<Exchange> exchange, Clock::Time now) {
  Exchange& begun = *under_way_.emplace_back(std::move(exchange));
  try {
    begun.Begin(now);
  } catch (const Error& error) {
    exchange = std::move(under_way_.back());
    under_way_.pop_back();
    exchange->GiveUp(error);
  }
}

void HttpServer::FailLate(Clock::Time now) {
  bool any = false;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const HttpRead& read = *Find(deadlines_.begin()->second);
    Fail(read.id(), Error({.code = ErrorCode::kIo,
                           .what = "the read took longer than " + Seconds(shared_.options.deadline),
                           .where = read.request().path}));
    any = true;
  }
  if (any) DropUnwanted();
}

void HttpServer::CutOffStalled(Clock::Time now) {
  std::vector<Exchange*> stalled;
  for (const auto& exchange : under_way_) {
    if (now >= exchange->watch_end() && exchange->IsStalled(now)) stalled.push_back(exchange.get());
  }
  for (Exchange* exchange : stalled) exchange->CutOff();
}

// Nobody waits for what these bring.
void HttpServer::DropUnwanted() {
  std::erase_if(under_way_, [](const std::unique_ptr<Exchange>& exchange) {
    if (exchange->is_wanted()) return false;
    exchange->Abort();
    return true;
  });
}

Clock::Time HttpServer::next_event() const {
  Clock::Time next = Clock::Time::max();
  if (!deadlines_.empty()) next = deadlines_.begin()->first;
  if (!waiting_.empty()) {
    next = std::min(next, std::max(waiting_.begin()->first, window_.paused_until()));
  }
  for (const auto& exchange : under_way_) next = std::min(next, exchange->watch_end());
  if (!fresh_.empty() || !plan_.empty()) {
    // Without a pause it is the end of another request that makes room.
    if (window_.paused_until() > Now()) next = std::min(next, window_.paused_until());
  }
  return next;
}

void HttpServer::OnThrottled(Clock::Time now, std::optional<Clock::Duration> retry_after) {
  if (!throttled_since_) throttled_since_ = now;
  if (retry_after) window_.PauseUntil(now + *retry_after);
}

void HttpServer::EndThrottling(Clock::Time now) {
  if (!throttled_since_) return;
  shared_.meter.OnThrottled(now - *throttled_since_);
  throttled_since_.reset();
}

HttpRead* HttpServer::Find(Storage::ReadId id) const {
  const auto found = reads_.find(id);
  return found == reads_.end() ? nullptr : found->second.get();
}

void HttpServer::Succeed(Storage::ReadId id) {
  const std::unique_ptr<HttpRead> read = Take(id);
  read->Succeed();
}

void HttpServer::Fail(Storage::ReadId id, Error error) {
  if (Find(id) == nullptr) return;
  const std::unique_ptr<HttpRead> read = Take(id);
  plan_.Remove(id);
  read->Fail(std::move(error));
}

std::unique_ptr<HttpRead> HttpServer::Take(Storage::ReadId id) {
  const auto found = reads_.find(id);
  std::unique_ptr<HttpRead> read = std::move(found->second);
  reads_.erase(found);
  const auto [begin, end] = deadlines_.equal_range(read->deadline());
  const auto deadline =
      std::find_if(begin, end, [id](const auto& entry) { return entry.second == id; });
  if (deadline != end) deadlines_.erase(deadline);
  return read;
}

}  // namespace echopipe::internal
