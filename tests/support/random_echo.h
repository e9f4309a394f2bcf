#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <echopipe/base/random.h>

namespace echopipe::testing {

/// " name: 12", for a spec's text.
inline std::string Number(const char* name, uint64_t value) {
  return std::string(" ") + name + ": " + std::to_string(value);
}

inline constexpr std::array kEchoFactors = {"1", "1.15", "1.5", "2", "3", "7.25"};

/// An echo stage's text, of this factor: buffers from none to more than there are records, with and
/// without spacing, grouped and drained.
inline std::string RandomEcho(RandomStream& random, const std::string& factor) {
  std::string echo = "stage { echo { factor: " + factor;
  const uint64_t buffer = 1 + random.Below(40);
  switch (random.Below(3)) {
    case 0:
      break;
    case 1:
      echo += Number("shuffle_buffer", buffer) +
              Number("spacing", random.Below(static_cast<uint32_t>(buffer) + 1));
      break;
    case 2:
      echo += Number("shuffle_buffer", buffer) + " spacing: 0 grouped: true";
      break;
  }
  if (random.Below(4) == 0) echo += " drain_each_epoch: true";
  return echo + " } } ";
}

}  // namespace echopipe::testing
