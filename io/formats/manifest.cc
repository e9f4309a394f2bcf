#include <algorithm>
#include <charconv>
#include <cstring>
#include <future>
#include <iterator>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/io/formats/csv.h>
#include <echopipe/io/formats/manifest.h>
#include <echopipe/io/http/uri.h>

namespace echopipe::internal {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxRecords = 100'000'000;
constexpr size_t kMaxNames = 256;
constexpr size_t kMaxLineBytes = CsvReader::kMaxFieldBytes;
constexpr int kMaxJsonLevels = 32;
constexpr std::string_view kUsualLabel = "label";
// In a listing's rows.
constexpr char kLabelled = 'l';
constexpr char kUnlabelled = '-';

bool IsJsonName(std::string_view name) {
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

// One that no server can make lead elsewhere: "..", "/x" and "http://x" are none.
bool IsPathBelow(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return true;
}

// "./a", ".//a" and "././a" are "a".
std::string_view WithoutDots(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(std::min(path.find_first_not_of('/', 1), path.size()));
  }
  return path;
}

bool HasScheme(std::string_view path) { return path.find("://") != std::string_view::npos; }

template <class T>
T TakeNumber(std::string_view& rest) {
  T number;
  std::memcpy(&number, rest.data(), sizeof(number));
  rest.remove_prefix(sizeof(number));
  return number;
}

std::string_view TakeText(std::string_view& rest) {
  const size_t size = TakeNumber<uint32_t>(rest);
  const std::string_view text = rest.substr(0, size);
  rest.remove_prefix(size);
  return text;
}

// The whole text. Its pool goes with it: such a block is not needed again.
std::string ReadText(const std::string& uri, Storage& storage) {
  const uint64_t size = storage.Size(uri).value();
  if (size > kMaxManifestBytes) {
    throw Error({.code = ErrorCode::kLimitExceeded,
                 .what = "the manifest is too large",
                 .where = uri,
                 .got = std::to_string(size) + " bytes",
                 .wanted = "at most " + std::to_string(kMaxManifestBytes)});
  }
  if (size == 0) return {};
  BufferPool pool;
  std::promise<Result<ReadResult>> done;
  storage.Read({.path = uri, .length = size}, pool,
               [&](Result<ReadResult> result) { done.set_value(std::move(result)); });
  const ReadResult read = done.get_future().get().value();
  if (read.data->size() != size) {
    throw Error({.code = ErrorCode::kTruncated,
                 .what = "the manifest changed its size while it was read",
                 .where = uri});
  }
  return {reinterpret_cast<const char*>(read.data->data()), read.data->size()};
}

}  // namespace

/// Fills a listing, manifest by manifest.
class ManifestParser {
 public:
  ManifestParser(const ManifestColumns& columns, Storage& storage)
      : columns_(columns), storage_(storage) {}

  ManifestListing Parse(const std::vector<std::string>& uris) {
    for (const std::string& uri : uris) {
      uri_ = uri;
      from_server_ = IsHttpUri(uri);
      const uint64_t first = listing_.size();
      const std::string text = ReadText(uri, storage_);
      IsJsonName(uri) ? ParseJsonLines(text) : ParseCsv(text);
      // Of manifests that begin at the same record, the last one has it.
      listing_.manifests_.push_back({.uri = uri, .first = first});
    }
    if (listing_.size() == 0) {
      throw Error({.code = ErrorCode::kEmpty, .what = "no record in the manifest", .where = uri_});
    }
    return std::move(listing_);
  }

 private:
  struct Row {
    std::string path = {};
    std::optional<int64_t> label = {};
    std::vector<FileListing::Field> fields = {};
  };

  void ParseCsv(const std::string& text) {
    CsvReader reader(text, uri_);
    std::vector<std::string> header;
    std::vector<std::string> fields;
    line_ = 1;
    if (!reader.Next(&header)) Throw("no header");
    line_ = reader.line();
    CheckHeader(header);
    while (reader.Next(&fields)) {
      line_ = reader.line();
      if (fields.size() != header.size()) {
        Throw("another number of fields than in the header", std::to_string(fields.size()),
              std::to_string(header.size()));
      }
      Row row;
      for (size_t i = 0; i < header.size(); ++i) AddCsvField(header[i], fields[i], &row);
      Add(std::move(row));
    }
  }

  void CheckHeader(const std::vector<std::string>& header) const {
    const auto has = [&](std::string_view name) { return std::ranges::count(header, name) > 0; };
    for (const std::string& name : header) {
      if (std::ranges::count(header, name) > 1) Throw("a column comes twice", name);
    }
    if (!has(columns_.path)) Throw("no column " + columns_.path);
    if (LabelIsWanted() && !has(*columns_.label)) Throw("no column " + *columns_.label);
  }

  void AddCsvField(const std::string& name, std::string& value, Row* row) const {
    if (name == columns_.path) {
      row->path = std::move(value);
    } else if (IsLabel(name)) {
      row->label = ParseLabel(value);
    } else {
      row->fields.emplace_back(name, std::move(value));
    }
  }

  std::optional<int64_t> ParseLabel(const std::string& text) const {
    if (text.empty()) return std::nullopt;
    int64_t label = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
    if (error == std::errc() && end == text.data() + text.size()) return label;
    Throw("the label is not an integer", text.substr(0, 32));
  }

  void ParseJsonLines(std::string_view text) {
    line_ = 0;
    while (!text.empty()) {
      ++line_;
      const size_t size = std::min(text.find('\n'), text.size());
      ParseJsonLine(text.substr(0, size));
      text.remove_prefix(std::min(size + 1, text.size()));
    }
  }

  void ParseJsonLine(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    if (line.size() > kMaxLineBytes) ThrowLimit("a line over 1 MiB");
    const auto check_level = [this](int level, json::parse_event_t, json&) {
      if (level > kMaxJsonLevels) ThrowLimit("JSON that nests too deep");
      return true;
    };
    json object = json::parse(line, check_level, /*allow_exceptions=*/false);
    if (!object.is_object()) Throw("not a JSON object");
    Row row;
    const auto path = object.find(columns_.path);
    if (path == object.end() || !path->is_string()) Throw("no " + columns_.path);
    row.path = std::move(path->get_ref<std::string&>());
    if (LabelIsWanted() && !object.contains(*columns_.label)) Throw("no " + *columns_.label);
    for (const auto& [name, value] : object.items()) {
      if (name == columns_.path) continue;
      if (IsLabel(name)) {
        row.label = LabelOf(value);
      } else {
        row.fields.emplace_back(name, TextOf(value));
      }
    }
    Add(std::move(row));
  }

  std::optional<int64_t> LabelOf(const json& value) const {
    if (value.is_null()) return std::nullopt;
    const bool fits = !value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX};
    if (!value.is_number_integer() || !fits) {
      Throw("the label is not an integer", value.dump().substr(0, 32));
    }
    return value.get<int64_t>();
  }

  static std::string TextOf(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    return value.is_null() ? "" : value.dump();
  }

  bool LabelIsWanted() const { return columns_.label && !columns_.label->empty(); }
  // Without a wanted label no field is one, nor the field without a name.
  bool IsLabel(std::string_view name) const {
    return columns_.label ? LabelIsWanted() && name == *columns_.label : name == kUsualLabel;
  }

  void Add(Row row) {
    row.path.erase(0, row.path.size() - WithoutDots(row.path).size());
    CheckPath(row.path);
    if (listing_.size() == kMaxRecords) ThrowLimit("more than 100 million records");
    listing_.begins_.push_back(listing_.rows_.size());
    // JSON has its fields sorted.
    std::ranges::sort(row.fields);
    AddText(row.path);
    listing_.rows_ += row.label ? kLabelled : kUnlabelled;
    if (row.label) AddNumber(*row.label);
    for (const auto& [name, value] : row.fields) {
      AddNumber(NumberOf(name));
      AddText(value);
    }
  }

  void CheckPath(const std::string& path) const {
    if (path.empty()) Throw("an empty path");
    if (path.find('\0') != std::string::npos) Throw("a path with a NUL in it");
    if (from_server_ && !IsPathBelow(path)) {
      Throw("a manifest from a server names what does not lie below it", path);
    }
    if (HasScheme(path) && !IsHttpUri(path)) Throw("no such scheme", path);
  }

  uint32_t NumberOf(const std::string& name) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    if (name == "image") Throw("a field is called image, as the file itself");
    if (name.empty()) Throw("a field without a name");
    if (numbers_.size() == kMaxNames) ThrowLimit("more than 256 fields");
    listing_.names_.push_back(name);
    return numbers_.emplace(name, static_cast<uint32_t>(numbers_.size())).first->second;
  }

  template <class T>
  void AddNumber(T number) {
    listing_.rows_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void AddText(std::string_view text) {
    AddNumber(static_cast<uint32_t>(text.size()));
    listing_.rows_ += text;
  }

  std::string Where() const { return uri_ + ": line " + std::to_string(line_); }
  [[noreturn]] void Throw(std::string what, std::string got = {}, std::string wanted = {}) const {
    throw Error({.code = ErrorCode::kCorrupt,
                 .what = std::move(what),
                 .where = Where(),
                 .got = std::move(got),
                 .wanted = std::move(wanted)});
  }
  [[noreturn]] void ThrowLimit(std::string what) const {
    throw Error({.code = ErrorCode::kLimitExceeded, .what = std::move(what), .where = Where()});
  }

  const ManifestColumns& columns_;
  Storage& storage_;
  ManifestListing listing_;
  std::map<std::string, uint32_t> numbers_;  // of fields' names
  std::string uri_;                          // of the manifest being read
  bool from_server_ = false;
  uint64_t line_ = 0;
};

std::string ManifestListing::Path(uint64_t i) const {
  const std::string_view path = RowAt(i).path;
  if (path.starts_with('/') || HasScheme(path)) return std::string(path);
  const std::string& manifest = Root(i);
  return manifest.substr(0, manifest.rfind('/') + 1) + std::string(path);
}

std::vector<FileListing::Field> ManifestListing::Fields(uint64_t i) const {
  std::vector<Field> fields;
  for (std::string_view rest = RowAt(i).fields; !rest.empty();) {
    const std::string& name = names_[TakeNumber<uint32_t>(rest)];
    fields.emplace_back(name, TakeText(rest));
  }
  return fields;
}

const std::string& ManifestListing::Root(uint64_t i) const {
  const auto after = std::ranges::upper_bound(manifests_, i, {}, &Manifest::first);
  return std::prev(after)->uri;
}

ManifestListing::Row ManifestListing::RowAt(uint64_t i) const {
  const uint64_t end = i + 1 < begins_.size() ? begins_[i + 1] : rows_.size();
  std::string_view rest = std::string_view(rows_).substr(begins_[i], end - begins_[i]);
  Row row{.path = TakeText(rest)};
  if (TakeNumber<char>(rest) == kLabelled) row.label = TakeNumber<int64_t>(rest);
  row.fields = rest;
  return row;
}

uint64_t ManifestListing::Fingerprint() const {
  uint64_t hash = HashBytes(rows_);
  for (const std::string& name : names_) hash = HashBytes(name, hash + 1);
  return hash;
}

ManifestListing ReadManifests(const std::vector<std::string>& uris, const ManifestColumns& columns,
                              Storage& storage) {
  return ManifestParser(columns, storage).Parse(uris);
}

bool IsManifestName(std::string_view name) { return name.ends_with(".csv") || IsJsonName(name); }

}  // namespace echopipe::internal
