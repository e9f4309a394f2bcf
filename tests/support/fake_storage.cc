#include <algorithm>
#include <utility>

#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::testing {
namespace {

Error Missing(const std::string& path) {
  return Error({.code = ErrorCode::kNotFound, .what = "no such file or folder", .where = path});
}

Error Stopped(const std::string& path) {
  return Error({.code = ErrorCode::kStopped, .what = "the read was cancelled", .where = path});
}

std::string AsPrefix(std::string folder) {
  if (!folder.empty() && folder.back() != '/') folder += '/';
  return folder;
}

}  // namespace

FakeStorage::FakeStorage(Mode mode) : mode_(mode), thread_([this] { Run(); }) {}

FakeStorage::~FakeStorage() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void FakeStorage::Put(const std::string& path, std::string_view bytes) {
  MutexLock lock(mutex_);
  objects_.insert_or_assign(path, std::string(bytes));
  times_.erase(path);
}

void FakeStorage::SetTime(const std::string& path, int64_t modified_ns) {
  MutexLock lock(mutex_);
  times_.insert_or_assign(path, modified_ns);
}

void FakeStorage::Remove(const std::string& path) {
  MutexLock lock(mutex_);
  objects_.erase(path);
}

void FakeStorage::FailAlways(const std::string& path, const Error& error) {
  MutexLock lock(mutex_);
  failures_.insert_or_assign(path, error);
}

void FakeStorage::ShrinkInReads(const std::string& path, uint64_t size) {
  MutexLock lock(mutex_);
  shrunk_sizes_.insert_or_assign(path, size);
}

Result<std::vector<FolderEntry>> FakeStorage::List(const std::string& folder) {
  MutexLock lock(mutex_);
  if (const auto failure = failures_.find(folder); failure != failures_.end())
    return failure->second;
  if (objects_.contains(folder))
    return Error({.code = ErrorCode::kIo, .what = "not a folder", .where = folder});
  const std::string prefix = AsPrefix(folder);
  std::map<std::string, FolderEntry::Kind> kinds;
  for (auto object = objects_.lower_bound(prefix);
       object != objects_.end() && object->first.starts_with(prefix); ++object) {
    const std::string rest = object->first.substr(prefix.size());
    const size_t slash = rest.find('/');
    kinds.emplace(rest.substr(0, slash), slash == std::string::npos ? FolderEntry::Kind::kFile
                                                                    : FolderEntry::Kind::kFolder);
  }
  if (kinds.empty()) return Missing(folder);
  std::vector<FolderEntry> entries;
  for (const auto& [name, kind] : kinds) entries.push_back({.name = name, .kind = kind});
  return entries;
}

void FakeStorage::OpenGateFor(const std::string& path) {
  MutexLock lock(mutex_);
  ungated_.insert(path);
}

Result<uint64_t> FakeStorage::Size(const std::string& path) {
  MutexLock lock(mutex_);
  const Result<std::string_view> object = Find(path);
  if (!object.ok()) return object.error();
  return uint64_t{object.value().size()};
}

std::optional<int64_t> FakeStorage::ModifiedAt(const std::string& path) {
  MutexLock lock(mutex_);
  const auto time = times_.find(path);
  return time == times_.end() ? std::nullopt : std::optional(time->second);
}

Storage::ReadId FakeStorage::Read(ReadRequest request, BufferPool& pool, Callback callback) {
  ReadId id = 0;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
    requests_.push_back(request);
    const bool waits = mode_ == Mode::kGated && !ungated_.contains(request.path);
    Tasks& tasks = waits ? waiting_ : ready_;
    tasks.push_back({.id = id,
                     .request = std::move(request),
                     .pool = &pool,
                     .callback = std::move(callback),
                     .error = std::nullopt});
  }
  changed_.NotifyAll();
  return id;
}

void FakeStorage::Cancel(ReadId id) {
  std::optional<Task> task = TakeWaiting(id);
  if (!task) return;
  task->error = Stopped(task->request.path);
  {
    MutexLock lock(mutex_);
    ready_.push_back(std::move(*task));
  }
  changed_.NotifyAll();
}

StorageStats FakeStorage::Stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

std::vector<ReadRequest> FakeStorage::requests() const {
  MutexLock lock(mutex_);
  return requests_;
}

std::vector<FakeStorage::PendingRead> FakeStorage::pending() const {
  MutexLock lock(mutex_);
  std::vector<PendingRead> reads;
  for (const Task& task : waiting_) reads.push_back({.id = task.id, .request = task.request});
  return reads;
}

void FakeStorage::WaitForPending(size_t count) {
  MutexLock lock(mutex_);
  while (waiting_.size() < count) changed_.Wait(mutex_);
}

bool FakeStorage::CompleteNext() {
  const std::vector<PendingRead> reads = pending();
  return !reads.empty() && Complete(reads.front().id);
}

bool FakeStorage::Complete(ReadId id) {
  std::optional<Task> task = TakeWaiting(id);
  if (!task) return false;
  Finish(std::move(*task));
  return true;
}

size_t FakeStorage::CompleteAll() {
  size_t completed = 0;
  for (const PendingRead& read : pending()) completed += Complete(read.id) ? 1 : 0;
  return completed;
}

bool FakeStorage::Fail(ReadId id, const Error& error) {
  std::optional<Task> task = TakeWaiting(id);
  if (!task) return false;
  task->error = error;
  Finish(std::move(*task));
  return true;
}

// Callbacks may start further reads, also while the storage ends; these are stopped too.
void FakeStorage::Run() {
  mutex_.lock();
  while (true) {
    while (ready_.empty() && !ended_) changed_.Wait(mutex_);
    Tasks& tasks = ready_.empty() ? waiting_ : ready_;
    if (tasks.empty()) break;
    Task task = std::move(tasks.front());
    tasks.pop_front();
    if (ended_) task.error = Stopped(task.request.path);
    mutex_.unlock();
    Finish(std::move(task));
    mutex_.lock();
  }
  mutex_.unlock();
}

void FakeStorage::Finish(Task task) {
  const auto outcome = [&]() -> Result<ReadResult> {
    MutexLock lock(mutex_);
    Result<ReadResult> loaded = task.error ? Result<ReadResult>(*task.error) : Load(task);
    ++stats_.reads;
    if (loaded.ok()) stats_.bytes_read += loaded.value().data->size();
    return loaded;
  };
  task.callback(outcome());
}

std::optional<FakeStorage::Task> FakeStorage::TakeWaiting(ReadId id) {
  MutexLock lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [id](const Task& task) { return task.id == id; });
  if (found == waiting_.end()) return std::nullopt;
  Task task = std::move(*found);
  waiting_.erase(found);
  return task;
}

bool FakeStorage::IsFolder(const std::string& path) const {
  const std::string prefix = AsPrefix(path);
  const auto object = objects_.lower_bound(prefix);
  return object != objects_.end() && object->first.starts_with(prefix);
}

Result<std::string_view> FakeStorage::Find(const std::string& path) const {
  if (const auto failure = failures_.find(path); failure != failures_.end()) return failure->second;
  if (const auto object = objects_.find(path); object != objects_.end())
    return std::string_view(object->second);
  if (IsFolder(path))
    return Error({.code = ErrorCode::kIo, .what = "it is a folder", .where = path});
  return Missing(path);
}

Result<ReadResult> FakeStorage::Load(const Task& task) const {
  const Result<std::string_view> object = Find(task.request.path);
  if (!object.ok()) return object.error();
  std::string_view bytes = object.value();
  if (const auto size = shrunk_sizes_.find(task.request.path); size != shrunk_sizes_.end())
    bytes = bytes.substr(0, size->second);
  bytes = bytes.substr(std::min<uint64_t>(task.request.offset, bytes.size()), task.request.length);
  const std::shared_ptr<Buffer> buffer = task.pool->Allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer->data());
  return ReadResult{.data = buffer, .object_size = object.value().size()};
}

}  // namespace echopipe::testing
