#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/options.h>

namespace echopipe {

namespace proto {
class Checkpoint;
}

/// Where a pipeline stands behind a step: enough to go on from there in another process, with the
/// batches that would have come.
///
/// It holds the spec, the source's place, and identities and counters of what the echo points hold;
/// no pixels, and nothing that grows with the run (docs/resume.md). A value: cheap to copy,
/// immutable.
/// Errors   kNotFound and kIo of the file; kCorrupt and kTruncated for what is not a whole
///          checkpoint; kUnsupported for the format of a newer version.
/// Threads  Any.
class ECHOPIPE_EXPORT PipelineCheckpoint {
 public:
  /// The newest format that is read here, and the one that is written.
  static constexpr uint32_t kFormat = 1;

  explicit PipelineCheckpoint(proto::Checkpoint message);

  /// From what ToBytes() gave; `name` is for its errors.
  static PipelineCheckpoint FromBytes(std::string_view bytes, std::string_view name = "checkpoint");
  /// With a checksum. Equal for equal checkpoints.
  std::string ToBytes() const;

  static PipelineCheckpoint Load(const std::string& path);
  /// Writes the file as ReplaceFile() does. Throws kInvalidArgument if a file is there that is no
  /// checkpoint: it is left alone.
  void Save(const std::string& path) const;

  /// Batches given to the consumer so far: the step that the next batch will have.
  uint64_t steps() const;
  Rank rank() const;

  const proto::Checkpoint& message() const { return *message_; }

 private:
  std::shared_ptr<const proto::Checkpoint> message_;
};

}  // namespace echopipe
