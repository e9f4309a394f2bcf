#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/class_names.h>

namespace echopipe::internal {
namespace {

constexpr size_t kMaxFileBytes = size_t{64} << 20;

[[noreturn]] void ThrowErrno(const std::string& path, const std::string& what) {
  throw Error({.code = ErrorCode::kIo,
               .what = what + ": " + std::generic_category().message(errno),
               .where = path});
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> piece;
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
    if (text.size() <= kMaxFileBytes) continue;
    throw Error({.code = ErrorCode::kLimitExceeded,
                 .what = "the classes file is too large",
                 .where = path,
                 .wanted = "at most " + std::to_string(kMaxFileBytes) + " bytes"});
  }
  if (!file.eof()) {
    throw Error({.code = ErrorCode::kIo, .what = "cannot read the classes file", .where = path});
  }
  return text;
}

std::vector<std::string> SplitLines(const std::string& path, std::string_view text) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool fresh = !line.empty() && seen.emplace(line).second;
    if (!fresh) {
      throw Error(
          {.code = ErrorCode::kInvalidArgument,
           .what = line.empty() ? "a line of the classes file is empty" : "a class comes twice",
           .where = path + " line " + std::to_string(names.size() + 1),
           .got = std::string(line)});
    }
    names.emplace_back(line);
  }
  return names;
}

// A file of a name that nobody else uses, beside `path`.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path + ".XXXXXX"), fd_(::mkstemp(path_.data())) {
    if (fd_ < 0) ThrowErrno(path, "cannot write the classes file");
  }
  ~NewFile() {
    ::close(fd_);
    if (!renamed_) ::unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) ThrowErrno(path_, "cannot write the classes file");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  void RenameTo(const std::string& path) {
    // mkstemp() leaves it to its owner alone; others may train on the same folder.
    if (::fchmod(fd_, 0644) != 0 || ::fsync(fd_) != 0 ||
        ::rename(path_.c_str(), path.c_str()) != 0) {
      ThrowErrno(path, "cannot write the classes file");
    }
    renamed_ = true;
  }

 private:
  std::string path_;
  int fd_;
  bool renamed_ = false;
};

}  // namespace

std::optional<std::vector<std::string>> ReadClassNames(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return SplitLines(path, ReadAll(path));
}

void WriteClassNames(const std::string& path, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (name.find_first_of("\r\n") != std::string::npos) {
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "a class name with a line break does not fit into a classes file",
                   .where = path,
                   .got = name});
    }
    text += name + "\n";
  }
  NewFile file(path);
  file.Write(text);
  file.RenameTo(path);
}

}  // namespace echopipe::internal
