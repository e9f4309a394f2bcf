#include <algorithm>
#include <cstring>

#include <echopipe/io/http/read.h>
#include <echopipe/io/storage_error.h>

namespace echopipe::internal {

HttpRead::~HttpRead() {
  if (callback_) Fail(UnreadForMemory(request_.path));
}

void HttpRead::SetSize(uint64_t object_size) {
  if (buffer_) return;
  const uint64_t behind = object_size - std::min(object_size, request_.offset);
  missing_ = std::min(request_.length, behind);
  object_size_ = object_size;
  buffer_ = pool_.Allocate(static_cast<size_t>(missing_));
}

void HttpRead::Fill(uint64_t offset, std::span<const uint8_t> bytes) {
  const uint64_t begin = request_.offset;
  if (offset < begin) {
    bytes = bytes.subspan(std::min<uint64_t>(bytes.size(), begin - offset));
    offset = begin;
  }
  const uint64_t at = offset - begin;
  if (at >= buffer_->size()) return;
  const size_t count = std::min<size_t>(bytes.size(), buffer_->size() - at);
  if (count > 0) std::memcpy(buffer_->data() + at, bytes.data(), count);
  missing_ -= count;
}

void HttpRead::Succeed() {
  std::exchange(callback_,
                nullptr)(ReadResult{.data = std::move(buffer_), .object_size = object_size_});
}

void HttpRead::Fail(Error error) { std::exchange(callback_, nullptr)(std::move(error)); }

}  // namespace echopipe::internal
