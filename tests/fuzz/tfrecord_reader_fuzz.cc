// TFRecord shards: as they are, and with their checksums put right, since no fuzzer guesses these.
// The first line holds the size of the pieces that are fed (0: all at once); the rest is the shard.
//
// Parses: io/formats/tfrecord_reader.cc io/formats/compression.cc

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/io/formats/crc32c.h>
#include <echopipe/io/formats/tfrecord_reader.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::BufferPool;
using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::internal::MaskedCrc32c;
using echopipe::internal::TfRecordReader;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

using Kind = TfRecordReader::Kind;

// A length, its checksum, the data, and their checksum.
constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;
constexpr uint64_t kMuch = uint64_t{1} << 20;

struct Record {
  uint64_t offset = 0;
  std::string data = {};
  std::string error = {};
  bool operator==(const Record&) const = default;
};

/// All that a reader makes of a shard.
struct Content {
  std::vector<Record> records = {};
  std::string error = {};
  uint64_t end = 0;
  bool operator==(const Content&) const = default;
};

class Reading {
 public:
  Reading(std::string_view shard, size_t piece, uint64_t offset = 0)
      : shard_(shard), piece_(piece), fed_(offset), reader_("shard", pool_, offset) {}

  Content Run(bool size_is_known) {
    if (size_is_known) reader_.SetShardSize(shard_.size());
    try {
      while (Step()) Require(reader_.offset() <= fed_ && reader_.held_bytes() <= fed_);
      Require(fed_ == shard_.size());
      content_.end = reader_.offset();
    } catch (const Error& error) {
      Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTruncated ||
              error.code() == ErrorCode::kUnsupported);
      content_.error = error.what();
    }
    return std::move(content_);
  }

 private:
  // False at the end.
  bool Step() {
    const TfRecordReader::Event event = reader_.Next();
    if (event.kind == Kind::kEnd) return false;
    if (event.kind == Kind::kNeedBytes) {
      Feed();
    } else {
      Take(event);
    }
    return true;
  }

  void Take(const TfRecordReader::Event& event) {
    Record record{.offset = reader_.record_offset(),
                  .data = {event.data.begin(), event.data.end()}};
    if (event.error) {
      Require(event.data.empty());
      record.error = event.error->what();
    } else {
      Require(shard_.substr(record.offset + kHeaderBytes, record.data.size()) == record.data);
      Require(reader_.offset() == record.offset + kHeaderBytes + record.data.size() + kFooterBytes);
    }
    content_.records.push_back(std::move(record));
  }

  void Feed() {
    Require(!finished_);
    // Its own memory, so that reads behind the piece, and of pieces before, are found.
    const std::string_view next = shard_.substr(fed_, piece_);
    bytes_.assign(next.begin(), next.end());
    bytes_.shrink_to_fit();
    fed_ += next.size();
    finished_ = next.empty();
    if (finished_) {
      reader_.Finish();
    } else {
      reader_.Feed(bytes_);
    }
  }

  std::string_view shard_;
  size_t piece_;
  size_t fed_;
  bool finished_ = false;
  std::vector<uint8_t> bytes_;
  BufferPool pool_;
  TfRecordReader reader_;
  Content content_;
};

// Of each record, as far as they follow each other. A length for which a reader that does not know
// the shard's size would take much memory, and time, is left alone.
std::string WithRightChecksums(std::string shard) {
  const auto put = [&shard](size_t begin, size_t size) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(shard.data()) + begin;
    const uint32_t checksum = MaskedCrc32c({bytes, size});
    std::memcpy(shard.data() + begin + size, &checksum, sizeof(checksum));
  };
  for (size_t at = 0; shard.size() - at >= kHeaderBytes;) {
    uint64_t length = 0;
    std::memcpy(&length, shard.data() + at, sizeof(length));
    if (length > kMuch && length <= TfRecordReader::kMaxRecordBytes) break;
    put(at, sizeof(length));
    at += kHeaderBytes;
    const size_t rest = shard.size() - at;
    if (rest < kFooterBytes || length > rest - kFooterBytes) break;
    put(at, static_cast<size_t>(length));
    at += static_cast<size_t>(length) + kFooterBytes;
  }
  return shard;
}

// Where a record begins, reading begins as well.
void CheckGoingOn(std::string_view shard, const Content& whole) {
  if (whole.records.empty()) return;
  const size_t middle = whole.records.size() / 2;
  const Content rest = Reading(shard, shard.size() + 1, whole.records[middle].offset).Run(true);
  Require(rest.records.size() == whole.records.size() - middle);
  Require(std::equal(rest.records.begin(), rest.records.end(),
                     whole.records.begin() + static_cast<std::ptrdiff_t>(middle)));
  Require(rest.error == whole.error && rest.end == whole.end);
}

void CheckShard(std::string_view shard, size_t piece) {
  const Content whole = Reading(shard, shard.size() + 1).Run(true);
  if (piece > 0) Require(Reading(shard, piece).Run(true) == whole);
  // Without the size errors come later, and no others.
  const Content unknown = Reading(shard, std::max<size_t>(piece, 512)).Run(false);
  Require(unknown.error.empty() == whole.error.empty());
  if (whole.error.empty()) Require(unknown == whole);
  CheckGoingOn(shard, whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto piece = static_cast<size_t>(input.TakeNumber() % 2000);
  const std::string_view shard = input.TakeRest();
  CheckShard(shard, piece);
  CheckShard(WithRightChecksums(std::string(shard)), piece);
  return 0;
}
