#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/base/export.h>

namespace echopipe {

/// One name inside a folder.
struct FolderEntry {
  enum class Kind { kFile, kFolder, kOther };
  std::string name;         ///< without the folder's path
  Kind kind = Kind::kFile;  ///< links are followed; a link that leads nowhere is kOther
};

/// Bytes [offset, offset + length) of an object; a range over its end is cut there.
struct ReadRequest {
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct ReadResult {
  std::shared_ptr<const Buffer> data;
  uint64_t object_size = 0;  ///< of the whole object, in bytes
};

/// What a storage has moved so far.
struct StorageStats {
  uint64_t reads = 0;       ///< completed, with or without success
  uint64_t bytes_read = 0;  ///< of payload

  // Of a network:
  uint64_t requests = 0;  ///< sent, retries too
  uint64_t retries = 0;   ///< of these, sent because one before failed
  uint64_t resumed = 0;   ///< of these, for the rest of an answer that was cut off
  uint64_t requests_in_flight = 0;
  uint64_t peak_requests_in_flight = 0;
  double throttled_s = 0;  ///< from a server's asking for less to its next good answer
};

/// Where objects are: named byte sequences in folders, read by range.
///
/// Order    Reads may complete in any order.
/// Errors   Messages name the path. A missing object is kNotFound, want of memory is
///          kResourceExhausted (and may name nothing), a server that is gone kUnavailable,
///          everything else kIo.
/// End      The destructor cancels what is under way and returns when every callback has returned.
/// Threads  Every method may be called from any thread. List, Size and ModifiedAt block; Read
///          does not.
class ECHOPIPE_EXPORT Storage {
 public:
  using Callback = std::function<void(Result<ReadResult>)>;
  using ReadId = uint64_t;

  virtual ~Storage() = default;

  /// The names in a folder, sorted bytewise, without "." and "..".
  virtual Result<std::vector<FolderEntry>> List(const std::string& folder) = 0;
  /// The size of an object in bytes. A folder is an error.
  virtual Result<uint64_t> Size(const std::string& path) = 0;

  /// The same of many, in their order; where each takes a round trip, they overlap.
  virtual std::vector<Result<std::vector<FolderEntry>>> ListAll(
      const std::vector<std::string>& folders);
  virtual std::vector<Result<uint64_t>> Sizes(const std::vector<std::string>& paths);
  /// When an object was last changed, in nanoseconds since 1970, where that is known without asking
  /// a server.
  virtual std::optional<int64_t> ModifiedAt(const std::string& path);

  /// Starts a read into a buffer of `pool` (which must outlive it). The callback runs exactly once,
  /// on a thread of the storage's own and under no lock, and must be short and not throw; it may
  /// start further reads. A range that begins at or after the end gives no bytes. Throws
  /// std::bad_alloc if there is no memory to ask with; then no callback runs.
  virtual ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) = 0;
  /// Asks that a read end soon. Its callback still runs: with kStopped, or as if not cancelled.
  /// Unknown or completed ids are ignored. Throws nothing.
  virtual void Cancel(ReadId id) = 0;

  virtual StorageStats Stats() const = 0;
};

/// Files of this machine, read by `threads` threads of its own (in 1..1024).
ECHOPIPE_EXPORT std::shared_ptr<Storage> MakeLocalStorage(int threads);

}  // namespace echopipe
