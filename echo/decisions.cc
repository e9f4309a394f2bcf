#include <echopipe/base/error.h>
#include <echopipe/echo/decisions.h>

namespace echopipe {

Decisions::Step LiveDecisions::Next(const Situation& situation) {
  if (situation.fresh_waits) return Step::kFresh;
  if (situation.upstream_ended) return Step::kEnd;
  return situation.can_echo && runway_.IsLow() ? Step::kEcho : Step::kWait;
}

Decisions::Step ReplayedDecisions::Next(const Situation& situation) {
  if (reader_.next().draws == 0) return AtTheEnd(situation);
  if (reader_.next().decision == Decision::kEcho) {
    if (!situation.can_echo) {
      Refuse(ErrorCode::kInvalidArgument, "a decision that cannot be followed", "an echo",
             "a fresh item: none may be drawn again");
    }
    reader_.Advance();
    return Step::kEcho;
  }
  if (!situation.fresh_waits) {
    if (!situation.upstream_ended) return Step::kWait;
    Refuse(ErrorCode::kInvalidArgument, "a decision that cannot be followed", "a fresh item",
           "the end: no item comes any more");
  }
  reader_.Advance();
  return Step::kFresh;
}

Decisions::Step ReplayedDecisions::AtTheEnd(const Situation& situation) const {
  if (!situation.fresh_waits) return situation.upstream_ended ? Step::kEnd : Step::kWait;
  Refuse(ErrorCode::kTruncated, "the decision log ends before the items do", "no decision",
         "one for each draw");
}

void ReplayedDecisions::Refuse(ErrorCode code, const char* what, const char* got,
                               const char* wanted) const {
  throw Error({.code = code,
               .what = what,
               .where = "echo point " + point_ + ", draw " + std::to_string(reader_.draw()),
               .got = got,
               .wanted = wanted});
}

}  // namespace echopipe
