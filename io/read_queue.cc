#include <algorithm>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include <echopipe/base/mutex.h>
#include <echopipe/io/read_queue.h>

namespace echopipe::internal {

class ReadQueue::Shared {
 public:
  explicit Shared(std::function<void()> wake) : wake_(std::move(wake)) {}

  // What is needed when it arrives is allocated here, where it may fail.
  uint64_t Begin(uint64_t bytes) {
    MutexLock lock(mutex_);
    under_way_[next_serial_].arrival.push_back({.serial = next_serial_, .result = ReadResult()});
    ++callbacks_due_;
    ++counters_.reads_in_flight;
    counters_.bytes_in_flight += bytes;
    counters_.peak_reads_in_flight =
        std::max(counters_.peak_reads_in_flight, counters_.reads_in_flight);
    counters_.peak_bytes_in_flight =
        std::max(counters_.peak_bytes_in_flight, counters_.bytes_in_flight);
    return next_serial_++;
  }

  // The read could not be started.
  void TakeBack(uint64_t serial, uint64_t bytes) {
    MutexLock lock(mutex_);
    under_way_.erase(serial);
    --callbacks_due_;
    --counters_.reads_in_flight;
    counters_.bytes_in_flight -= bytes;
  }

  // The read may have arrived already.
  void SetId(uint64_t serial, Storage::ReadId id) {
    MutexLock lock(mutex_);
    const auto read = under_way_.find(serial);
    if (read != under_way_.end()) read->second.id = id;
  }

  void Arrive(uint64_t serial, uint64_t asked, Result<ReadResult> result) noexcept {
    if (Store(serial, asked, std::move(result)) && wake_) wake_();
    MutexLock lock(mutex_);
    if (--callbacks_due_ == 0) idle_.NotifyAll();
  }

  std::list<Arrival> TakeArrivals() {
    MutexLock lock(mutex_);
    woken_ = false;
    return std::exchange(arrivals_, {});
  }

  std::optional<Storage::ReadId> IdOf(uint64_t serial) const {
    MutexLock lock(mutex_);
    const auto read = under_way_.find(serial);
    return read == under_way_.end() ? std::nullopt : read->second.id;
  }

  // No wake follows that has not begun, and nothing more arrives.
  void End(Storage& storage) {
    std::unordered_map<uint64_t, UnderWay> under_way;
    {
      MutexLock lock(mutex_);
      under_way.swap(under_way_);
    }
    for (const auto& [serial, read] : under_way) {
      if (read.id) storage.Cancel(*read.id);
    }
  }

  void WaitUntilIdle() {
    MutexLock lock(mutex_);
    while (callbacks_due_ > 0) idle_.Wait(mutex_);
    wake_ = nullptr;  // the last callback may yet have to let go of this object
  }

  void Release(uint64_t bytes) {
    MutexLock lock(mutex_);
    counters_.bytes_in_flight -= bytes;
  }

  SourceCounters counters() const {
    MutexLock lock(mutex_);
    return counters_;
  }

 private:
  struct UnderWay {
    std::optional<Storage::ReadId> id = {};
    std::list<Arrival> arrival = {};  // one, without its result
  };

  // True if the consumer is to be woken.
  bool Store(uint64_t serial, uint64_t asked, Result<ReadResult> result) {
    MutexLock lock(mutex_);
    --counters_.reads_in_flight;
    counters_.bytes_in_flight -=
        asked - std::min<uint64_t>(asked, result.ok() ? result.value().data->size() : 0);
    const auto read = under_way_.find(serial);
    if (read == under_way_.end()) return false;  // after the end
    read->second.arrival.front().result = std::move(result);
    arrivals_.splice(arrivals_.end(), read->second.arrival);
    under_way_.erase(read);
    return !std::exchange(woken_, true);
  }

  std::function<void()> wake_;  // set until the end
  mutable Mutex mutex_;
  CondVar idle_;
  SourceCounters counters_ ECHOPIPE_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, UnderWay> under_way_ ECHOPIPE_GUARDED_BY(mutex_);
  std::list<Arrival> arrivals_ ECHOPIPE_GUARDED_BY(mutex_);
  uint64_t next_serial_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t callbacks_due_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  bool woken_ ECHOPIPE_GUARDED_BY(mutex_) = false;
};

ReadQueue::ReadQueue(std::shared_ptr<Storage> storage, BufferPool& pool, const SourceLimits& limits,
                     std::function<void()> wake)
    : storage_(std::move(storage)),
      pool_(pool),
      limits_(limits),
      shared_(std::make_shared<Shared>(std::move(wake))) {}

ReadQueue::~ReadQueue() {
  shared_->End(*storage_);
  shared_->WaitUntilIdle();
}

bool ReadQueue::HasReadRoom() const {
  return shared_->counters().reads_in_flight < static_cast<uint64_t>(limits_.reads_in_flight);
}

bool ReadQueue::HasRoom(uint64_t bytes) const {
  const uint64_t held = shared_->counters().bytes_in_flight;
  return HasReadRoom() && held <= limits_.bytes_in_flight &&
         bytes <= limits_.bytes_in_flight - held;
}

uint64_t ReadQueue::Start(ReadRequest request) {
  const uint64_t asked = request.length;
  const uint64_t serial = shared_->Begin(asked);
  try {
    shared_->SetId(serial,
                   storage_->Read(std::move(request), pool_,
                                  [shared = shared_, serial, asked](Result<ReadResult> result) {
                                    shared->Arrive(serial, asked, std::move(result));
                                  }));
  } catch (...) {
    shared_->TakeBack(serial, asked);
    throw;
  }
  return serial;
}

void ReadQueue::Cancel(uint64_t serial) {
  if (const std::optional<Storage::ReadId> id = shared_->IdOf(serial)) storage_->Cancel(*id);
}

std::list<ReadQueue::Arrival> ReadQueue::TakeArrivals() { return shared_->TakeArrivals(); }
void ReadQueue::Release(uint64_t bytes) { shared_->Release(bytes); }
SourceCounters ReadQueue::counters() const { return shared_->counters(); }

}  // namespace echopipe::internal
