// Uris with braces and globs. The first line is the uri; the others are paths of files there are.
//
// Parses: io/glob.cc

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fnmatch.h>

#include <echopipe/base/error.h>
#include <echopipe/io/glob.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::BufferPool;
using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::FolderEntry;
using echopipe::ReadRequest;
using echopipe::Result;
using echopipe::Storage;
using echopipe::StorageStats;
using echopipe::internal::ExpandBraces;
using echopipe::internal::ExpandUri;
using echopipe::internal::MatchesGlob;
using echopipe::internal::PlainNames;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

using Kind = FolderEntry::Kind;
using Names = std::vector<std::string>;

// ---- A tree of empty files

// Of a storage's file.
bool IsPath(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return path.find('\0') == std::string_view::npos;
}

class Tree final : public Storage {
 public:
  /// Precondition: IsPath(path).
  void Add(std::string_view path) {
    std::string folder = path.starts_with('/') ? "/" : "";
    for (size_t begin = folder.size(); begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string name(path.substr(begin, end - begin));
      Kind& kind = folders_[folder].emplace(name, Kind::kFile).first->second;
      if (end < path.size()) kind = Kind::kFolder;
      folder += name + "/";
      begin = end + 1;
    }
  }
  /// A folder's path ends in "/".
  bool Has(const std::string& path) const {
    if (path.ends_with('/')) return folders_.contains(path);
    const size_t slash = path.rfind('/') + 1;
    const auto folder = folders_.find(path.substr(0, slash));
    return folder != folders_.end() && folder->second.contains(path.substr(slash));
  }

  Result<std::vector<FolderEntry>> List(const std::string& path) override {
    const auto folder = folders_.find(path == "." ? "" : path);
    if (folder == folders_.end()) return Missing(path);
    std::vector<FolderEntry> entries;
    for (const auto& [name, kind] : folder->second) entries.push_back({.name = name, .kind = kind});
    return entries;
  }
  Result<uint64_t> Size(const std::string& path) override { return Missing(path); }
  ReadId Read(ReadRequest request, BufferPool&, Callback callback) override {
    callback(Missing(request.path));
    return 0;
  }
  void Cancel(ReadId) override {}
  StorageStats Stats() const override { return {}; }

 private:
  static Error Missing(const std::string& path) {
    return Error({.code = ErrorCode::kNotFound, .what = "no such file or folder", .where = path});
  }

  std::map<std::string, std::map<std::string, Kind>> folders_;  // by their paths
};

// ---- Braces

bool HasUnescaped(std::string_view text, std::string_view wanted) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (wanted.find(text[i]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// Of what makes many names of one; millions of them are another test's.
bool TakesLong(std::string_view uri) {
  constexpr int kMostDigitsAndCommas = 5;
  const auto makes_more = [](char c) { return ('0' <= c && c <= '9') || c == ','; };
  return std::ranges::count_if(uri, makes_more) > kMostDigitsAndCommas;
}

void CheckBraces(const std::string& uri) {
  const Names names = ExpandBraces(uri);
  Require(!names.empty());
  if (!HasUnescaped(uri, "{")) Require(names == Names{uri});
  for (const std::string& name : {names.front(), names[names.size() / 2], names.back()}) {
    Require(!HasUnescaped(name, "{") && ExpandBraces(name) == Names{name});
  }
}

// ---- Globs

// That is, not what POSIX leaves open or says of languages, nor what may take it exponential time.
bool IsSaidByPosix(std::string_view pattern, std::string_view name) {
  const auto has = [&](std::string_view part) {
    return pattern.find(part) != std::string_view::npos;
  };
  if (std::ranges::count(pattern, '*') > 3 || pattern.ends_with('\\')) return false;
  if (has("[:") || has("[.") || has("[=") || has("[^") || (has("[") && has("\\"))) return false;
  return !has({"\0", 1}) && name.find('\0') == std::string_view::npos;
}

void CheckMatch(const std::string& pattern, const std::string& name) {
  const bool matches = MatchesGlob(pattern, name);
  if (IsSaidByPosix(pattern, name)) {
    Require(matches == (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0));
  }
  // Taken for what they are, all names match themselves.
  std::string escaped;
  for (const char c : name) escaped += {'\\', c};
  Require(MatchesGlob(escaped, name));
  Require(MatchesGlob(escaped + "*", name) && MatchesGlob(escaped + "*", name + "x"));
  Require(!MatchesGlob(escaped + "?", name));
}

// ---- Uris

bool IsAnyOf(const std::string& name, const Names& sorted) {
  return std::ranges::binary_search(sorted, name);
}

// What there is, or what a uri without a glob names.
void CheckNames(const std::string& uri, const Names& names, const Tree& tree) {
  Names plain = PlainNames(uri);
  Require(names.size() >= plain.size());
  std::ranges::sort(plain);
  for (const std::string& name : names) Require(IsAnyOf(name, plain) || tree.Has(name));
}

void CheckUri(const std::string& uri, Tree& tree) {
  try {
    CheckBraces(uri);
    CheckNames(uri, ExpandUri(uri, tree), tree);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kInvalidArgument ||
            error.code() == ErrorCode::kLimitExceeded || error.code() == ErrorCode::kNotFound);
    // The pattern, or of a list the alternative, that is to blame.
    Require(!error.details().where.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const std::string uri(input.TakeLine());
  Tree tree;
  while (!input.empty()) {
    const std::string path(input.TakeLine());
    if (IsPath(path)) tree.Add(path);
    CheckMatch(uri, path);
  }
  if (!TakesLong(uri)) CheckUri(uri, tree);
  return 0;
}
