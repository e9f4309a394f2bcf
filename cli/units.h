#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace echopipe::cli {

/// These throw kInvalidArgument with `flag` as its place.

/// "4096", "64K", "1.5G" (powers of 1000), "512Mi" (powers of 1024); a B may follow.
uint64_t ParseBytes(const std::string& flag, const std::string& text);
/// Bytes per second: as ParseBytes(), with or without "/s", or "80Mbit".
uint64_t ParseRate(const std::string& flag, const std::string& text);
/// "250us", "5ms", "1.5s".
std::chrono::nanoseconds ParseDuration(const std::string& flag, const std::string& text);

}  // namespace echopipe::cli
