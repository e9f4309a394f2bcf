#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <echopipe/base/file_descriptor.h>
#include <echopipe/base/mutex.h>
#include <echopipe/io/storage.h>
#include <echopipe/io/storage_error.h>

namespace echopipe {
namespace {

namespace fs = std::filesystem;
using internal::StoppedRead;
using internal::SystemError;
using internal::UnreadForMemory;

constexpr int kMaxThreads = 1024;

Error IoError(const std::string& path, std::string what) {
  return Error({.code = ErrorCode::kIo, .what = std::move(what), .where = path});
}

// Of an object: behind a file instead of a folder there is nothing either.
Error ErrnoError(const std::string& path) {
  const int reason = errno == ENOTDIR ? ENOENT : errno;
  return SystemError(path, std::error_code(reason, std::generic_category()));
}

// The system would take such a name for the part before the zero byte.
bool HoldsZeroByte(const std::string& path) { return path.find('\0') != std::string::npos; }

Error ZeroByteError(const std::string& path) {
  return IoError(path.substr(0, path.find('\0')), "the name goes on behind a zero byte");
}

Result<uint64_t> FileSize(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return IoError(path, "it is a folder");
  if (!S_ISREG(status.st_mode)) return IoError(path, "it is not a regular file");
  return static_cast<uint64_t>(status.st_size);
}

// The bytes read into `to`: fewer than its size if the file ends earlier; nothing on an error.
std::optional<size_t> ReadAt(int descriptor, uint64_t offset, Buffer& to) {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t count =
        pread(descriptor, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

std::shared_ptr<const Buffer> FirstBytes(const Buffer& buffer, size_t count, BufferPool& pool) {
  std::shared_ptr<Buffer> start = pool.Allocate(count);
  std::copy_n(buffer.data(), count, start->data());
  return start;
}

Result<ReadResult> ReadRange(const ReadRequest& request, BufferPool& pool) {
  const std::string& path = request.path;
  if (HoldsZeroByte(path)) return ZeroByteError(path);
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const FileDescriptor file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status = {};
  if (!file.is_open() || fstat(file.get(), &status) != 0) return ErrnoError(path);
  const Result<uint64_t> size = FileSize(path, status);
  if (!size.ok()) return size.error();

  const uint64_t offset = std::min(request.offset, size.value());
  const std::shared_ptr<Buffer> buffer =
      pool.Allocate(std::min(request.length, size.value() - offset));
  const std::optional<size_t> count = ReadAt(file.get(), offset, *buffer);
  if (!count) return ErrnoError(path);
  // Fewer bytes come from a file that shrank meanwhile.
  return ReadResult{.data = *count == buffer->size() ? buffer : FirstBytes(*buffer, *count, pool),
                    .object_size = size.value()};
}

FolderEntry::Kind KindOf(const fs::directory_entry& entry) {
  std::error_code ignored;
  if (entry.is_regular_file(ignored)) return FolderEntry::Kind::kFile;
  if (entry.is_directory(ignored)) return FolderEntry::Kind::kFolder;
  return FolderEntry::Kind::kOther;
}

/// Reads wait in one queue, oldest first, for threads that do nothing else; no state is kept for a
/// file between reads.
class LocalStorage final : public Storage {
 public:
  explicit LocalStorage(int threads);
  ~LocalStorage() override { End(); }

  Result<std::vector<FolderEntry>> List(const std::string& folder) override;
  Result<uint64_t> Size(const std::string& path) override;
  std::optional<int64_t> ModifiedAt(const std::string& path) override;
  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override;
  void Cancel(ReadId id) override;
  StorageStats Stats() const override;

 private:
  struct Task {
    ReadRequest request;
    BufferPool* pool = nullptr;
    Callback callback;
    bool stopped = false;
  };

  void Run();
  void End();
  std::optional<Task> TakeNext() ECHOPIPE_REQUIRES(mutex_);
  void Finish(Task task) noexcept;
  void Count(const Result<ReadResult>& result);

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<ReadId, Task> queue_ ECHOPIPE_GUARDED_BY(mutex_);
  std::map<ReadId, Task> stopped_
      ECHOPIPE_GUARDED_BY(mutex_);  // cancelled, their callbacks still to run
  ReadId next_id_ ECHOPIPE_GUARDED_BY(mutex_) = 1;
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  StorageStats stats_ ECHOPIPE_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

LocalStorage::LocalStorage(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  } catch (const std::system_error& error) {
    End();
    throw Error({.code = ErrorCode::kResourceExhausted,
                 .what = "cannot start the reading threads: " + error.code().message(),
                 .where = "MakeLocalStorage"});
  }
}

Result<std::vector<FolderEntry>> LocalStorage::List(const std::string& folder) {
  if (HoldsZeroByte(folder)) return ZeroByteError(folder);
  std::vector<FolderEntry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back({.name = entry->path().filename().native(), .kind = KindOf(*entry)});
  }
  if (error) return SystemError(folder, error);
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

Result<uint64_t> LocalStorage::Size(const std::string& path) {
  if (HoldsZeroByte(path)) return ZeroByteError(path);
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return ErrnoError(path);
  return FileSize(path, status);
}

std::optional<int64_t> LocalStorage::ModifiedAt(const std::string& path) {
  struct stat status = {};
  if (HoldsZeroByte(path) || stat(path.c_str(), &status) != 0) return std::nullopt;
  // A time that no 64 bits hold comes out as another one, as good for being compared.
  return static_cast<int64_t>(static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                              static_cast<uint64_t>(status.st_mtim.tv_nsec));
}

Storage::ReadId LocalStorage::Read(ReadRequest request, BufferPool& pool, Callback callback) {
  ReadId id = 0;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
    queue_.emplace(
        id, Task{.request = std::move(request), .pool = &pool, .callback = std::move(callback)});
  }
  changed_.NotifyOne();
  return id;
}

void LocalStorage::Cancel(ReadId id) {
  {
    MutexLock lock(mutex_);
    auto task = queue_.extract(id);
    if (task.empty()) return;
    task.mapped().stopped = true;
    stopped_.insert(std::move(task));
  }
  changed_.NotifyOne();
}

StorageStats LocalStorage::Stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

// A callback that runs at the end may still start reads; the thread that ran it stops these too.
void LocalStorage::Run() {
  mutex_.lock();
  while (true) {
    while (queue_.empty() && stopped_.empty() && !ended_) changed_.Wait(mutex_);
    std::optional<Task> task = TakeNext();
    if (!task) break;
    mutex_.unlock();
    Finish(std::move(*task));
    mutex_.lock();
  }
  mutex_.unlock();
}

void LocalStorage::End() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  threads_.clear();
}

std::optional<LocalStorage::Task> LocalStorage::TakeNext() {
  std::map<ReadId, Task>& from = stopped_.empty() ? queue_ : stopped_;
  if (from.empty()) return std::nullopt;
  std::optional<Task> task = std::move(from.begin()->second);
  from.erase(from.begin());
  task->stopped = task->stopped || ended_;
  return task;
}

// Nothing here may throw: it runs in a thread of the storage's own.
void LocalStorage::Finish(Task task) noexcept {
  Result<ReadResult> result = [&]() -> Result<ReadResult> {
    if (task.stopped) return StoppedRead(task.request.path);
    try {
      return ReadRange(task.request, *task.pool);
    } catch (const std::bad_alloc&) {
      return UnreadForMemory(task.request.path);
    }
  }();
  Count(result);
  task.callback(std::move(result));
}

void LocalStorage::Count(const Result<ReadResult>& result) {
  MutexLock lock(mutex_);
  ++stats_.reads;
  if (result.ok()) stats_.bytes_read += result.value().data->size();
}

}  // namespace

std::shared_ptr<Storage> MakeLocalStorage(int threads) {
  if (threads < 1 || threads > kMaxThreads)
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "the number of threads is out of range",
                 .where = "MakeLocalStorage",
                 .got = std::to_string(threads),
                 .wanted = "1 to " + std::to_string(kMaxThreads)});
  return std::make_shared<LocalStorage>(threads);
}

}  // namespace echopipe
