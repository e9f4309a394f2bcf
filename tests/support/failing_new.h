#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace echopipe::testing {

// A program that has failing_new.cc among its sources has another operator new. The allocations of
// threads that count are numbered; those numbered [fail_begin, fail_end) fail.

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;  // can be added to

extern thread_local bool counts;  ///< true at first; threads that a test starts set it
extern std::atomic<int64_t> allocations;
extern std::atomic<int64_t> fail_begin;  ///< kNever at first
extern std::atomic<int64_t> fail_end;

/// Numbers an allocation; true if it has to fail.
bool FailsNow();

/// This thread does not count in the scope.
class Uncounted {
 public:
  Uncounted() : before_(counts) { counts = false; }
  ~Uncounted() { counts = before_; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  bool before_;
};

}  // namespace echopipe::testing
