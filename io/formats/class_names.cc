#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/replace_file.h>
#include <echopipe/io/formats/class_names.h>

namespace echopipe::internal {
namespace {

constexpr size_t kMaxFileBytes = size_t{64} << 20;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> piece;
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
    if (text.size() <= kMaxFileBytes) continue;
    throw Error({.code = ErrorCode::kLimitExceeded,
                 .what = "the classes file is too large",
                 .where = path,
                 .wanted = "at most " + std::to_string(kMaxFileBytes) + " bytes"});
  }
  if (!file.eof()) {
    throw Error({.code = ErrorCode::kIo, .what = "cannot read the classes file", .where = path});
  }
  return text;
}

std::vector<std::string> SplitLines(const std::string& path, std::string_view text) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool fresh = !line.empty() && seen.emplace(line).second;
    if (!fresh) {
      throw Error(
          {.code = ErrorCode::kInvalidArgument,
           .what = line.empty() ? "a line of the classes file is empty" : "a class comes twice",
           .where = path + " line " + std::to_string(names.size() + 1),
           .got = std::string(line)});
    }
    names.emplace_back(line);
  }
  return names;
}

}  // namespace

std::optional<std::vector<std::string>> ReadClassNames(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return SplitLines(path, ReadAll(path));
}

void WriteClassNames(const std::string& path, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (name.find_first_of("\r\n") != std::string::npos) {
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "a class name with a line break does not fit into a classes file",
                   .where = path,
                   .got = name});
    }
    text += name + "\n";
  }
  ReplaceFile(path, text);
}

}  // namespace echopipe::internal
