#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <echopipe/base/export.h>

namespace echopipe {

/// The one thing that is decided about a draw of an adaptive echo point.
enum class Decision : uint8_t { kFresh, kEcho };

/// So many draws in a row about which the same was decided.
struct DecisionRun {
  Decision decision = Decision::kFresh;
  uint64_t draws = 0;
  bool operator==(const DecisionRun&) const = default;
};

/// The decisions about the draws of a run, from some draw on, as a file holds them.
///
/// Little-endian: a header, then blocks of runs. A block's runs are LEB128 numbers of draws, of
/// fresh ones and of echoes in turn, fresh ones first (only that number may be 0).
///
///     header  "echodlog"  u32 format  u32 0  u64 fingerprint  u64 first draw  u64 hash
///     block   u32 size    u32 ~size   u64 hash                size bytes
///
/// Hashes are XXH3-64: of the header in front of it; of a block's bytes, seeded with the hash
/// before, so that no block can be missing between others.
/// A value: cheap to copy, immutable.
/// Threads  Any.
class ECHOPIPE_EXPORT DecisionLog {
 public:
  /// The newest format that is read here, and the one that is written.
  static constexpr uint32_t kFormat = 1;
  /// What the file begins with.
  static constexpr std::string_view kMagic = "echodlog";

  /// From a file's bytes; `name` is for its errors. A last block that is not whole, as a process
  /// that was killed leaves it, is left out, and so are zeros behind the last. Needs no memory
  /// beside that of `bytes`. Throws kCorrupt for what is no log or a damaged one, kTruncated for
  /// less than a header, kUnsupported for the format of a newer version.
  static DecisionLog FromBytes(std::string bytes, std::string name = "decision log");

  /// What the decisions are good for: a hash of spec, rank and number of ranks.
  uint64_t fingerprint() const { return fingerprint_; }
  uint64_t first_draw() const { return first_draw_; }
  /// One behind the last.
  uint64_t end_draw() const { return end_draw_; }
  /// Of a last block that was left out.
  size_t torn_bytes() const { return bytes_->size() - whole_bytes_; }
  /// Throws kInvalidArgument unless it was made for this fingerprint.
  void CheckIsFor(uint64_t fingerprint) const;

 private:
  friend class DecisionReader;

  DecisionLog(std::string bytes, std::string name);
  void ReadHeader();
  void CheckBlocks();
  uint64_t CheckRuns(std::string_view payload, uint64_t most) const;
  [[noreturn]] void ThrowDamaged(size_t at) const;

  std::shared_ptr<const std::string> bytes_;
  std::string name_;
  size_t whole_bytes_ = 0;
  uint64_t header_hash_ = 0;
  uint64_t fingerprint_ = 0;
  uint64_t first_draw_ = 0;
  uint64_t end_draw_ = 0;
};

/// Reads a log's decisions one after the other.
///
/// Threads: one caller at a time.
class ECHOPIPE_EXPORT DecisionReader {
 public:
  /// From those about `draw` on. Throws kInvalidArgument unless they are there, or it ends there.
  DecisionReader(DecisionLog log, uint64_t draw);

  /// The draw that is decided about next.
  uint64_t draw() const { return draw_; }
  /// That decision, and how often it is repeated at least: 0 draws behind the last decision.
  const DecisionRun& next() const { return next_; }
  /// Precondition: so many draws are in next().
  void Advance(uint64_t draws = 1);

 private:
  void Load();

  DecisionLog log_;
  size_t at_;             // in the log's bytes: behind next_
  size_t block_end_ = 0;  // where the block ends that at_ is in
  uint64_t draw_;
  DecisionRun next_;
};

/// Makes a log, piece by piece.
///
/// Buffering  What has not been taken: a byte or two for each run.
/// Threads    None: one caller at a time.
class ECHOPIPE_EXPORT DecisionLogWriter {
 public:
  DecisionLogWriter(uint64_t fingerprint, uint64_t first_draw);
  /// Begins with what `log` says about the draws before `draw`: for a run that goes on there.
  /// Throws kInvalidArgument unless it says that.
  DecisionLogWriter(const DecisionLog& log, uint64_t draw);

  void Add(Decision decision) { Add(DecisionRun{decision, 1}); }
  void Add(const DecisionRun& run);
  /// The draw that the next decision is about.
  uint64_t end_draw() const { return end_draw_; }
  /// Bytes that wait to be taken, roughly.
  size_t waiting_bytes() const { return done_.size() + block_.size(); }
  /// What goes into the file behind all that was taken before: whole blocks, so that the file is a
  /// whole log again. The first time it begins with the header.
  std::string TakeBytes();

 private:
  void PutRun();
  void EndBlock();

  std::string done_;   // header and blocks
  std::string block_;  // the runs of the one begun
  Decision turn_ = Decision::kFresh;
  DecisionRun run_;  // not in it yet
  uint64_t hash_ = 0;
  uint64_t end_draw_;
};

}  // namespace echopipe
