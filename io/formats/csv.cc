#include <algorithm>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/csv.h>

namespace echopipe::internal {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string name)
    : rest_(text), name_(std::move(name)) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::Next(std::vector<std::string>* row) {
  row->clear();
  const bool more = SkipEmptyLines();
  line_ = next_line_;
  if (!more) return false;
  for (char end = ','; end == ',';) {
    if (row->size() == kMaxFields) {
      throw Error({.code = ErrorCode::kLimitExceeded,
                   .what = "a row of more than 1024 fields",
                   .where = name_ + ": line " + std::to_string(line_)});
    }
    end = TakeField(&row->emplace_back());
  }
  return true;
}

bool CsvReader::SkipEmptyLines() {
  while (rest_.starts_with('\n') || rest_.starts_with("\r\n")) {
    rest_.remove_prefix(rest_.find('\n') + 1);
    ++next_line_;
  }
  return !rest_.empty();
}

char CsvReader::TakeField(std::string* field) {
  if (rest_.starts_with('"')) {
    TakeQuoted(field);
  } else {
    const size_t size = std::min(rest_.find_first_of("\",\r\n"), rest_.size());
    *field = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (rest_.starts_with('"')) Throw("a quote inside a field");
  }
  if (field->size() > kMaxFieldBytes) {
    throw Error({.code = ErrorCode::kLimitExceeded,
                 .what = "a field over 1 MiB",
                 .where = name_ + ": line " + std::to_string(line_)});
  }
  return TakeEnd();
}

// Two quotes are one of the text.
void CsvReader::TakeQuoted(std::string* field) {
  rest_.remove_prefix(1);
  while (true) {
    const size_t size = rest_.find('"');
    if (size == std::string_view::npos) Throw("quotes that are not closed");
    *field += rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    if (!rest_.starts_with('"')) break;
    *field += '"';
    rest_.remove_prefix(1);
  }
  next_line_ += static_cast<uint64_t>(std::ranges::count(*field, '\n'));
}

char CsvReader::TakeEnd() {
  if (rest_.empty()) return '\0';
  if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
  const char end = rest_.front();
  if (end == '\r') Throw("a CR without its LF");
  if (end != ',' && end != '\n') Throw("text behind a quoted field");
  if (end == '\n') ++next_line_;
  rest_.remove_prefix(1);
  return end;
}

void CsvReader::Throw(std::string what) const {
  throw Error({.code = ErrorCode::kCorrupt,
               .what = std::move(what),
               .where = name_ + ": line " + std::to_string(line_)});
}

}  // namespace echopipe::internal
