#include <charconv>
#include <optional>
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
constexpr Unit kMilliseconds[] = {{"", 1e6}};
constexpr Unit kNanoseconds[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

// Far above any use, and exact in a double.
constexpr double kMost = 1e15;
constexpr double kHour = 3600e9;

struct Range {
  double least;
  double most;
  const char* wanted;
};

[[noreturn]] void Throw(const char* what, const std::string& flag, const std::string& text,
                        const std::string& wanted) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = what,
               .where = flag,
               .got = text,
               .wanted = wanted});
}

// The value of "NUMBER UNIT", if that is what the text is.
std::optional<double> Parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view name(rest, static_cast<size_t>(text.data() + text.size() - rest));
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  return std::nullopt;
}

double Quantity(const std::string& flag, const std::string& text, std::optional<double> value,
                const Range& range) {
  if (!value) Throw("not a quantity with a unit known here", flag, text, range.wanted);
  // Neither is a NaN within.
  const bool within = *value >= range.least && *value <= range.most;
  if (!within) Throw("out of range", flag, text, range.wanted);
  return *value;
}

std::chrono::nanoseconds Nanoseconds(double count) {
  return std::chrono::nanoseconds(static_cast<int64_t>(count));
}

}  // namespace

uint64_t ParseCount(const std::string& flag, const std::string& text, const CountRange& range) {
  uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && rest == end && count >= range.least && count <= range.most) {
    return count;
  }
  Throw("not a whole number in range", flag, text,
        std::to_string(range.least) + " to " + std::to_string(range.most));
}

uint64_t ParseBytes(const std::string& flag, const std::string& text) {
  constexpr Range kRange{1, kMost, "1 byte to 1000 TB, as 64M or 512Mi"};
  return static_cast<uint64_t>(Quantity(flag, text, Parse(text, kBytes), kRange));
}

uint64_t ParseRate(const std::string& flag, const std::string& text) {
  constexpr Range kRange{1, kMost, "1 byte per second to 1000 TB/s, as 4M, or bits, as 80Mbit"};
  std::string_view rate = text;
  if (rate.ends_with("/s")) rate.remove_suffix(2);
  const std::optional<double> bytes = Parse(rate, kBytes);
  return static_cast<uint64_t>(Quantity(flag, text, bytes ? bytes : Parse(rate, kBits), kRange));
}

std::chrono::nanoseconds ParseDuration(const std::string& flag, const std::string& text) {
  constexpr Range kRange{0, kHour, "a duration up to an hour, as 5ms, 250us or 1.5s"};
  return Nanoseconds(Quantity(flag, text, Parse(text, kNanoseconds), kRange));
}

std::chrono::nanoseconds ParseMilliseconds(const std::string& flag, const std::string& text) {
  constexpr Range kRange{0, kHour, "milliseconds from 0 to 3600000, as 80 or 2.5"};
  return Nanoseconds(Quantity(flag, text, Parse(text, kMilliseconds), kRange));
}

}  // namespace echopipe::cli
