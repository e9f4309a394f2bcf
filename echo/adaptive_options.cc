#include <algorithm>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/echo/adaptive_order.h>

namespace echopipe {
namespace {

constexpr uint64_t kMaxBuffer = uint64_t{1} << 31;

void Require(bool condition, const char* where, uint64_t got, const std::string& wanted) {
  if (condition) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "out of range",
               .where = where,
               .got = std::to_string(got),
               .wanted = wanted});
}

}  // namespace

void AdaptiveOptions::Validate() const {
  Require(max_factor >= 1 && max_factor <= kMaxFactor, "echo.adaptive.max_factor", max_factor,
          "1 to " + std::to_string(kMaxFactor));
  Require(shuffle_buffer >= 1 && shuffle_buffer <= kMaxBuffer, "echo.shuffle_buffer",
          shuffle_buffer, "1 to 2^31");
  Require(spacing <= shuffle_buffer, "echo.spacing", spacing,
          "at most the shuffle buffer's " + std::to_string(shuffle_buffer));
  const uint64_t least_age = std::max(spacing, uint64_t{1});
  Require(max_age >= least_age, "echo.adaptive.max_age", max_age,
          "at least the spacing's " + std::to_string(least_age));
}

}  // namespace echopipe
