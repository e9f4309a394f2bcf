#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <echopipe/base/error.h>
#include <echopipe/base/file_descriptor.h>
#include <echopipe/base/random.h>
#include <echopipe/base/replace_file.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/proto/checkpoint.pb.h>

namespace echopipe {
namespace {

/// In front of the message, little-endian.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t format = PipelineCheckpoint::kFormat;
  uint32_t unused = 0;
  uint64_t size = 0;  ///< of the message, in bytes
  uint64_t hash = 0;

  static constexpr std::array<char, 8> kMagic = {'e', 'c', 'h', 'o', 'c', 'k', 'p', 't'};
};
static_assert(sizeof(Header) == 32 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

[[noreturn]] void Throw(ErrorCode code, std::string_view name, std::string what,
                        std::string got = {}, std::string wanted = {}) {
  throw Error({.code = code,
               .what = std::move(what),
               .where = std::string(name),
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

[[noreturn]] void ThrowErrno(const std::string& path, const std::string& what) {
  const int reason = errno;
  Throw(reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
        what + ": " + std::generic_category().message(reason));
}

std::string Read(const FileDescriptor& file, size_t size, const std::string& path) {
  std::string bytes(size, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(path, "cannot read the checkpoint");
    if (count == 0) bytes.resize(done);  // it shrank
    done += static_cast<size_t>(count);
  }
  return bytes;
}

// Something else under that name is not to be lost by a slip.
void CheckOverwritable(const std::string& path) {
  const FileDescriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  constexpr size_t kSize = Header::kMagic.size();
  const std::string begin = Read(file, std::min(static_cast<size_t>(status.st_size), kSize), path);
  if (begin.empty() || begin == std::string_view(Header::kMagic.data(), kSize)) return;
  Throw(ErrorCode::kInvalidArgument, path, "the file there is no checkpoint, and is left alone");
}

}  // namespace

PipelineCheckpoint::PipelineCheckpoint(proto::Checkpoint message)
    : message_(std::make_shared<const proto::Checkpoint>(std::move(message))) {}

PipelineCheckpoint PipelineCheckpoint::FromBytes(std::string_view bytes, std::string_view name) {
  Header header;
  const size_t magic = std::min(bytes.size(), Header::kMagic.size());
  if (bytes.substr(0, magic) != std::string_view(Header::kMagic.data(), magic)) {
    Throw(ErrorCode::kCorrupt, name, "this is not a checkpoint of echopipe's");
  }
  if (bytes.size() < sizeof(header)) {
    Throw(ErrorCode::kTruncated, name, "the checkpoint is cut off",
          std::to_string(bytes.size()) + " bytes");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (header.format > kFormat) {
    Throw(ErrorCode::kUnsupported, name, "the checkpoint is of a newer version of echopipe",
          "format " + std::to_string(header.format), "at most " + std::to_string(kFormat));
  }
  if (bytes.size() < header.size) {
    Throw(ErrorCode::kTruncated, name, "the checkpoint is cut off",
          std::to_string(bytes.size()) + " bytes", std::to_string(header.size));
  }
  proto::Checkpoint message;
  if (header.format != kFormat || header.unused != 0 || bytes.size() > header.size ||
      HashBytes(bytes) != header.hash ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    Throw(ErrorCode::kCorrupt, name, "the checkpoint is damaged: its checksum is wrong");
  }
  return PipelineCheckpoint(std::move(message));
}

std::string PipelineCheckpoint::ToBytes() const {
  std::string bytes(sizeof(Header), '\0');
  message_->AppendToString(&bytes);
  const std::string_view message = std::string_view(bytes).substr(sizeof(Header));
  const Header header{.size = message.size(), .hash = HashBytes(message)};
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

PipelineCheckpoint PipelineCheckpoint::Load(const std::string& path) {
  const FileDescriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (!file.is_open() || fstat(file.get(), &status) != 0) {
    ThrowErrno(path, "cannot read the checkpoint");
  }
  if (!S_ISREG(status.st_mode)) Throw(ErrorCode::kIo, path, "it is not a regular file");
  if (static_cast<uint64_t>(status.st_size) > kMaxBytes) {
    Throw(ErrorCode::kLimitExceeded, path, "the file is too large for a checkpoint",
          std::to_string(status.st_size) + " bytes", "at most " + std::to_string(kMaxBytes));
  }
  return FromBytes(Read(file, static_cast<size_t>(status.st_size), path), path);
}

void PipelineCheckpoint::Save(const std::string& path) const {
  CheckOverwritable(path);
  ReplaceFile(path, ToBytes());
}

uint64_t PipelineCheckpoint::steps() const { return message_->steps(); }
Rank PipelineCheckpoint::rank() const {
  return {.rank = message_->rank(), .world = message_->world()};
}

}  // namespace echopipe
