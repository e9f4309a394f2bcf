#include <new>

#include <echopipe/io/storage_error.h>

namespace echopipe::internal {
namespace {

Error ErrorIfMemory(ErrorCode code, const char* what, const std::string& path) noexcept {
  try {
    return Error({.code = code, .what = what, .where = path});
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace

Error StoppedRead(const std::string& path) noexcept {
  return ErrorIfMemory(ErrorCode::kStopped, "the read was cancelled", path);
}

Error UnreadForMemory(const std::string& path) noexcept {
  return ErrorIfMemory(ErrorCode::kResourceExhausted, "no memory for the bytes of the read", path);
}

Error SystemError(const std::string& path, std::error_code reason) {
  const bool missing = reason == std::errc::no_such_file_or_directory;
  return Error({.code = missing ? ErrorCode::kNotFound : ErrorCode::kIo,
                .what = reason.message(),
                .where = path});
}

}  // namespace echopipe::internal
