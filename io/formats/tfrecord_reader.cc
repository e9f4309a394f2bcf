#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <echopipe/io/formats/compression.h>
#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/formats/tfrecord_reader.h>

namespace echopipe::internal {
namespace {

// Far below 2^64, so that adding offset and checksums cannot overflow.
constexpr uint64_t kMaxLength = uint64_t{1} << 62;

template <class T>
T LittleEndian(std::span<const uint8_t> bytes) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// RFC 1950: deflate in the first byte's low half, and both bytes a multiple of 31.
bool IsZlib(std::span<const uint8_t> begin) {
  return begin.size() >= 2 && begin[0] == 0x78 && (begin[0] * 256 + begin[1]) % 31 == 0;
}

}  // namespace

TfRecordReader::TfRecordReader(std::string shard, BufferPool& pool, uint64_t offset)
    : shard_(std::move(shard)), pool_(pool), offset_(offset), record_offset_(offset) {}

TfRecordReader::Event TfRecordReader::Next() {
  while (true) {
    switch (phase_) {
      case Phase::kDone:
        return {.kind = Kind::kEnd};
      case Phase::kHeader:
        if (!FillHeader()) return NeedBytes();
        ReadHeader();
        break;
      case Phase::kData: {
        const std::optional<std::span<const uint8_t>> record = TakeRecord();
        if (!record) return NeedBytes();
        phase_ = Phase::kHeader;
        return Check(*record);
      }
      case Phase::kSkip:
        skip_ -= Take(skip_).size();
        if (skip_ > 0) return NeedBytes();
        phase_ = Phase::kHeader;
        return TooLarge();
    }
  }
}

std::span<const uint8_t> TfRecordReader::Take(uint64_t most) {
  const std::span<const uint8_t> taken =
      input_.first(static_cast<size_t>(std::min<uint64_t>(most, input_.size())));
  input_ = input_.subspan(taken.size());
  offset_ += taken.size();
  return taken;
}

bool TfRecordReader::FillHeader() {
  copy_ = nullptr;
  if (header_size_ == 0) record_offset_ = offset_;
  const std::span<const uint8_t> more = Take(kHeader - header_size_);
  std::copy(more.begin(), more.end(), header_.begin() + static_cast<std::ptrdiff_t>(header_size_));
  header_size_ += more.size();
  return header_size_ == kHeader;
}

void TfRecordReader::ReadHeader() {
  const std::span<const uint8_t> header = header_;
  if (LittleEndian<uint32_t>(header.subspan(8)) != MaskedCrc32c(header.first(8))) ThrowNoHeader();
  header_size_ = 0;
  length_ = LittleEndian<uint64_t>(header);
  if (length_ > kMaxLength) Throw(ErrorCode::kCorrupt, "a broken length", record_offset_);
  const uint64_t size = length_ + kFooter;
  if (shard_size_ && (offset_ > *shard_size_ || size > *shard_size_ - offset_)) {
    Throw(ErrorCode::kTruncated, "the shard ends inside the record", record_offset_);
  }
  phase_ = length_ > kMaxRecordBytes ? Phase::kSkip : Phase::kData;
  skip_ = size;
}

// Data and its checksum, once all of it has come.
std::optional<std::span<const uint8_t>> TfRecordReader::TakeRecord() {
  const uint64_t size = length_ + kFooter;
  if (filled_ == 0 && input_.size() >= size) return Take(size);
  if (!copy_) copy_ = pool_.Allocate(static_cast<size_t>(size));
  const std::span<const uint8_t> more = Take(size - filled_);
  std::copy(more.begin(), more.end(), copy_->data() + filled_);
  filled_ += more.size();
  if (filled_ < size) return std::nullopt;
  filled_ = 0;
  return copy_->bytes();
}

TfRecordReader::Event TfRecordReader::Check(std::span<const uint8_t> record) const {
  const std::span<const uint8_t> data = record.first(static_cast<size_t>(length_));
  const bool fits = LittleEndian<uint32_t>(record.subspan(data.size())) == MaskedCrc32c(data);
  if (fits) return {.kind = Kind::kRecord, .data = data};
  return {.kind = Kind::kRecord,
          .error = Error({.code = ErrorCode::kCorrupt,
                          .what = "the data does not fit to its checksum in the record at byte " +
                                  std::to_string(record_offset_),
                          .where = shard_})};
}

TfRecordReader::Event TfRecordReader::TooLarge() const {
  return {.kind = Kind::kRecord,
          .error = Error(
              {.code = ErrorCode::kLimitExceeded,
               .what = "the record at byte " + std::to_string(record_offset_) + " is too large",
               .where = shard_,
               .got = std::to_string(length_) + " bytes",
               .wanted = "at most " + std::to_string(kMaxRecordBytes)})};
}

// All input is used up: more is needed, or this is where the shard ends.
TfRecordReader::Event TfRecordReader::NeedBytes() {
  if (!finished_) return {.kind = Kind::kNeedBytes};
  if (phase_ == Phase::kHeader && header_size_ == 0) {
    phase_ = Phase::kDone;
    return {.kind = Kind::kEnd};
  }
  if (phase_ == Phase::kHeader && record_offset_ == 0) ThrowNoHeader();
  Throw(ErrorCode::kTruncated, "the shard ends inside the record", record_offset_);
}

void TfRecordReader::Throw(ErrorCode code, std::string what, uint64_t at) const {
  throw Error(
      {.code = code, .what = std::move(what) + " at byte " + std::to_string(at), .where = shard_});
}

void TfRecordReader::ThrowNoHeader() const {
  const std::span<const uint8_t> begin = std::span(header_).first(header_size_);
  if (record_offset_ == 0) {
    std::string_view compression =
        CompressionOf({reinterpret_cast<const char*>(begin.data()), begin.size()});
    if (compression.empty() && IsZlib(begin)) compression = "zlib";
    if (!compression.empty()) {
      Throw(ErrorCode::kUnsupported, "a shard compressed with " + std::string(compression), 0);
    }
  }
  if (header_size_ < kHeader) {
    Throw(ErrorCode::kTruncated, "the shard ends inside the record", record_offset_);
  }
  Throw(ErrorCode::kCorrupt, "a length that does not fit to its checksum", record_offset_);
}

}  // namespace echopipe::internal
