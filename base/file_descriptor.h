#pragma once

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace echopipe {

/// An open file, closed at the end of its scope.
class FileDescriptor {
 public:
  /// As open(), again when a signal interrupts it; where it fails, is_open() is false and errno
  /// tells why.
  FileDescriptor(const std::string& path, int flags) {
    do {
      descriptor_ = open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
  }
  ~FileDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace echopipe
