#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <echopipe/io/formats/shard_format.h>
#include <echopipe/io/read_queue.h>
#include <echopipe/io/source.h>

namespace echopipe::internal {

/// The sample that fills these bytes of a shard, read alone.
///
/// Errors   A bad sample for what cannot be read, and for bytes that are no sample of this length
///          any more.
Sample ParseSample(const ShardFormat& format, const std::shared_ptr<const std::string>& shard,
                   const RecordPlace& place, const Result<ReadResult>& bytes, BufferPool& pool);

/// So many of the reads in flight may be for records that are read again.
inline uint64_t RereadsAtOnce(const SourceLimits& limits) {
  return std::max<uint64_t>(1, static_cast<uint64_t>(limits.reads_in_flight) / 2);
}

/// Reads single samples of shards by their places, one read each.
///
/// Order    They are asked for in the order added, with up to `most_reads` under way, and arrive in
///          any.
/// Threads  One caller at a time, as of `reads`, which must outlive it, and so must `format`.
class SampleLoader {
 public:
  /// `held` are the bytes still counted in flight for it, which the receiver releases some time.
  using Done = std::function<void(Sample sample, uint64_t held)>;

  SampleLoader(const ShardFormat& format, uint64_t most_reads, ReadQueue& reads);

  void Add(std::shared_ptr<const std::string> uri, const RecordPlace& place, Done done);
  /// Takes an arrival and calls its `done`; false if it is not one of the loader's.
  bool Take(const ReadQueue::Arrival& arrival);
  /// Starts what the limits allow; the oldest may always be read.
  void StartReads();

 private:
  struct Job {
    std::shared_ptr<const std::string> uri;
    RecordPlace place;
    Done done;
    std::optional<uint64_t> serial = {};
  };

  const ShardFormat& format_;
  uint64_t most_reads_;
  ReadQueue& reads_;
  uint64_t reads_under_way_ = 0;
  std::deque<Job> jobs_;  // in order; some of the first are under way
};

}  // namespace echopipe::internal
