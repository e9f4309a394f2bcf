#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include <echopipe/cli/units.h>

namespace echopipe::cli {

/// A flag of a whole number. Without CLI11's own conversion, which takes "010" for 8 and "true" for
/// 1, and has messages of its own. `value` must outlive `command`.
template <class T>
CLI::Option* AddCountFlag(CLI::App& command, const std::string& flag, T& value,
                          const CountRange& range, const std::string& help) {
  const auto set = [flag, range, &value](const std::string& text) {
    value = static_cast<T>(ParseCount(flag, text, range));
  };
  return command.add_option_function<std::string>(flag, set, help)->type_name("N");
}

}  // namespace echopipe::cli
