#include <algorithm>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/pipeline/graph/bad_examples.h>

namespace echopipe::internal {
namespace {

// Within an epoch a fraction of fewer says little: one bad in three is not a third of the data.
constexpr uint64_t kFewestRecords = 1000;

uint64_t HashOf(const std::string& uri, const std::string& key) {
  return HashBytes(key, HashBytes(uri));
}

bool IsFresh(const Identity& identity) {
  return std::ranges::all_of(identity.uses(), [](uint32_t use) { return use == 0; });
}

}  // namespace

void BadTally::CountPlace(const Identity& identity, size_t bad_ones) {
  if (!IsFresh(identity)) return;
  ++records;
  if (bad_ones > 0) ++bad_records;
}

bool BadTally::Add(const Identity& identity, const BadExample& example) {
  const bool is_new = bad.insert(HashOf(example.uri, example.key)).second;
  if (is_new && !IsFresh(identity)) ++bad_records;
  if (!is_new) return false;
  // Storage's own errors name the file already.
  const std::string what = example.error.what();
  last = what.starts_with(example.uri) ? what : RecordName(example.uri, example.key) + ": " + what;
  return true;
}

std::string RecordName(const std::string& uri, const std::string& key) {
  return uri.ends_with(key) ? uri : uri + ": " + key;
}

Error NamedError(const BadExample& bad) {
  return bad.error.Within(bad.stage).Within(RecordName(bad.uri, bad.key));
}

BadExamples::BadExamples(const proto::BadExamples& policy, BadTally tally,
                         const RuntimeOptions& options)
    : policy_(policy),
      log_(options.log),
      on_bad_example_(options.on_bad_example),
      tally_(std::move(tally)),
      count_(tally_.bad.size()) {}

void BadExamples::CountPlace(const Identity& identity, size_t bad_ones) {
  tally_.CountPlace(identity, bad_ones);
}

void BadExamples::Add(const Identity& identity, const BadExample& bad, Fate fate) {
  if (tally_.Add(identity, bad)) {
    {
      MutexLock lock(mutex_);
      ++count_;
      if (named_.size() < kNamed) named_.push_back(bad);
    }
    if (log_) log_((fate == Fate::kSkipped ? "skipped " : "replaced ") + tally_.last);
    if (on_bad_example_) on_bad_example_(bad);
    if (policy_.has_max_count() && tally_.bad.size() > policy_.max_count()) {
      ThrowTooMany(tally_.bad.size(), "at most " + std::to_string(policy_.max_count()));
    }
  }
  CheckFraction(std::max(tally_.records, kFewestRecords));
}

void BadExamples::AddPartial(const Provenance& from) {
  const std::string uri = from.uri ? *from.uri : "";
  if (!partial_.insert(HashOf(uri, from.key)).second) return;
  {
    MutexLock lock(mutex_);
    ++partial_count_;
  }
  if (log_) log_("truncated, used as far as it goes: " + RecordName(uri, from.key));
}

void BadExamples::EndEpoch() const { CheckFraction(tally_.records); }

void BadExamples::CheckFraction(uint64_t records) const {
  const auto bad = static_cast<double>(tally_.bad_records);
  if (policy_.has_max_fraction() && bad > policy_.max_fraction() * static_cast<double>(records)) {
    ThrowTooMany(tally_.bad_records,
                 "at most a fraction of " + std::to_string(policy_.max_fraction()));
  }
}

void BadExamples::ThrowTooMany(uint64_t bad, std::string wanted) const {
  throw Error({.code = ErrorCode::kLimitExceeded,
               .what = "too many bad examples, the last: " + tally_.last,
               .where = "bad_examples",
               .got = std::to_string(bad) + " in " + std::to_string(tally_.records) + " records",
               .wanted = std::move(wanted)});
}

uint64_t BadExamples::count() const {
  MutexLock lock(mutex_);
  return count_;
}

uint64_t BadExamples::partial_count() const {
  MutexLock lock(mutex_);
  return partial_count_;
}

std::vector<BadExample> BadExamples::named() const {
  MutexLock lock(mutex_);
  return named_;
}

}  // namespace echopipe::internal
