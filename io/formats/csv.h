#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echopipe::internal {

/// Takes the rows out of a text of comma-separated values (RFC 4180).
///
///     path,label,text
///     cat/1.jpg,3,"a ""quoted"" word, and
///     a second line"
///
/// Lines end in LF or CR LF; empty ones are passed over, and so is a byte order mark.
/// Errors   Next() throws kCorrupt with the line's number in `where`: a quote inside a field, text
///          behind a quoted one, quotes that are not closed, a CR alone; kLimitExceeded for a field
///          over 1 MiB or a row of more than 1,024.
/// Threads  One caller at a time.
class CsvReader {
 public:
  static constexpr size_t kMaxFieldBytes = size_t{1} << 20;
  static constexpr size_t kMaxFields = 1024;

  /// `text` must outlive the reader; `name` is what errors call it.
  CsvReader(std::string_view text, std::string name);

  /// The fields of the next row; false at the end.
  bool Next(std::vector<std::string>* row);
  /// Where the row given last begins, in lines from 1.
  uint64_t line() const { return line_; }

 private:
  /// Gives what ends the field: ',', '\n', or '\0' for the end of the text.
  char TakeField(std::string* field);
  void TakeQuoted(std::string* field);
  char TakeEnd();
  bool SkipEmptyLines();
  [[noreturn]] void Throw(std::string what) const;

  std::string_view rest_;
  std::string name_;
  uint64_t line_ = 1;
  uint64_t next_line_ = 1;  // of what is left
};

}  // namespace echopipe::internal
