#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <echopipe/pipeline/graph/traced_storage.h>

namespace echopipe::internal {
namespace {

class TracedStorage final : public Storage {
 public:
  TracedStorage(std::shared_ptr<Storage> storage, std::shared_ptr<Trace> trace)
      : storage_(std::move(storage)), trace_(std::move(trace)) {}

  Result<std::vector<FolderEntry>> List(const std::string& folder) override {
    return storage_->List(folder);
  }
  Result<uint64_t> Size(const std::string& path) override { return storage_->Size(path); }
  std::optional<int64_t> ModifiedAt(const std::string& path) override {
    return storage_->ModifiedAt(path);
  }
  std::vector<Result<std::vector<FolderEntry>>> ListAll(
      const std::vector<std::string>& folders) override {
    return storage_->ListAll(folders);
  }
  std::vector<Result<uint64_t>> Sizes(const std::vector<std::string>& paths) override {
    return storage_->Sizes(paths);
  }
  void Cancel(ReadId id) override { storage_->Cancel(id); }
  StorageStats Stats() const override { return storage_->Stats(); }

  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    TraceArgs args;
    args.Add("path", request.path).Add("offset", request.offset).Add("asked", request.length);
    return storage_->Read(std::move(request), pool,
                          [trace = trace_, begin = trace_->Now(), args = std::move(args),
                           callback = std::move(callback)](Result<ReadResult> result) mutable {
                            AddRead(*trace, begin, args, result);
                            callback(std::move(result));
                          });
  }

 private:
  static void AddRead(Trace& trace, Clock::Time begin, TraceArgs& args,
                      const Result<ReadResult>& result) noexcept {
    try {
      if (result.ok()) {
        args.Add("bytes", uint64_t{result.value().data->size()});
      } else {
        args.Add("error", ToString(result.error().code()));
      }
      trace.AddAsync("read", begin, trace.Now(), args);
    } catch (const std::bad_alloc&) {  // a callback may not throw
    }
  }

  std::shared_ptr<Storage> storage_;
  std::shared_ptr<Trace> trace_;
};

}  // namespace

std::shared_ptr<Storage> MakeTracedStorage(std::shared_ptr<Storage> storage,
                                           std::shared_ptr<Trace> trace) {
  return std::make_shared<TracedStorage>(std::move(storage), std::move(trace));
}

}  // namespace echopipe::internal
