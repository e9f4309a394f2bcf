// Manifests. Lines: their uri, whose ending says of what kind; the columns of path and label
// ("" for the usual one, "-" for no label); the rest is the text.
//
// Parses: io/formats/csv.cc io/formats/manifest.cc

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/csv.h>
#include <echopipe/io/formats/manifest.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::BufferPool;
using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::FolderEntry;
using echopipe::ReadRequest;
using echopipe::ReadResult;
using echopipe::Result;
using echopipe::Storage;
using echopipe::StorageStats;
using echopipe::internal::CsvReader;
using echopipe::internal::IsManifestName;
using echopipe::internal::ManifestColumns;
using echopipe::internal::ManifestListing;
using echopipe::internal::ReadManifests;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

using Row = std::vector<std::string>;

/// Holds one text under any name.
class OneText final : public Storage {
 public:
  explicit OneText(std::string_view text) : text_(text) {}

  Result<std::vector<FolderEntry>> List(const std::string&) override {
    return std::vector<FolderEntry>();
  }
  Result<uint64_t> Size(const std::string&) override { return uint64_t{text_.size()}; }
  ReadId Read(ReadRequest request, BufferPool& pool, Callback callback) override {
    Require(request.offset == 0 && request.length == text_.size());
    auto data = pool.Allocate(text_.size());
    std::ranges::copy(text_, data->data());
    callback(ReadResult{.data = std::move(data), .object_size = text_.size()});
    return 0;
  }
  void Cancel(ReadId) override {}
  StorageStats Stats() const override { return {}; }

 private:
  std::string_view text_;
};

void CheckError(const Error& error, std::string_view uri) {
  Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kEmpty ||
          error.code() == ErrorCode::kLimitExceeded);
  Require(std::string_view(error.details().where).starts_with(uri));
}

// ---- Comma-separated values

std::vector<Row> RowsOf(std::string_view text) {
  CsvReader reader(text, "csv");
  std::vector<Row> rows;
  uint64_t line = 0;
  for (Row row; reader.Next(&row);) {
    Require(!row.empty() && row.size() <= CsvReader::kMaxFields && line < reader.line());
    line = reader.line();
    rows.push_back(row);
  }
  return rows;
}

std::string Quoted(std::string_view field) {
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string AsCsv(const Row& row) {
  std::string text;
  for (const std::string& field : row) text += (text.empty() ? "" : ",") + Quoted(field);
  return text + "\r\n";
}

void CheckCsv(std::string_view text) {
  // Quoted, any text is a field.
  const Row halves = {std::string(text.substr(0, text.size() / 2)),
                      std::string(text.substr(text.size() / 2))};
  Require(RowsOf(AsCsv(halves)) == std::vector<Row>{halves});
  try {
    const std::vector<Row> rows = RowsOf(text);
    std::string written;
    for (const Row& row : rows) written += AsCsv(row);
    Require(RowsOf(written) == rows);
  } catch (const Error& error) {
    CheckError(error, "csv: line ");
  }
}

// ---- Manifests

ManifestListing Read(const std::string& uri, const ManifestColumns& columns,
                     std::string_view text) {
  OneText storage(text);
  return ReadManifests({uri}, columns, storage);
}

// What comes from a server leads to nowhere else.
bool LiesBelow(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() &&
         ("/" + std::string(path.substr(folder.size())) + "/").find("/../") == std::string::npos;
}

void CheckRecord(const ManifestListing& listing, uint64_t i, const std::string& uri,
                 const ManifestColumns& columns) {
  const std::string path = listing.Path(i);
  Require(listing.Root(i) == uri && !listing.Key(i).empty() && path.ends_with(listing.Key(i)));
  Require(listing.Key(i).find('\0') == std::string::npos);
  if (uri.starts_with("http://")) Require(LiesBelow(path, uri.substr(0, uri.rfind('/') + 1)));
  if (columns.label == "") Require(!listing.Label(i));
  const auto fields = listing.Fields(i);
  for (size_t k = 0; k < fields.size(); ++k) {
    const std::string& name = fields[k].first;
    Require(!name.empty() && name != "image" && name != columns.path);
    Require(name != columns.label.value_or("label"));
    Require(k == 0 || fields[k - 1].first < name);
  }
}

// ---- The same records, written in the other format

using Written = std::optional<std::string>;

std::string LabelName(const ManifestColumns& columns) { return columns.label.value_or("label"); }

// Nothing if the records have not all the same fields.
Written ToCsv(const ManifestListing& listing, const ManifestColumns& columns) {
  Row header = {columns.path};
  if (columns.label != "") header.push_back(LabelName(columns));
  for (const auto& [name, value] : listing.Fields(0)) header.push_back(name);
  std::string text = AsCsv(header);
  for (uint64_t i = 0; i < listing.size(); ++i) {
    Row row = {listing.Key(i)};
    const std::optional<int64_t> label = listing.Label(i);
    if (columns.label != "") row.push_back(label ? std::to_string(*label) : "");
    for (const auto& [name, value] : listing.Fields(i)) {
      if (row.size() == header.size() || header[row.size()] != name) return std::nullopt;
      row.push_back(value);
    }
    if (row.size() < header.size()) return std::nullopt;
    text += AsCsv(row);
  }
  return text;
}

// Nothing if a text is not of UTF-8.
Written ToJson(const ManifestListing& listing, const ManifestColumns& columns) {
  std::string text;
  for (uint64_t i = 0; i < listing.size(); ++i) {
    nlohmann::json object;
    object[columns.path] = listing.Key(i);
    const std::optional<int64_t> label = listing.Label(i);
    if (columns.label != "") object[LabelName(columns)] = nullptr;
    if (label) object[LabelName(columns)] = *label;
    for (const auto& [name, value] : listing.Fields(i)) object[name] = value;
    try {
      text += object.dump() + "\n";
    } catch (const nlohmann::json::type_error&) {
      return std::nullopt;
    }
  }
  return text;
}

void CheckAreSame(const ManifestListing& a, const ManifestListing& b) {
  Require(a.size() == b.size());
  for (uint64_t i = 0; i < a.size(); ++i) {
    Require(a.Path(i) == b.Path(i) && a.Key(i) == b.Key(i) && a.Label(i) == b.Label(i));
    Require(a.Fields(i) == b.Fields(i));
  }
}

void CheckManifest(const std::string& uri, const ManifestColumns& columns, std::string_view text) {
  try {
    const ManifestListing listing = Read(uri, columns, text);
    Require(listing.size() > 0);
    for (uint64_t i = 0; i < listing.size(); ++i) CheckRecord(listing, i, uri, columns);
    const std::string folder = uri.substr(0, uri.rfind('/') + 1);
    const Written csv = ToCsv(listing, columns);
    if (csv) CheckAreSame(Read(folder + "again.csv", columns, *csv), listing);
    const Written json = ToJson(listing, columns);
    if (json) CheckAreSame(Read(folder + "again.jsonl", columns, *json), listing);
  } catch (const Error& error) {
    CheckError(error, uri);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const std::string uri(input.TakeLine());
  ManifestColumns columns;
  if (const std::string_view path = input.TakeLine(); !path.empty()) columns.path = path;
  if (const std::string_view label = input.TakeLine(); !label.empty()) {
    columns.label = label == "-" ? "" : label;
  }
  const std::string_view text = input.TakeRest();
  CheckCsv(text);
  // A spec with another uri, or in which two columns are one, is none.
  const bool is_spec = IsManifestName(uri) && columns.path != columns.label.value_or("label");
  if (is_spec) CheckManifest(uri, columns, text);
  return 0;
}
