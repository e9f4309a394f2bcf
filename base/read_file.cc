#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/base/file_descriptor.h>
#include <echopipe/base/read_file.h>

namespace echopipe {
namespace {

[[noreturn]] void ThrowErrno(const std::string& path, const std::string& name) {
  const int reason = errno;
  throw Error({.code = reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
               .what = "cannot read the " + name + ": " + std::generic_category().message(reason),
               .where = path});
}

std::string Read(const FileDescriptor& file, size_t size, const std::string& path,
                 const std::string& name) {
  std::string bytes(size, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(path, name);
    if (count == 0) bytes.resize(done);  // it shrank
    done += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace

std::string ReadWholeFile(const std::string& path, const std::string& name, uint64_t most) {
  const FileDescriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (!file.is_open() || fstat(file.get(), &status) != 0) ThrowErrno(path, name);
  if (!S_ISREG(status.st_mode)) {
    throw Error({.code = ErrorCode::kIo, .what = "it is not a regular file", .where = path});
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > most) {
    throw Error({.code = ErrorCode::kLimitExceeded,
                 .what = "the file is too large for a " + name,
                 .where = path,
                 .got = std::to_string(size) + " bytes",
                 .wanted = "at most " + std::to_string(most)});
  }
  return Read(file, size, path, name);
}

void CheckOverwritable(const std::string& path, const std::string& name, const std::string& magic) {
  const FileDescriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const size_t size = std::min(static_cast<size_t>(status.st_size), magic.size());
  const std::string begin = Read(file, size, path, name);
  if (begin.empty() || begin == magic) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "the file there is no " + name + ", and is left alone",
               .where = path});
}

}  // namespace echopipe
