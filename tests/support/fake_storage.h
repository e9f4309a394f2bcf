#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <echopipe/base/mutex.h>
#include <echopipe/io/storage.h>

namespace echopipe::testing {

/// Objects in memory, read at once or when the test says so. Folders follow from the paths.
///
/// What a read sees is decided when it completes.
/// End      Reads that still wait end with kStopped.
/// Threads  Every method may be called from any thread. Callbacks run on the storage's own thread;
///          those of Complete, CompleteNext, CompleteAll and Fail in the caller's, before they
///          return.
class FakeStorage final : public Storage {
 public:
  enum class Mode {
    kImmediate,  ///< reads complete at once
    kGated,      ///< reads wait for Complete, CompleteNext, CompleteAll or Fail
  };
  struct PendingRead {
    ReadId id = 0;
    ReadRequest request;
  };

  explicit FakeStorage(Mode mode = Mode::kImmediate);
  ~FakeStorage() override;

  /// Makes or replaces an object.
  void Put(const std::string& path, std::string_view bytes);
  void Remove(const std::string& path);
  /// When the object was changed; a new one under its path has no known time.
  void SetTime(const std::string& path, int64_t modified_ns);
  /// From now on reads of this path complete at once, in either mode.
  void OpenGateFor(const std::string& path);
  /// From now on List, Size and Read of this path give the error.
  void FailAlways(const std::string& path, const Error& error);
  /// From now on reads find the object's old size, but no bytes from `size` on: as if it shrank
  /// during each read.
  void ShrinkInReads(const std::string& path, uint64_t size);

  Result<std::vector<FolderEntry>> List(const std::string& folder) override;
  Result<uint64_t> Size(const std::string& path) override;
  std::optional<int64_t> ModifiedAt(const std::string& path) override;
  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override;
  void Cancel(ReadId id) override;
  StorageStats Stats() const override;

  /// Every read started so far, in order.
  std::vector<ReadRequest> requests() const;

  /// The reads that wait for the test, oldest first.
  std::vector<PendingRead> pending() const;
  /// Blocks until at least `count` reads wait for the test.
  void WaitForPending(size_t count);
  /// These complete the oldest read, this one, or all that wait when it is called; they tell
  /// whether there was one, or how many.
  bool CompleteNext();
  bool Complete(ReadId id);
  size_t CompleteAll();
  /// Ends a waiting read with an error. False if it does not wait.
  bool Fail(ReadId id, const Error& error);

 private:
  struct Task {
    ReadId id = 0;
    ReadRequest request;
    BufferPool* pool = nullptr;
    Callback callback;
    std::optional<Error> error;
  };
  using Tasks = std::deque<Task>;

  void Run();
  void Finish(Task task);
  std::optional<Task> TakeWaiting(ReadId id);
  bool IsFolder(const std::string& path) const ECHOPIPE_REQUIRES(mutex_);
  /// The object's bytes, or why there are none.
  Result<std::string_view> Find(const std::string& path) const ECHOPIPE_REQUIRES(mutex_);
  Result<ReadResult> Load(const Task& task) const ECHOPIPE_REQUIRES(mutex_);

  const Mode mode_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> objects_ ECHOPIPE_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> times_ ECHOPIPE_GUARDED_BY(mutex_);
  std::set<std::string> ungated_ ECHOPIPE_GUARDED_BY(mutex_);
  std::map<std::string, Error> failures_ ECHOPIPE_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> shrunk_sizes_ ECHOPIPE_GUARDED_BY(mutex_);
  std::vector<ReadRequest> requests_ ECHOPIPE_GUARDED_BY(mutex_);
  Tasks waiting_ ECHOPIPE_GUARDED_BY(mutex_);  // for the test
  Tasks ready_ ECHOPIPE_GUARDED_BY(mutex_);    // for the thread
  StorageStats stats_ ECHOPIPE_GUARDED_BY(mutex_);
  ReadId next_id_ ECHOPIPE_GUARDED_BY(mutex_) = 1;
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace echopipe::testing
