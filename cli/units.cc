#include <charconv>
#include <span>
#include <string_view>

#include <echopipe/base/error.h>
#include <echopipe/cli/units.h>

namespace echopipe::cli {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kBytes[] = {{"", 1},          {"K", 1e3},      {"M", 1e6},      {"G", 1e9},
                           {"Ki", 1024},     {"Mi", 1048576}, {"Gi", 1 << 30}, {"B", 1},
                           {"KB", 1e3},      {"MB", 1e6},     {"GB", 1e9},     {"KiB", 1024},
                           {"MiB", 1048576}, {"GiB", 1 << 30}};
constexpr Unit kBits[] = {{"bit", 1. / 8}, {"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}};
constexpr Unit kNanoseconds[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

// Far above any use, and exact in a double.
constexpr double kMost = 1e15;

// The value of "NUMBER UNIT", or a negative number if that is not what the text is.
double Parse(std::string_view text, std::span<const Unit> units) {
  double number = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return -1;
  const std::string_view name(rest, static_cast<size_t>(text.data() + text.size() - rest));
  for (const Unit& unit : units) {
    if (unit.name == name && number * unit.factor <= kMost) return number * unit.factor;
  }
  return -1;
}

[[noreturn]] void Throw(const std::string& flag, const std::string& text, const char* wanted) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "not a quantity with a unit known here",
               .where = flag,
               .got = text,
               .wanted = wanted});
}

}  // namespace

uint64_t ParseBytes(const std::string& flag, const std::string& text) {
  const double bytes = Parse(text, kBytes);
  if (bytes < 0) Throw(flag, text, "bytes, as 64M or 512Mi");
  return static_cast<uint64_t>(bytes);
}

uint64_t ParseRate(const std::string& flag, const std::string& text) {
  std::string_view rate = text;
  if (rate.ends_with("/s")) rate.remove_suffix(2);
  const double bytes = std::max(Parse(rate, kBytes), Parse(rate, kBits));
  if (bytes < 0) Throw(flag, text, "bytes per second, as 4M, or bits, as 80Mbit");
  return static_cast<uint64_t>(bytes);
}

std::chrono::nanoseconds ParseDuration(const std::string& flag, const std::string& text) {
  const double nanoseconds = Parse(text, kNanoseconds);
  if (nanoseconds < 0) Throw(flag, text, "a duration, as 5ms, 250us or 1.5s");
  return std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds));
}

}  // namespace echopipe::cli
