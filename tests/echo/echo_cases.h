#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <echopipe/base/random.h>
#include <echopipe/echo/echo_order.h>

namespace echopipe::testing {

// Long grids run in optimised builds without sanitizers; elsewhere a small sample of them.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
inline constexpr int kThoroughness = 100;
#else
inline constexpr int kThoroughness = 2;
#endif

__extension__ using Wide = unsigned __int128;

/// floor(n * e), and what the next item adds to it.
inline Wide ExactUses(uint64_t n, const EchoFactor& factor) {
  return Wide{n} * static_cast<uint64_t>(factor.millionths()) / 1'000'000;
}
inline uint64_t ExactShare(uint64_t item, const EchoFactor& factor) {
  return static_cast<uint64_t>(ExactUses(item + 1, factor) - ExactUses(item, factor));
}

/// One run of an echo point: its options, and the items of each epoch that ends in a drain.
struct EchoCase {
  uint64_t number = 0;
  EchoOptions options = {};
  std::vector<uint64_t> epochs = {};
  bool early_close = false;  ///< right after the last item, not only when the next is needed

  std::string ToString() const {
    std::ostringstream text;
    text << "case " << number << ": factor " << options.factor.value() << " shuffle_buffer "
         << options.shuffle_buffer << " spacing " << options.spacing << " grouped "
         << options.grouped << " seed " << options.seed << " point " << options.point
         << " early_close " << early_close << " epochs";
    for (const uint64_t items : epochs) text << ' ' << items;
    return text.str();
  }
};

inline constexpr double kFactors[] = {1, 1.000001, 1.15, 1.5, 2, 2.333333, 5, 17.25, 64, 100};

/// The case of a number: the same on every machine. At most `max_items` in all.
inline EchoCase MakeEchoCase(uint64_t number, double factor, uint64_t max_items = 400) {
  RandomStream random({.low = number, .high = 0xec40});
  const auto between = [&](uint64_t low, uint64_t high) {
    return low + random.Below(static_cast<uint32_t>(high - low + 1));
  };
  EchoCase made{.number = number, .options = {.factor = factor}};
  made.options.shuffle_buffer = between(1, 64);
  made.options.grouped = random.Bernoulli(0.1);
  if (!made.options.grouped && random.Bernoulli(0.85)) {
    made.options.spacing = random.Bernoulli(0.15) ? made.options.shuffle_buffer
                                                  : between(0, made.options.shuffle_buffer);
  }
  made.options.seed = uint64_t{random.Next()} << 32 | random.Next();
  made.options.point = between(0, 7);
  made.early_close = random.Bernoulli(0.2);
  // Most cases are kept to some 2,000 draws, so that there can be many.
  uint64_t items = between(0, max_items);
  if (!random.Bernoulli(0.03)) items = std::min(items, static_cast<uint64_t>(2000 / factor));
  for (uint64_t epoch = random.Bernoulli(0.6) ? 0 : between(1, 3); epoch > 0; --epoch) {
    made.epochs.push_back(between(0, items));
    items -= made.epochs.back();
  }
  made.epochs.push_back(items);
  return made;
}

}  // namespace echopipe::testing
