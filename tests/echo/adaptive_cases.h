#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <echopipe/base/random.h>
#include <echopipe/echo/adaptive_order.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe::testing {

enum class AdaptiveEvent : uint8_t { kAdmit, kPass, kEcho };

/// One run of an adaptive echo point: its options, and what it is asked for. An echo that cannot be
/// is left out.
struct AdaptiveCase {
  uint64_t number = 0;
  AdaptiveOptions options = {};
  std::vector<AdaptiveEvent> events = {};

  std::string ToString() const {
    std::ostringstream text;
    text << "case " << number << ": max_factor " << options.max_factor << " shuffle_buffer "
         << options.shuffle_buffer << " spacing " << options.spacing << " max_age "
         << options.max_age << " seed " << options.seed << " point " << options.point << " events ";
    for (const AdaptiveEvent event : events) text << "ape"[static_cast<size_t>(event)];
    return text.str();
  }
};

/// The case of a number: the same on every machine.
inline AdaptiveCase MakeAdaptiveCase(uint64_t number) {
  RandomStream random({.low = number, .high = 0xada9});
  const auto between = [&](uint64_t low, uint64_t high) {
    return low + random.Below(static_cast<uint32_t>(high - low + 1));
  };
  AdaptiveCase made{.number = number};
  AdaptiveOptions& options = made.options;
  constexpr uint32_t kMaxFactors[] = {1, 2, 3, 4, 6, 8, 8, 65, 130, 1000};
  options.max_factor = kMaxFactors[random.Below(10)];
  options.shuffle_buffer = random.Bernoulli(0.2) ? between(1, 3) : between(1, 40);
  options.spacing =
      random.Bernoulli(0.15) ? options.shuffle_buffer : between(0, options.shuffle_buffer);
  if (random.Bernoulli(0.3))
    options.max_age = std::max<uint64_t>(options.spacing, 1) + between(0, 100);
  options.seed = uint64_t{random.Next()} << 32 | random.Next();
  options.point = between(0, 7);
  const double tombstones = random.Bernoulli(0.5) ? 0 : random.Uniform(0, 0.4);
  // Upstream keeps up, is slow, stops: by turns.
  for (uint64_t phase = between(1, 5); phase > 0; --phase) {
    const double fresh = random.Bernoulli(0.2) ? 0 : random.Uniform();
    for (uint64_t left = between(0, 60); left > 0; --left) {
      made.events.push_back(!random.Bernoulli(fresh)       ? AdaptiveEvent::kEcho
                            : random.Bernoulli(tombstones) ? AdaptiveEvent::kPass
                                                           : AdaptiveEvent::kAdmit);
    }
  }
  return made;
}

}  // namespace echopipe::testing
