#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/base/file_descriptor.h>
#include <echopipe/base/replace_file.h>

namespace echopipe {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void ThrowErrno(const std::string& path, const std::string& what) {
  const int reason = errno;
  throw Error({.code = reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
               .what = what + ": " + std::generic_category().message(reason),
               .where = path});
}

bool IsAt(const FileDescriptor& file, const std::string& path) {
  struct stat mine = {};
  struct stat there = {};
  return fstat(file.get(), &mine) == 0 && stat(path.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

// Waits until nobody else has it. Where a file system has no locks, writers are on their own.
void Lock(const FileDescriptor& file) {
  while (flock(file.get(), LOCK_EX) != 0 && errno == EINTR) continue;
}

bool WriteAll(const FileDescriptor& file, std::string_view bytes) {
  if (ftruncate(file.get(), 0) != 0) return false;
  while (!bytes.empty()) {
    const ssize_t count = write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return fsync(file.get()) == 0;
}

// Where a link leads, so that the file there is replaced and not the link.
std::string Followed(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path followed = fs::weakly_canonical(path, error);
  return error ? path : followed.native();
}

void CheckReplaceable(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw Error({.code = ErrorCode::kIo, .what = "it is not a regular file", .where = path});
  }
}

// Precondition: the temporary file is locked.
void WriteBy(const std::string& temporary, const FileDescriptor& file, std::string_view bytes,
             const std::string& path) {
  const auto check = [&](bool done) {
    if (done) return;
    const int reason = errno;
    unlink(temporary.c_str());
    errno = reason;
    ThrowErrno(path, "cannot write the file");
  };
  check(WriteAll(file, bytes));
  check(rename(temporary.c_str(), path.c_str()) == 0);
  const fs::path folder = fs::path(path).parent_path();
  const FileDescriptor entries(folder.empty() ? "." : folder.native(), O_RDONLY | O_DIRECTORY);
  if (!entries.is_open() || fsync(entries.get()) != 0) ThrowErrno(path, "cannot keep the file");
}

}  // namespace

void ReplaceFile(const std::string& path, std::string_view bytes) {
  const std::string target = Followed(path);
  CheckReplaceable(target);
  const std::string temporary = target + ".tmp";
  while (true) {
    const FileDescriptor file(temporary, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open()) ThrowErrno(path, "cannot write the file");
    Lock(file);
    // Whoever had it before may have renamed it.
    if (IsAt(file, temporary)) return WriteBy(temporary, file, bytes, target);
  }
}

}  // namespace echopipe
