#include <algorithm>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/bad_examples.h>

namespace echopipe::internal {
namespace {

// Within an epoch a fraction of fewer says little: one bad in three is not a third of the data.
constexpr uint64_t kFewestRecords = 1000;

}  // namespace

BadExamples::BadExamples(const proto::BadExamples& policy, Log log)
    : policy_(policy), log_(std::move(log)) {}

void BadExamples::CountRecord(const Identity& identity) {
  if (std::ranges::all_of(identity.uses(), [](uint32_t use) { return use == 0; })) ++records_;
}

void BadExamples::Add(const BadExample& bad) {
  if (!seen_.insert(std::hash<std::string>()(bad.uri + '\0' + bad.key)).second) return;
  {
    MutexLock lock(mutex_);
    ++count_;
    if (named_.size() < kNamed) named_.push_back(bad);
  }
  // Storage's own errors name the file already.
  const std::string what = bad.error.what();
  const std::string name = bad.uri.ends_with(bad.key) ? bad.uri : bad.uri + ": " + bad.key;
  last_ = what.starts_with(bad.uri) ? what : name + ": " + what;
  if (log_) log_("skipped " + last_);
  if (policy_.has_max_count() && seen_.size() > policy_.max_count()) {
    ThrowTooMany("at most " + std::to_string(policy_.max_count()));
  }
  CheckFraction(std::max(records_, kFewestRecords));
}

void BadExamples::EndEpoch() const { CheckFraction(records_); }

void BadExamples::CheckFraction(uint64_t records) const {
  const auto bad = static_cast<double>(seen_.size());
  if (policy_.has_max_fraction() && bad > policy_.max_fraction() * static_cast<double>(records)) {
    ThrowTooMany("at most a fraction of " + std::to_string(policy_.max_fraction()));
  }
}

void BadExamples::ThrowTooMany(std::string wanted) const {
  throw Error({.code = ErrorCode::kLimitExceeded,
               .what = "too many bad examples, the last: " + last_,
               .where = "bad_examples",
               .got = std::to_string(seen_.size()) + " in " + std::to_string(records_) + " records",
               .wanted = std::move(wanted)});
}

uint64_t BadExamples::count() const {
  MutexLock lock(mutex_);
  return count_;
}

std::vector<BadExample> BadExamples::named() const {
  MutexLock lock(mutex_);
  return named_;
}

}  // namespace echopipe::internal
