#include <algorithm>
#include <utility>

#include <echopipe/pipeline/graph/outlet.h>

namespace echopipe::internal {
namespace {

// How long a wait may see nothing before the waiting thread helps, and again once that was needed.
constexpr std::chrono::milliseconds kFirstHelp{100};
constexpr std::chrono::milliseconds kFurtherHelp{1};

uint64_t CountFresh(const Batch& batch) {
  uint64_t fresh = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Identity identity = batch.provenance(i).identity;
    fresh += std::ranges::all_of(identity.uses(), [](uint32_t use) { return use == 0; });
  }
  return fresh;
}

}  // namespace

Outlet::Outlet(uint64_t window, uint64_t steps_before, const Clock& clock)
    : steps_before_(steps_before), clock_(clock), ring_(window) {}

void Outlet::Receive(Message message) {
  ring_.Put(std::move(message));
  MutexLock lock(mutex_);
  while (ring_.Front() != nullptr && !ended_) {
    Message next = ring_.Pop();
    if (next.kind == Message::Kind::kEnd) {
      ended_ = true;
      if (next.error && !error_) error_ = *next.error;
    } else {
      ready_.push_back(std::move(next));
    }
  }
  arrived_.NotifyAll();
}

void Outlet::Fail(const Error& error) {
  MutexLock lock(mutex_);
  if (!error_) error_ = error;
  ended_ = true;
  ready_.clear();
  arrived_.NotifyAll();
}

void Outlet::SetStalled(int change) {
  waiting_ += change;
  stalls_.Set(waiting_ > 0, clock_.Now());
}

std::optional<Batch> Outlet::Take(const std::function<bool()>& help,
                                  const std::function<void()>& begins) {
  std::chrono::milliseconds patience = kFirstHelp;
  MutexLock lock(mutex_);
  NoteCall();
  SetStalled(+1);
  if (begins && ready_.empty() && !ended_) {
    mutex_.unlock();
    begins();
    mutex_.lock();
  }
  ++resting_;
  while (ready_.empty() && !ended_) {
    const auto help_at = std::chrono::steady_clock::now() + patience;
    arrived_.WaitFor(mutex_, patience);
    if (!ready_.empty() || ended_ || std::chrono::steady_clock::now() < help_at) continue;
    mutex_.unlock();
    patience = help() ? kFurtherHelp : kFirstHelp;
    mutex_.lock();
  }
  --resting_;
  SetStalled(-1);
  if (!ready_.empty()) {
    Message message = std::move(ready_.front());
    ready_.pop_front();
    return Deliver(message);
  }
  if (error_) throw *error_;
  return std::nullopt;
}

Batch Outlet::Deliver(const Message& message) {
  Item& item = *message.item;
  const std::span<const uint32_t> uses = item.identity.uses();
  // The item is this delivery's own. A node may not have let go of it yet: so that it does not
  // share what nobody will get again.
  Batch batch(std::move(item.batch), {.step = steps_before_ + totals_.batches,
                                      .end_of_epoch = item.ends_epoch,
                                      .uses = std::vector<uint32_t>(uses.begin(), uses.end())});
  totals_.batches += 1;
  totals_.examples += batch.size();
  totals_.fresh += CountFresh(batch);
  if (!first_batch_) {
    first_batch_ = TotalsNow();
    first_stall_ = stalls_.Total(first_batch_->time);
  }
  return batch;
}

Outlet::Totals Outlet::TotalsNow() const {
  Totals totals = totals_;
  totals.time = clock_.Now();
  totals.stall_s = Seconds(stalls_.Total(totals.time));
  return totals;
}

void Outlet::NoteCall() {
  if (!first_batch_) return;
  const Clock::Time now = clock_.Now();
  called_.batches = totals_.batches;
  called_.busy = now - first_batch_->time - (stalls_.Total(now) - first_stall_);
}

Outlet::Consumer Outlet::consumer() const {
  MutexLock lock(mutex_);
  Consumer consumer{.figures = called_, .waits = waiting_ > 0 && ready_.empty() && !ended_};
  if (first_batch_) consumer.figures.waited = stalls_.Total(clock_.Now()) - first_stall_;
  return consumer;
}

uint64_t Outlet::steps() const {
  MutexLock lock(mutex_);
  return steps_before_ + totals_.batches;
}

Outlet::Totals Outlet::totals() const {
  MutexLock lock(mutex_);
  return TotalsNow();
}

bool Outlet::HasWaitingCaller() const {
  MutexLock lock(mutex_);
  return resting_ > 0 && ready_.empty() && !ended_;
}

std::optional<Outlet::Totals> Outlet::first_batch() const {
  MutexLock lock(mutex_);
  return first_batch_;
}

}  // namespace echopipe::internal
