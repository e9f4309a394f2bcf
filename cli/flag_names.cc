#include <algorithm>
#include <numeric>
#include <string_view>

#include <echopipe/cli/flag_names.h>

namespace echopipe::cli {
namespace {

// Insertions, deletions and replacements that make one of the other (Levenshtein).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string Nearest(const std::string& flag, const CLI::App& command) {
  std::string nearest;
  size_t least = std::max<size_t>(2, flag.size() / 3) + 1;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const size_t distance = Distance(flag, name);
    if (distance >= least || !name.starts_with("--")) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace

std::vector<std::string> ReversedArguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    const auto end = std::ranges::find(argument, '=');
    std::replace(argument.begin(), end, '_', '-');
  }
  std::ranges::reverse(arguments);
  return arguments;
}

std::string Suggestion(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (std::string flag : command->remaining()) {
      if (!flag.starts_with("-")) continue;
      flag = flag.substr(0, flag.find('='));
      const std::string nearest = Nearest(flag, *command);
      return "no flag " + flag + (nearest.empty() ? "" : "; did you mean " + nearest + "?");
    }
  }
  return "";
}

}  // namespace echopipe::cli
