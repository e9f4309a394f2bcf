#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace echopipe::testing {

/// Pearson's statistic of counts that should be alike, in standard deviations of what a uniform
/// source gives: about 0 +- 1 if they are.
inline double ChiSquareDeviation(const std::vector<uint64_t>& counts) {
  const auto cells = static_cast<double>(counts.size());
  const double expected =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0})) / cells;
  double statistic = 0;
  for (const uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    statistic += difference * difference / expected;
  }
  return (statistic - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

/// Counts that a uniform source may give: neither too uneven nor too even. For fixed seeds, so a
/// test that has passed once always does.
MATCHER(LooksUniform, "looks uniform") {
  const double deviation = ChiSquareDeviation(arg);
  *result_listener << "whose chi-square is off by " << deviation << " standard deviations";
  return std::abs(deviation) < 4;
}

}  // namespace echopipe::testing
