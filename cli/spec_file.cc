#include <cerrno>
#include <fstream>
#include <iostream>
#include <istream>
#include <system_error>

#include <echopipe/base/error.h>
#include <echopipe/cli/spec_file.h>

namespace echopipe::cli {
namespace {

constexpr size_t kMostSpecBytes = size_t{16} << 20;

PipelineSpec ReadSpec(std::istream& file, const std::string& name) {
  std::string text(kMostSpecBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  // The end of the file leaves the stream failed too, without an error of the system's.
  if (errno != 0) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "cannot read the spec: " +
                         std::error_code(errno, std::generic_category()).message(),
                 .where = name});
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostSpecBytes) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "too large for a spec",
                 .where = name,
                 .wanted = "at most 16 MiB"});
  }
  return PipelineSpec::FromText(text, name);
}

}  // namespace

PipelineSpec ReadSpec(const std::string& path) {
  errno = 0;
  if (path == "-") return ReadSpec(std::cin, "standard input");
  std::ifstream file(path, std::ios::binary);
  return ReadSpec(file, path);
}

}  // namespace echopipe::cli
