#include <algorithm>
#include <array>
#include <cctype>

#include <nlohmann/json.hpp>

#include <echopipe/io/http/listing.h>
#include <echopipe/io/http/uri.h>

namespace echopipe::internal {
namespace {

using Kind = FolderEntry::Kind;

// What some editors begin a text with.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

[[noreturn]] void ThrowCorrupt(std::string what, const std::string& where, std::string got) {
  throw Error({.code = ErrorCode::kCorrupt,
               .what = std::move(what),
               .where = where,
               .got = std::move(got)});
}

bool IsName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

// All of its components are names.
bool IsPathBelow(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (!IsName(path.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

std::vector<FolderEntry> Sorted(std::vector<FolderEntry> entries) {
  std::ranges::stable_sort(entries, {}, &FolderEntry::name);
  const auto twice = std::ranges::unique(entries, {}, &FolderEntry::name);
  entries.erase(twice.begin(), twice.end());
  return entries;
}

/// Takes the entries of a JSON listing as they come: a tree of it, which a server can make as deep
/// and wide as it likes, would take a hundred times the text's memory.
class JsonEntries final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<FolderEntry> Take() { return std::move(entries_); }

  bool null() override { return OnValue(); }
  bool boolean(bool) override { return OnValue(); }
  bool number_integer(number_integer_t) override { return OnValue(); }
  bool number_unsigned(number_unsigned_t) override { return OnValue(); }
  bool number_float(number_float_t, const string_t&) override { return OnValue(); }
  bool binary(binary_t&) override { return OnValue(); }
  bool string(string_t& text) override {
    if (depth_ == 2 && key_ == "type") is_folder_ = text == "directory";
    if (depth_ == 2 && key_ == "name") name_ = std::move(text);
    return OnValue();
  }
  bool key(string_t& name) override {
    if (depth_ == 2) key_ = std::move(name);
    return true;
  }

  bool start_array(size_t) override { return ++depth_ != 2; }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool start_object(size_t) override {
    if (++depth_ == 2) {
      key_.clear();
      name_.reset();
      is_folder_ = false;
    }
    return depth_ > 1;
  }
  bool end_object() override {
    if (--depth_ > 1) return true;
    if (name_ && IsName(*name_)) {
      entries_.push_back({.name = *name_, .kind = is_folder_ ? Kind::kFolder : Kind::kFile});
    }
    return name_.has_value();
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  // Entries are objects in an array.
  bool OnValue() const { return depth_ > 1; }

  std::vector<FolderEntry> entries_;
  uint64_t depth_ = 0;  // 1 in the list, 2 in an entry
  std::string key_;     // of the entry
  std::optional<std::string> name_;
  bool is_folder_ = false;
};

std::vector<FolderEntry> ParseJson(std::string_view page, const std::string& where) {
  JsonEntries entries;
  if (!nlohmann::json::sax_parse(page, &entries)) {
    ThrowCorrupt("the server's page is no listing", where, "other JSON");
  }
  return Sorted(entries.Take());
}

// Those that servers write into links.
std::string DecodeEntities(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 6> kEntities = {{{"&amp;", '&'},
                                                                           {"&lt;", '<'},
                                                                           {"&gt;", '>'},
                                                                           {"&quot;", '"'},
                                                                           {"&#39;", '\''},
                                                                           {"&#x27;", '\''}}};
  std::string plain;
  for (size_t i = 0; i < text.size();) {
    const auto entity = std::ranges::find_if(kEntities, [&](const auto& candidate) {
      return text.substr(i).starts_with(candidate.first);
    });
    plain += entity == kEntities.end() ? text[i] : entity->second;
    i += entity == kEntities.end() ? 1 : entity->first.size();
  }
  return plain;
}

// The next attribute "href" from `*at` on, which moves behind it.
std::optional<std::string_view> NextLink(std::string_view page, size_t* at) {
  constexpr std::string_view kName = "href";
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  while (true) {
    const auto found = std::search(page.begin() + static_cast<std::ptrdiff_t>(*at), page.end(),
                                   kName.begin(), kName.end(), same);
    if (found == page.end()) return std::nullopt;
    *at = static_cast<size_t>(found - page.begin()) + kName.size();
    size_t i = page.find_first_not_of(" \t\r\n", *at);
    if (i == std::string_view::npos || page[i] != '=') continue;
    i = page.find_first_not_of(" \t\r\n", i + 1);
    if (i == std::string_view::npos || (page[i] != '"' && page[i] != '\'')) continue;
    const size_t end = page.find(page[i], i + 1);
    if (end == std::string_view::npos) continue;
    *at = end + 1;
    return page.substr(i + 1, end - i - 1);
  }
}

std::optional<FolderEntry> EntryOf(std::string_view link, std::string_view path) {
  const std::string href = DecodeEntities(link);
  std::string_view below = href;
  const bool is_relative = below.starts_with("./");
  if (is_relative) {
    below.remove_prefix(2);
  } else if (below.starts_with(path)) {
    below.remove_prefix(path.size());
  }
  // A query sorts the page; without "./" a colon ends the name of a scheme.
  const std::string_view foreign = is_relative ? "?#" : "?#:";
  if (below.find_first_of(foreign) != std::string_view::npos) return std::nullopt;
  const bool is_folder = below.ends_with('/');
  if (is_folder) below.remove_suffix(1);
  const std::optional<std::string> name = PercentDecode(below);
  if (!name || !IsName(*name) || below.find('/') != std::string_view::npos) return std::nullopt;
  return FolderEntry{.name = *name, .kind = is_folder ? Kind::kFolder : Kind::kFile};
}

}  // namespace

Manifest::Manifest(std::string text, const std::string& where) : text_(std::move(text)) {
  uint64_t number = 0;
  for (size_t begin = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
       begin < text_.size(); ++number) {
    const size_t end = std::min(text_.find('\n', begin), text_.size());
    std::string_view line = std::string_view(text_).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("./")) line.remove_prefix(2);
    begin = end + 1;
    if (line.empty() || line == kName) continue;
    if (!IsPathBelow(line)) {
      ThrowCorrupt("line " + std::to_string(number + 1) + " is no path below the folder", where,
                   std::string(line.substr(0, 100)));
    }
    lines_.emplace_back(static_cast<uint64_t>(line.data() - text_.data()), line.size());
  }
  std::ranges::sort(lines_, {}, [this](const auto& line) { return Path(line); });
  const auto twice =
      std::ranges::unique(lines_, {}, [this](const auto& line) { return Path(line); });
  lines_.erase(twice.begin(), twice.end());
  if (lines_.empty()) {
    throw Error({.code = ErrorCode::kEmpty, .what = "it names no file", .where = where});
  }
}

std::string_view Manifest::Path(const std::pair<uint64_t, uint64_t>& line) const {
  return std::string_view(text_).substr(line.first, line.second);
}

std::vector<std::pair<uint64_t, uint64_t>>::const_iterator Manifest::LowerBound(
    std::string_view path) const {
  return std::ranges::lower_bound(lines_, path, {},
                                  [this](const auto& line) { return Path(line); });
}

std::optional<std::vector<FolderEntry>> Manifest::Entries(std::string_view folder) const {
  std::vector<FolderEntry> entries;
  for (auto line = LowerBound(folder); line != lines_.end() && Path(*line).starts_with(folder);) {
    const std::string_view below = Path(*line).substr(folder.size());
    const size_t slash = below.find('/');
    const std::string name(below.substr(0, slash));
    const bool is_folder = slash != std::string_view::npos;
    entries.push_back({.name = name, .kind = is_folder ? Kind::kFolder : Kind::kFile});
    // Past all that is in a folder: "0" comes behind "/".
    line = is_folder ? LowerBound(std::string(folder) + name + "0") : std::next(line);
  }
  if (entries.empty()) return std::nullopt;
  return Sorted(std::move(entries));
}

bool Manifest::HasFile(std::string_view path) const {
  const auto line = LowerBound(path);
  return line != lines_.end() && Path(*line) == path;
}

std::vector<FolderEntry> ParseIndexPage(std::string_view content_type, std::string_view page,
                                        std::string_view path, const std::string& where) {
  if (content_type.starts_with("application/json")) return ParseJson(page, where);
  std::vector<FolderEntry> entries;
  size_t at = 0;
  while (const std::optional<std::string_view> link = NextLink(page, &at)) {
    if (std::optional<FolderEntry> entry = EntryOf(*link, path))
      entries.push_back(*std::move(entry));
  }
  return Sorted(std::move(entries));
}

}  // namespace echopipe::internal
