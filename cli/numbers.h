#pragma once

#include <cstdint>
#include <string>

namespace echopipe::cli {

/// Numbers as people read them.

/// "12,345".
std::string WithCommas(uint64_t number);
/// With so many decimals.
std::string Decimal(double number, int decimals);
/// "1,234", or "12.3" below 100.
std::string Rate(double per_second);
/// 0.254: "25%".
std::string Percent(double share);
/// "1.5 MB" (powers of 1000).
std::string Bytes(uint64_t bytes);

}  // namespace echopipe::cli
