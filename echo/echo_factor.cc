#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_factor.h>

namespace echopipe {
namespace {

// All the places there are, unlike std::to_string.
std::string ToText(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value).ptr};
}

}  // namespace

EchoFactor::EchoFactor(double factor) {
  const double scaled = factor * kUnit;
  // A decimal of six places is at most a few units in the last place away from its double.
  if (!(factor >= 1 && factor <= kMax) || std::abs(scaled - std::round(scaled)) > 1e-5) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "not an echo factor",
                 .where = "echo.factor",
                 .got = ToText(factor),
                 .wanted = "a decimal from 1 to 1000 with at most six places"});
  }
  millionths_ = std::llround(scaled);
}

uint64_t EchoFactor::Uses(uint64_t n) const {
  const auto units = static_cast<uint64_t>(millionths_);
  // n * e without overflow: whole units and the rest apart.
  return n * (units / kUnit) + n / kUnit * (units % kUnit) + n % kUnit * (units % kUnit) / kUnit;
}

}  // namespace echopipe
