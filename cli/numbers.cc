#include <cmath>
#include <cstdio>

#include <echopipe/cli/numbers.h>

namespace echopipe::cli {

std::string WithCommas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string Decimal(double number, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, number);
  return text;
}

std::string Rate(double per_second) {
  return per_second < 99.95 ? Decimal(per_second, 1)
                            : WithCommas(static_cast<uint64_t>(std::llround(per_second)));
}

std::string Percent(double share) { return Decimal(share * 100, 0) + "%"; }

std::string Bytes(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double amount = static_cast<double>(bytes) / 1000;
  const char* unit = "kMGTPE";
  for (; amount >= 999.95; ++unit) amount /= 1000;
  return Decimal(amount, 1) + " " + *unit + "B";
}

}  // namespace echopipe::cli
