#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/io/source.h>
#include <echopipe/pipeline/graph/joint.h>
#include <echopipe/pipeline/graph/reread.h>
#include <echopipe/pipeline/graph/shadow_log.h>

namespace echopipe::internal {

/// The head of the graph: takes records from the source as credits allow.
///
/// A bad record is a tombstone, or, if `fail_on_bad` or for want of memory, the end with its error.
/// Records that are read again go to their destinations beside the stream.
class SourceJoint final : public Joint {
 public:
  SourceJoint(std::unique_ptr<Source> source, uint64_t window, bool fail_on_bad, Clock& clock,
              Log<ShadowLogs::Record>& log, std::vector<Reread> rereads);

  void Receive(Message message, Outbox& outbox) override;

  /// Cancels the source's reads; returns when none of its callbacks can still run. To be called
  /// when nothing else will be.
  void CloseSource() { source_.reset(); }

  // From any thread.
  Source& source() const { return *source_; }
  const Window& window() const { return window_; }
  uint64_t records() const { return records_; }
  /// The time in which the source could not go on for want of credits.
  Clock::Duration held(Clock::Time now) const { return held_.Total(now); }

 private:
  void Pull(Outbox& outbox);
  void SendNext(const SourceItem& from, Outbox& outbox);
  void SendReread(const SourceItem& from, Outbox& outbox);

  std::unique_ptr<Source> source_;
  Window window_;
  bool fail_on_bad_;
  Clock& clock_;
  Log<ShadowLogs::Record>& log_;
  std::vector<Reread> rereads_;
  size_t rereads_due_;
  std::vector<SourceItem> arrived_;
  MeanSize size_;
  bool ended_ = false;
  Counter records_;
  Timer held_;
};

}  // namespace echopipe::internal
