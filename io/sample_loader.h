#pragma once

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

/// Reads single samples of shards again, by their places, one read each.
///
/// Order    They are asked for in the order added, with up to half of the reads in flight, and
///          arrive in any.
/// Threads  One caller at a time, as of `reads`, which must outlive it, and so must `format`.
class SampleLoader {
 public:
  /// `held` are the bytes still counted in flight for it, which the receiver releases some time.
  using Done = std::function<void(Sample sample, uint64_t held)>;

  SampleLoader(const ShardFormat& format, const SourceLimits& limits, ReadQueue& reads);

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

  Sample Parse(const Job& job, const Result<ReadResult>& result);

  const ShardFormat& format_;
  uint64_t most_reads_;
  ReadQueue& reads_;
  uint64_t reads_under_way_ = 0;
  std::deque<Job> jobs_;  // in order; some of the first are under way
};

}  // namespace echopipe::internal
