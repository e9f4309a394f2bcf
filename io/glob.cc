#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <echopipe/io/formats/shard_index.h>
#include <echopipe/io/glob.h>
#include <echopipe/io/http/uri.h>

namespace echopipe::internal {
namespace {

constexpr int kMaxBraceDepth = 8;
constexpr int kMaxBraces = 64;  // one behind the other
constexpr size_t kMaxRangeDigits = 18;

[[noreturn]] void ThrowBadBraces(std::string_view pattern, std::string what) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = std::move(what),
               .where = std::string(pattern)});
}

/// The names made so far, within the caps.
class Names {
 public:
  explicit Names(std::string_view pattern) : pattern_(pattern) {}

  void Add(std::string name) {
    bytes_ += name.size();
    if (names_.size() == kMaxExpandedNames || bytes_ > kMaxExpandedBytes) {
      throw Error({.code = ErrorCode::kLimitExceeded,
                   .what = "the pattern stands for too many names",
                   .where = std::string(pattern_),
                   .wanted = "at most " + std::to_string(kMaxExpandedNames) + " names of " +
                             std::to_string(kMaxExpandedBytes) + " bytes in all"});
    }
    names_.push_back(std::move(name));
  }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  std::string_view pattern_;
  std::vector<std::string> names_;
  size_t bytes_ = 0;
};

// The place of the next `wanted` outside escapes, or npos.
size_t FindUnescaped(std::string_view text, char wanted, size_t from = 0) {
  for (size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == wanted) {
      return i;
    }
  }
  return std::string_view::npos;
}

// The inside of the braces that open at `open`, and its alternatives.
struct Braces {
  size_t close = 0;
  std::vector<std::string_view> parts;  // split at the commas of this level
};

Braces ParseBraces(std::string_view pattern, std::string_view text, size_t open) {
  Braces braces;
  int depth = 0;
  size_t begin = open + 1;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      if (++depth > kMaxBraceDepth) ThrowBadBraces(pattern, "braces nest too deep");
    } else if (text[i] == '}' && --depth == 0) {
      braces.parts.push_back(text.substr(begin, i - begin));
      braces.close = i;
      return braces;
    } else if (text[i] == ',' && depth == 1) {
      braces.parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  ThrowBadBraces(pattern, "a brace is not closed");
}

std::optional<uint64_t> ParseDecimal(std::string_view digits) {
  uint64_t value = 0;
  if (digits.empty() || digits.size() > kMaxRangeDigits) return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

struct Range {
  uint64_t first = 0;
  uint64_t last = 0;
  size_t width = 0;

  uint64_t steps() const { return first < last ? last - first : first - last; }
  std::string At(uint64_t step) const {
    std::string digits = std::to_string(first < last ? first + step : first - step);
    if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
    return digits;
  }
};

std::optional<Range> ParseRange(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view first_digits = text.substr(0, dots);
  const std::string_view last_digits = text.substr(dots + 2);
  const std::optional<uint64_t> first = ParseDecimal(first_digits);
  const std::optional<uint64_t> last = ParseDecimal(last_digits);
  if (!first || !last) return std::nullopt;
  const auto padded = [](std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; };
  const bool keep_width = padded(first_digits) || padded(last_digits);
  return Range{.first = *first,
               .last = *last,
               .width = keep_width ? std::max(first_digits.size(), last_digits.size()) : 0};
}

void ExpandInto(std::string_view pattern, const std::string& text, size_t from, int braces_before,
                Names* names) {
  const size_t open = FindUnescaped(text, '{', from);
  if (open == std::string::npos) {
    names->Add(text);
    return;
  }
  if (braces_before == kMaxBraces) ThrowBadBraces(pattern, "the pattern has too many braces");
  const Braces braces = ParseBraces(pattern, text, open);
  const std::string before = text.substr(0, open);
  const std::string after = text.substr(braces.close + 1);
  if (braces.parts.size() > 1) {
    // An alternative may have braces of its own, so what follows is scanned from its begin.
    for (const std::string_view part : braces.parts) {
      ExpandInto(pattern, before + std::string(part) + after, open, braces_before + 1, names);
    }
    return;
  }
  const std::optional<Range> range = ParseRange(braces.parts[0]);
  if (!range) ThrowBadBraces(pattern, "braces hold neither a list nor a range of numbers");
  for (uint64_t step = 0; step <= range->steps(); ++step) {
    ExpandInto(pattern, before + range->At(step) + after, open, braces_before + 1, names);
  }
}

/// One step of a glob over one character.
struct GlobStep {
  bool matches = false;
  size_t next = 0;  // where the pattern goes on
};

// "[...]" that opens at `open`; without a closing bracket it is a plain "[".
GlobStep MatchSet(std::string_view pattern, size_t open, char c) {
  size_t i = open + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  const auto byte = [](char value) { return static_cast<unsigned char>(value); };
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const char low = pattern[i++];
    char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      high = pattern[i + 1];
      i += 2;
    }
    found = found || (byte(low) <= byte(c) && byte(c) <= byte(high));
  }
  if (i >= pattern.size()) return {.matches = c == '[', .next = open + 1};
  return {.matches = found != negated, .next = i + 1};
}

GlobStep MatchOne(std::string_view pattern, size_t at, char c) {
  if (pattern[at] == '?') return {.matches = true, .next = at + 1};
  if (pattern[at] == '[') return MatchSet(pattern, at, c);
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return {.matches = pattern[at] == c, .next = at + 1};
}

// Behind "http://host:port", whose brackets are those of an address.
size_t NamesBegin(std::string_view pattern) {
  if (!IsHttpUri(pattern)) return 0;
  return std::min(pattern.find('/', pattern.find("//") + 2), pattern.size());
}

bool HasGlob(std::string_view text) {
  text.remove_prefix(NamesBegin(text));
  return FindUnescaped(text, '*') != std::string_view::npos ||
         FindUnescaped(text, '?') != std::string_view::npos ||
         FindUnescaped(text, '[') != std::string_view::npos;
}

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

// The part that needs no matching: up to the last "/" before the first glob.
size_t PlainPrefix(std::string_view pattern) {
  size_t prefix = 0;
  for (size_t begin = NamesBegin(pattern);;) {
    const size_t slash = pattern.find('/', begin);
    const std::string_view component = pattern.substr(begin, slash - begin);
    if (HasGlob(component) || slash == std::string_view::npos) return prefix;
    prefix = begin = slash + 1;
  }
}

// What lies beside shards is none of them.
bool IsIndex(const FolderEntry& entry) {
  return entry.kind == FolderEntry::Kind::kFile && IsIndexName(entry.name);
}

// `folders` are full paths that end in "/" (or "" for the current one), sorted.
std::vector<std::string> MatchComponent(const std::vector<std::string>& folders,
                                        std::string_view component, bool folders_alone,
                                        Storage& storage, std::string_view pattern) {
  Names names(pattern);
  for (const std::string& folder : folders) {
    const Result<std::vector<FolderEntry>> entries = storage.List(folder.empty() ? "." : folder);
    if (!entries.ok()) {
      if (entries.error().code() == ErrorCode::kNotFound) continue;
      throw entries.error().Within(pattern);
    }
    for (const FolderEntry& entry : entries.value()) {
      const bool fits = folders_alone ? entry.kind == FolderEntry::Kind::kFolder
                                      : entry.kind != FolderEntry::Kind::kOther;
      if (fits && MatchesGlob(component, entry.name) && !IsIndex(entry)) {
        names.Add(folder + entry.name + (folders_alone ? "/" : ""));
      }
    }
  }
  return names.Take();
}

std::vector<std::string> ExpandGlob(const std::string& pattern, Storage& storage) {
  const size_t prefix = PlainPrefix(pattern);
  std::vector<std::string> found = {Unescape(std::string_view(pattern).substr(0, prefix))};
  for (size_t begin = prefix; begin < pattern.size();) {
    const size_t slash = pattern.find('/', begin);
    const bool folders_alone = slash != std::string::npos;
    const std::string_view component = std::string_view(pattern).substr(begin, slash - begin);
    if (!component.empty()) {
      found = MatchComponent(found, component, folders_alone, storage, pattern);
    }
    begin = folders_alone ? slash + 1 : pattern.size();
  }
  if (found.empty()) {
    throw Error(
        {.code = ErrorCode::kNotFound, .what = "nothing matches the pattern", .where = pattern});
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> ExpandBraces(std::string_view pattern) {
  Names names(pattern);
  ExpandInto(pattern, std::string(pattern), 0, 0, &names);
  return names.Take();
}

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.') && !pattern.starts_with("\\.")) {
    return false;
  }
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // behind the last "*" met, and the name's place there
  size_t star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_name = n;
      continue;
    }
    if (p < pattern.size()) {
      const GlobStep step = MatchOne(pattern, p, name[n]);
      if (step.matches) {
        p = step.next;
        ++n;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    p = star;
    n = ++star_name;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> PlainNames(std::string_view uri) {
  std::vector<std::string> names;
  for (const std::string& pattern : ExpandBraces(uri)) {
    if (!HasGlob(pattern)) names.push_back(Unescape(pattern));
  }
  return names;
}

std::vector<std::string> ExpandUri(std::string_view uri, Storage& storage) {
  Names names(uri);
  for (const std::string& pattern : ExpandBraces(uri)) {
    if (!HasGlob(pattern)) {
      names.Add(Unescape(pattern));
      continue;
    }
    for (std::string& name : ExpandGlob(pattern, storage)) names.Add(std::move(name));
  }
  return names.Take();
}

}  // namespace echopipe::internal
