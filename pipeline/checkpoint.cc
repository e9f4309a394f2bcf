#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/base/read_file.h>
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
  return FromBytes(ReadWholeFile(path, "checkpoint", kMaxBytes), path);
}

void PipelineCheckpoint::Save(const std::string& path) const {
  CheckOverwritable(path, "checkpoint", {Header::kMagic.data(), Header::kMagic.size()});
  ReplaceFile(path, ToBytes());
}

uint64_t PipelineCheckpoint::steps() const { return message_->steps(); }
Rank PipelineCheckpoint::rank() const {
  return {.rank = message_->rank(), .world = message_->world()};
}

}  // namespace echopipe
