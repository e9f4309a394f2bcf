#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <echopipe/base/read_file.h>
#include <echopipe/base/replace_file.h>
#include <echopipe/pipeline/graph/decision_log_file.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr size_t kPage = 4096;

bool IsThere(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

// A run that goes on keeps what led to where it begins.
DecisionLogWriter WriterFor(const std::string& path, uint64_t fingerprint, uint64_t draw) {
  if (draw == 0 || !IsThere(path)) return {fingerprint, draw};
  const DecisionLog log = LoadDecisionLog(path);
  log.CheckIsFor(fingerprint);
  return {log, draw};
}

}  // namespace

DecisionLog LoadDecisionLog(const std::string& path) {
  return DecisionLog::FromBytes(ReadWholeFile(path, "decision log", kMostBytes), path);
}

DecisionLogFile::DecisionLogFile(std::string path, uint64_t fingerprint, uint64_t draw)
    : path_(std::move(path)) {
  CheckOverwritable(path_, "decision log", std::string(DecisionLog::kMagic));
  writer_.emplace(WriterFor(path_, fingerprint, draw));
  const std::string bytes = writer_->TakeBytes();
  ReplaceFile(path_, bytes);
  size_ = static_cast<int64_t>(bytes.size());
  file_ = std::make_unique<FileDescriptor>(path_, O_WRONLY | O_APPEND);
  MutexLock lock(file_mutex_);
  Check(file_->is_open());
}

void DecisionLogFile::Add(Decision decision) {
  MutexLock lock(mutex_);
  writer_->Add(decision);
}

void DecisionLogFile::WriteIfMuch() {
  {
    MutexLock lock(mutex_);
    if (writer_->waiting_bytes() < kPage) return;
  }
  Write();
}

void DecisionLogFile::Write() {
  MutexLock file_lock(file_mutex_);
  if (error_) throw *error_;
  std::string bytes;
  {
    MutexLock lock(mutex_);
    bytes = writer_->TakeBytes();
  }
  if (!bytes.empty()) Check(Append(bytes));
}

void DecisionLogFile::Sync() {
  Write();
  MutexLock lock(file_mutex_);
  Check(fdatasync(file_->get()) == 0);
}

// What is written in part goes again, so that the file stays a log.
bool DecisionLogFile::Append(std::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t count = write(file_->get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int reason = errno;
      static_cast<void>(ftruncate(file_->get(), size_) == 0);
      errno = reason;
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  size_ += size;
  return true;
}

void DecisionLogFile::Check(bool done) {
  if (done) return;
  error_ =
      Error({.code = ErrorCode::kIo,
             .what = "cannot write the decision log: " + std::generic_category().message(errno),
             .where = path_});
  throw *error_;
}

}  // namespace echopipe::internal
