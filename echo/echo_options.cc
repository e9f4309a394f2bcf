#include <string>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_order.h>

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

void EchoOptions::Validate() const {
  Require(shuffle_buffer >= 1 && shuffle_buffer <= kMaxBuffer, "echo.shuffle_buffer",
          shuffle_buffer, "1 to 2^31");
  Require(spacing <= shuffle_buffer, "echo.spacing", spacing,
          "at most the shuffle buffer's " + std::to_string(shuffle_buffer));
  Require(!grouped || spacing == 0, "echo.spacing", spacing, "0 with grouped");
}

}  // namespace echopipe
