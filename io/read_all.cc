#include <cstddef>
#include <new>
#include <utility>

#include <echopipe/base/mutex.h>
#include <echopipe/io/read_all.h>

namespace echopipe::internal {
namespace {

/// Counts what is under way.
class UnderWay {
 public:
  void Begin() {
    MutexLock lock(mutex_);
    ++count_;
  }
  // Whoever waits may be gone once the lock is free.
  void End() {
    MutexLock lock(mutex_);
    if (--count_ == 0) none_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (count_ > 0) none_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar none_;
  size_t count_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::vector<Result<ReadResult>> ReadAll(std::vector<ReadRequest> requests, Storage& storage,
                                        BufferPool& pool) {
  std::vector<Result<ReadResult>> results(requests.size(), Result<ReadResult>(OutOfMemory()));
  UnderWay reads;
  for (size_t i = 0; i < requests.size(); ++i) {
    reads.Begin();
    try {
      storage.Read(std::move(requests[i]), pool, [&reads, &results, i](Result<ReadResult> result) {
        results[i] = std::move(result);
        reads.End();
      });
    } catch (const std::bad_alloc&) {
      reads.End();  // its result is set already
    }
  }
  reads.Wait();
  return results;
}

}  // namespace echopipe::internal
