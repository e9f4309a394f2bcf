#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace echopipe::cli {

/// Both ends belong to it.
struct CountRange {
  uint64_t least = 0;
  uint64_t most = 0;
};

/// These throw kInvalidArgument with `flag` as its place.

/// A whole number, in decimal digits.
uint64_t ParseCount(const std::string& flag, const std::string& text, const CountRange& range);
/// "4096", "64K", "1.5G" (powers of 1000), "512Mi" (powers of 1024); a B may follow. Not 0.
uint64_t ParseBytes(const std::string& flag, const std::string& text);
/// Bytes per second: as ParseBytes(), with or without "/s", or "80Mbit".
uint64_t ParseRate(const std::string& flag, const std::string& text);
/// "250us", "5ms", "1.5s"; up to an hour.
std::chrono::nanoseconds ParseDuration(const std::string& flag, const std::string& text);
/// "80", "2.5"; up to an hour.
std::chrono::nanoseconds ParseMilliseconds(const std::string& flag, const std::string& text);

}  // namespace echopipe::cli
