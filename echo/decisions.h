#pragma once

#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/export.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/echo/runway.h>

namespace echopipe {

/// Says what an adaptive echo point does with a credit.
///
/// Threads: one caller at a time.
class ECHOPIPE_EXPORT Decisions {
 public:
  enum class Step { kWait, kFresh, kEcho, kEnd };
  /// What the point sees.
  struct Situation {
    bool fresh_waits = false;     ///< the next item in order is here
    bool upstream_ended = false;  ///< none will come any more
    bool can_echo = false;        ///< AdaptiveOrder::CanEcho()
  };

  virtual ~Decisions() = default;
  /// What is to be done, and then taken as done. After kWait it is asked again when something has
  /// changed.
  virtual Step Next(const Situation& situation) = 0;
};

/// Decides by how things are: a fresh item as soon as it is here; an echo only while none is, one
/// may still come, and the runway is low.
class ECHOPIPE_EXPORT LiveDecisions final : public Decisions {
 public:
  /// `runway` must outlive it.
  explicit LiveDecisions(const Runway& runway) : runway_(runway) {}
  Step Next(const Situation& situation) override;

 private:
  const Runway& runway_;
};

/// Decides what a log says.
///
/// Errors  kInvalidArgument for a decision that cannot be followed, kTruncated where items go on
///         but decisions do not. They name the point and the draw; nothing has been done then.
class ECHOPIPE_EXPORT ReplayedDecisions final : public Decisions {
 public:
  /// `point` is what errors call the echo point.
  ReplayedDecisions(DecisionReader reader, std::string point)
      : reader_(std::move(reader)), point_(std::move(point)) {}
  Step Next(const Situation& situation) override;

 private:
  Step AtTheEnd(const Situation& situation) const;
  [[noreturn]] void Refuse(ErrorCode code, const char* what, const char* got,
                           const char* wanted) const;

  DecisionReader reader_;
  std::string point_;
};

}  // namespace echopipe
