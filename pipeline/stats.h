#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/export.h>

namespace echopipe {

/// An example that could not be read, decoded or augmented.
struct BadExample {
  std::string uri;  ///< the file, or the shard that holds it
  std::string key;
  std::string stage;  ///< "source", "decode", ...
  Error error;        ///< its code is the kind
};

/// What one part of the pipeline has done.
struct StageStats {
  std::string name;  ///< "read", "decode", ..., "consumer"
  uint64_t items = 0;
  double busy_s = 0;            ///< of all threads together; for "read" the time it was not held up
  double seconds_per_item = 0;  ///< what an item costs the pipeline: busy time over parallelism
};

/// What one echo point has done.
struct EchoPointStats {
  std::string position;  ///< "after decode"
  double factor = 1;     ///< as the spec asks; of an adaptive one, the most uses of an item
  bool adaptive = false;
  uint64_t admitted = 0;
  uint64_t draws = 0;
  uint64_t exceptions = 0;      ///< draws in which spacing could not be kept (in the final drain)
  double factor_effective = 1;  ///< draws over admitted
  double r = 0;  ///< t_upstream / t_downstream per item; echoing is free while factor <= r
};

/// What the adaptive echo point has done, in this process.
struct AdaptiveStats {
  /// Draws in some time.
  struct Span {
    uint64_t fresh = 0;
    uint64_t echoes = 0;
  };

  uint64_t fresh = 0;              ///< draws: first uses, tombstones too
  uint64_t echoes = 0;             ///< draws: later uses
  double echo_share = 0;           ///< of all draws
  double longest_bridged_s = 0;    ///< from a fresh draw to the last echo before the next one
  uint64_t residents = 0;          ///< of the pool, now
  uint64_t uses_left = 0;          ///< echoes that these may still give
  double span_s = 1;               ///< how long each part of the history is
  std::vector<Span> history = {};  ///< since Open, 64 parts at most
};

/// Items between two nodes that may run ahead of each other.
struct WindowStats {
  std::string name;  ///< "source -> echo after decode"
  uint64_t window = 0;
  uint64_t in_flight = 0;
  uint64_t peak_in_flight = 0;  ///< never more than `window`
};

/// What servers have been asked for, if any.
struct NetworkStats {
  uint64_t requests = 0;  ///< sent, retries too
  uint64_t retries = 0;   ///< of these, sent because one before failed
  uint64_t resumed = 0;   ///< of these, for the rest of an answer that was cut off
  uint64_t requests_in_flight = 0;
  uint64_t peak_requests_in_flight = 0;
  double throttled_s = 0;  ///< from a server's asking for less to its next good answer
  double bytes_per_s = 0;  ///< of payload, since Open
};

/// What a pipeline has done so far.
///
/// Steady-state figures run from the first batch to the last fresh read, so that neither start-up
/// nor the final drain enters.
struct PipelineStats {
  uint64_t examples = 0;  ///< delivered by Next()
  uint64_t fresh = 0;     ///< of these, the first use at every echo point
  uint64_t batches = 0;
  double seconds = 0;         ///< since Open
  double first_batch_s = 0;   ///< from Open to the first batch
  double examples_per_s = 0;  ///< steady state
  double fresh_per_s = 0;     ///< steady state
  double stall_s = 0;         ///< waited inside Next(), the first batch apart
  double stall_share = 0;     ///< of the steady state's time
  uint64_t records = 0;       ///< delivered by the source, good and bad
  uint64_t bytes_read = 0;
  NetworkStats network = {};
  uint64_t bytes_in_flight = 0;  ///< of reads and records not yet in the pipeline
  uint64_t peak_bytes_in_flight = 0;
  uint64_t bad_count = 0;                     ///< records that are bad, each counted once
  std::vector<BadExample> bad_examples = {};  ///< the first 1,000 of them
  /// Records with a truncated picture that was used as far as it goes (Decode.accept_truncated),
  /// each counted once however often it is echoed and in however many epochs. Not bad ones. As all
  /// figures here, of this process: after Restore() it begins at 0.
  uint64_t partial_images = 0;
  std::vector<StageStats> stages = {};  ///< in order, with "read" first and "consumer" last
  std::vector<EchoPointStats> echo_points = {};
  std::optional<AdaptiveStats> adaptive = {};  ///< if there is an adaptive echo point
  double runway_s = 0;  ///< how long the consumer can go on with what the last echo point has drawn
  std::vector<WindowStats> windows = {};
  std::string verdict = {};  ///< which part starves the consumer, and what echoing would bring
};

}  // namespace echopipe
