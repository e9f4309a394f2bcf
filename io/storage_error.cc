#include <echopipe/io/storage_error.h>

namespace echopipe::internal {

Error StoppedRead(const std::string& path) {
  return Error({.code = ErrorCode::kStopped, .what = "the read was cancelled", .where = path});
}

Error SystemError(const std::string& path, std::error_code reason) {
  const bool missing = reason == std::errc::no_such_file_or_directory;
  return Error({.code = missing ? ErrorCode::kNotFound : ErrorCode::kIo,
                .what = reason.message(),
                .where = path});
}

}  // namespace echopipe::internal
