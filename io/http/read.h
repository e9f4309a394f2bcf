#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <echopipe/base/clock.h>
#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// A read under way: its bytes are put together from whatever brings them.
///
/// End      Its callback runs once: when it succeeds or fails, else when it is destroyed, which
/// only
///          want of memory leads to.
/// Threads  One caller at a time.
class HttpRead {
 public:
  HttpRead(Storage::ReadId id, ReadRequest request, BufferPool& pool, Storage::Callback callback,
           Clock::Time deadline)
      : id_(id),
        request_(std::move(request)),
        pool_(pool),
        callback_(std::move(callback)),
        deadline_(deadline) {}
  ~HttpRead();
  HttpRead(const HttpRead&) = delete;
  HttpRead& operator=(const HttpRead&) = delete;

  Storage::ReadId id() const { return id_; }
  const ReadRequest& request() const { return request_; }
  Clock::Time deadline() const { return deadline_; }

  /// The object's size is known: room is made for what the range has of it. May throw
  /// std::bad_alloc. The first call counts.
  void SetSize(uint64_t object_size);
  /// Bytes of the object from `offset` on have come, each once; those outside the range are
  /// dropped. Precondition: SetSize().
  void Fill(uint64_t offset, std::span<const uint8_t> bytes);
  /// Bytes of the range that there are. Precondition: SetSize().
  uint64_t size() const { return buffer_->size(); }
  /// All of it has come.
  bool is_complete() const { return buffer_ != nullptr && missing_ == 0; }

  /// Ends it: calls back.
  void Succeed();
  void Fail(Error error);

 private:
  Storage::ReadId id_;
  ReadRequest request_;
  BufferPool& pool_;
  Storage::Callback callback_;  // null once it has been called
  Clock::Time deadline_;
  std::shared_ptr<Buffer> buffer_;
  uint64_t object_size_ = 0;
  uint64_t missing_ = 0;  // bytes
};

}  // namespace echopipe::internal
