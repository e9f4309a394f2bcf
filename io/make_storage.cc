#include <algorithm>
#include <optional>
#include <utility>

#include <echopipe/base/mutex.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/io/http_storage.h>

namespace echopipe {
namespace {

/// Sends each path to the storage of its scheme. Ids of reads are those of the inner storages, with
/// the scheme in the lowest bit.
class AnyStorage final : public Storage {
 public:
  AnyStorage(int threads, HttpOptions http) : threads_(threads), http_options_(std::move(http)) {}

  Result<std::vector<FolderEntry>> List(const std::string& folder) override {
    return At(folder).List(folder);
  }

  Result<uint64_t> Size(const std::string& path) override { return At(path).Size(path); }

  std::vector<Result<std::vector<FolderEntry>>> ListAll(
      const std::vector<std::string>& folders) override {
    return AreAllHttp(folders) ? At(folders[0]).ListAll(folders) : Storage::ListAll(folders);
  }

  std::vector<Result<uint64_t>> Sizes(const std::vector<std::string>& paths) override {
    return AreAllHttp(paths) ? At(paths[0]).Sizes(paths) : Storage::Sizes(paths);
  }

  std::optional<int64_t> ModifiedAt(const std::string& path) override {
    return At(path).ModifiedAt(path);
  }

  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    const bool is_http = internal::IsHttpUri(request.path);
    Storage& storage = At(request.path);
    return storage.Read(std::move(request), pool, std::move(callback)) << 1 |
           static_cast<ReadId>(is_http);
  }

  void Cancel(ReadId id) override {
    const bool is_http = (id & 1) != 0;
    Storage* storage = nullptr;
    {
      MutexLock lock(mutex_);
      storage = (is_http ? http_ : local_).get();
    }
    if (storage != nullptr) storage->Cancel(id >> 1);
  }

  StorageStats Stats() const override {
    MutexLock lock(mutex_);
    StorageStats stats = http_ ? http_->Stats() : StorageStats();
    if (!local_) return stats;
    const StorageStats local = local_->Stats();
    stats.reads += local.reads;
    stats.bytes_read += local.bytes_read;
    return stats;
  }

 private:
  static bool AreAllHttp(const std::vector<std::string>& paths) {
    return !paths.empty() && std::ranges::all_of(paths, internal::IsHttpUri);
  }

  // Once made it stays.
  Storage& At(const std::string& path) {
    MutexLock lock(mutex_);
    if (internal::IsHttpUri(path)) {
      if (!http_) http_ = MakeHttpStorage(http_options_);
      return *http_;
    }
    if (!local_) local_ = MakeLocalStorage(threads_);
    return *local_;
  }

  const int threads_;
  const HttpOptions http_options_;
  mutable Mutex mutex_;
  std::shared_ptr<Storage> local_ ECHOPIPE_GUARDED_BY(mutex_);
  std::shared_ptr<Storage> http_ ECHOPIPE_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Storage> MakeStorage(int threads, const HttpOptions& http) {
  return std::make_shared<AnyStorage>(threads, http);
}

}  // namespace echopipe
