#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/bench/batch_hash.h>
#include <echopipe/cli/step_hashes.h>

namespace echopipe::cli {
namespace {

[[noreturn]] void ThrowErrno(const std::string& path) {
  throw Error({.code = ErrorCode::kIo,
               .what = "cannot write the steps' hashes: " + std::generic_category().message(errno),
               .where = path});
}

}  // namespace

StepHashes::StepHashes(std::string path)
    : path_(std::move(path)),
      descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) ThrowErrno(path_);
  // A run that was killed may have left a part of one.
  if (EndsInsideALine()) Write("\n");
}

StepHashes::~StepHashes() { close(descriptor_); }

bool StepHashes::EndsInsideALine() const {
  const off_t size = lseek(descriptor_, 0, SEEK_END);
  char last = '\n';
  return size > 0 && pread(descriptor_, &last, 1, size - 1) == 1 && last != '\n';
}

void StepHashes::Add(const Batch& batch) {
  BatchHash hash;
  hash.Add(batch);
  Write(std::to_string(batch.step()) + " " + hash.Hex() + "\n");
}

void StepHashes::Write(const std::string& text) const {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(descriptor_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(path_);
    done += static_cast<size_t>(count);
  }
}

}  // namespace echopipe::cli
