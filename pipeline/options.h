#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <echopipe/base/clock.h>
#include <echopipe/io/http_storage.h>
#include <echopipe/io/record_order.h>
#include <echopipe/io/storage.h>
#include <echopipe/pipeline/stats.h>

namespace echopipe {

/// How a pipeline runs. Nothing here changes which examples come out, nor, but for `order`, their
/// order (but what an adaptive echo point repeats, and when, depends on how the run goes).
struct RuntimeOptions {
  /// Threads for decoding and augmenting; 0: as many as the affinity mask and the cgroup's CPU
  /// quota allow. Never more than oneTBB's global_control allows.
  int threads = 0;
  /// Reads under way at once, 1..1024.
  int reads_in_flight = 32;
  /// Whether a record waits for those in front of it. kAsReady gives up the order, and with it
  /// batches that are the same in each run; not with a decision log.
  RecordOrder order = RecordOrder::kInOrder;
  /// Batches made ahead of the consumer, 2..1024.
  int prefetch = 2;
  /// The most bytes of records, examples and batches held together, those of `allocator` too; 0: no
  /// cap. A quarter of it, 128 MiB at most, is for reading ahead. Before a batch goes out, what the
  /// spec's full buffers will take is estimated from the mean sizes so far; if that is more than
  /// the cap leaves, the pipeline fails with the bytes missing, as a rule in the first batch's
  /// place. It depends on spec, options and data alone. The bytes it names leave a quarter for
  /// examples that are still to come and larger; should sizes grow beyond that, it fails later.
  uint64_t memory_cap = 0;
  /// Makes a batch tensor's memory (pinned memory, for example); null: the pipeline's own pool.
  /// Called on the pipeline's threads.
  std::function<std::shared_ptr<uint8_t>(size_t bytes)> allocator = nullptr;
  /// Where records are read from; null: http:// and https:// uris from their servers, all others
  /// from this machine's files.
  std::shared_ptr<Storage> storage = nullptr;
  /// How servers are talked to, where `storage` is null.
  HttpOptions http = {};
  /// Null: the steady clock.
  std::shared_ptr<Clock> clock = nullptr;
  /// Told of what a person may want to know (files passed over, bad examples); quiet by default.
  /// Called on any thread, one call at a time.
  std::function<void(std::string_view message)> log = nullptr;
  /// Told of each record that is left out as bad, once, in the order of the stream. Called on any
  /// thread, one call at a time.
  std::function<void(const BadExample& bad)> on_bad_example = nullptr;
  /// Writes down in this file what an adaptive echo point decides. A log that is there is replaced;
  /// by Restore(), from the checkpoint's place on. It never lags behind a checkpoint. Empty: none.
  std::string decision_log = {};
  /// An adaptive echo point decides what this file says, whatever the timing: the batches are those
  /// of the run that wrote it, and behind a checkpoint of that run, the rest of them. Empty: none.
  std::string replay_log = {};
  /// Writes into this file what is done when, on which thread: Chrome's trace event format, for
  /// Perfetto (docs/trace.md). A file that is there is replaced. Empty: none.
  std::string trace = {};
};

/// Which part of the data a process of a distributed run gets.
struct Rank {
  uint64_t rank = 0;
  uint64_t world = 1;  ///< >= 1, > rank
};

}  // namespace echopipe
