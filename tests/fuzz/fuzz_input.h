#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <system_error>
#include <utility>

namespace echopipe::testing {

/// Takes a fuzzer's bytes apart by lines, so that corpora can be read and written by people.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size)
      : FuzzInput(std::string_view(reinterpret_cast<const char*>(data), size)) {}
  explicit FuzzInput(std::string_view text) : rest_(text) {}

  /// Up to the next newline or the end.
  std::string_view TakeLine() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }
  /// A line's leading number; 0 if it begins with none, the largest if it is larger.
  uint64_t TakeNumber() {
    const std::string_view line = TakeLine();
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    return error == std::errc::result_out_of_range ? ~uint64_t{0} : number;
  }
  std::string_view TakeRest() { return std::exchange(rest_, {}); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// Ends the process if what should hold does not: fuzzers look for crashes.
void Require(bool holds, std::source_location place = std::source_location::current());

}  // namespace echopipe::testing
