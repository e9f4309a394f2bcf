#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace echopipe::cli {

/// The program's arguments, last one first as CLI11 takes them, with the underscores in the names
/// of flags made hyphens.
std::vector<std::string> ReversedArguments(int argc, char** argv);

/// For the first flag that the chosen subcommand does not know: "no flag --ecoh; did you mean
/// --echo?". Empty if there was none.
std::string Suggestion(const CLI::App& app);

}  // namespace echopipe::cli
