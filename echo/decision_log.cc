#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/echo/decision_log.h>

namespace echopipe {
namespace {

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t format = DecisionLog::kFormat;
  uint32_t unused = 0;
  uint64_t fingerprint = 0;
  uint64_t first_draw = 0;
  uint64_t hash = 0;  ///< of what is in front of it

  static constexpr std::array<char, 8> kMagic = {'e', 'c', 'h', 'o', 'd', 'l', 'o', 'g'};
};
static_assert(sizeof(Header) == 40 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

struct BlockHeader {
  uint32_t size = 0;
  uint32_t size_inverted = ~size;  ///< or a damaged size could pass for a block that is not whole
  uint64_t hash = 0;
};
static_assert(sizeof(BlockHeader) == 16);

constexpr size_t kMaxBlock = 1 << 16;
// Far beyond any run, and low enough that no sum here can overflow.
constexpr uint64_t kMaxDraws = uint64_t{1} << 53;

template <class T>
T Read(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void Write(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

uint64_t HashOf(const Header& header) {
  return HashBytes({reinterpret_cast<const char*>(&header), offsetof(Header, hash)});
}

void WriteNumber(uint64_t number, std::string* bytes) {
  for (; number >= 0x80; number >>= 7) bytes->push_back(static_cast<char>(number | 0x80));
  bytes->push_back(static_cast<char>(number));
}

/// Nothing if none up to kMaxDraws is there in its shortest form.
std::optional<uint64_t> ReadNumber(std::string_view bytes, size_t* at) {
  uint64_t number = 0;
  for (uint32_t shift = 0; shift < 56 && *at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[(*at)++]);
    number |= uint64_t{byte & 0x7fU} << shift;
    if (byte >= 0x80) continue;
    if ((byte == 0 && shift > 0) || number > kMaxDraws) break;
    return number;
  }
  return std::nullopt;
}

Decision Other(Decision decision) {
  return decision == Decision::kFresh ? Decision::kEcho : Decision::kFresh;
}

}  // namespace

// ---- DecisionLog

DecisionLog DecisionLog::FromBytes(std::string bytes, std::string name) {
  return {std::move(bytes), std::move(name)};
}

DecisionLog::DecisionLog(std::string bytes, std::string name)
    : bytes_(std::make_shared<const std::string>(std::move(bytes))), name_(std::move(name)) {
  ReadHeader();
  CheckBlocks();
}

void DecisionLog::ReadHeader() {
  const size_t magic = std::min(bytes_->size(), Header::kMagic.size());
  if (!std::equal(bytes_->begin(), bytes_->begin() + static_cast<std::ptrdiff_t>(magic),
                  Header::kMagic.begin())) {
    throw Error({.code = ErrorCode::kCorrupt, .what = "not a decision log", .where = name_});
  }
  if (bytes_->size() < sizeof(Header)) {
    throw Error({.code = ErrorCode::kTruncated,
                 .what = "a decision log without its beginning",
                 .where = name_,
                 .got = std::to_string(bytes_->size()) + " bytes",
                 .wanted = std::to_string(sizeof(Header)) + " at least"});
  }
  const auto header = Read<Header>(*bytes_, 0);
  if (header.format > kFormat) {
    throw Error({.code = ErrorCode::kUnsupported,
                 .what = "a decision log of a newer version",
                 .where = name_,
                 .got = "format " + std::to_string(header.format),
                 .wanted = "at most " + std::to_string(kFormat)});
  }
  if (header.hash != HashOf(header) || header.format == 0 || header.unused != 0 ||
      header.first_draw > kMaxDraws) {
    ThrowDamaged(0);
  }
  header_hash_ = header.hash;
  fingerprint_ = header.fingerprint;
  first_draw_ = header.first_draw;
}

void DecisionLog::CheckBlocks() {
  const std::string_view bytes = *bytes_;
  size_t at = sizeof(Header);
  uint64_t hash = header_hash_;
  end_draw_ = first_draw_;
  while (bytes.size() - at >= sizeof(BlockHeader)) {
    const auto block = Read<BlockHeader>(bytes, at);
    // A file system may not have come to more than the file's new size when the power failed.
    if (block.size == 0 && bytes.find_first_not_of('\0', at) == std::string_view::npos) break;
    if (block.size == 0 || block.size > kMaxBlock || block.size_inverted != ~block.size) {
      ThrowDamaged(at);
    }
    if (bytes.size() - at - sizeof(BlockHeader) < block.size) break;
    const std::string_view payload = bytes.substr(at + sizeof(BlockHeader), block.size);
    hash = HashBytes(payload, hash);
    const uint64_t draws = hash == block.hash ? CheckRuns(payload, kMaxDraws - end_draw_) : 0;
    if (draws == 0) ThrowDamaged(at);
    end_draw_ += draws;
    at += sizeof(BlockHeader) + block.size;
  }
  whole_bytes_ = at;
}

// How many draws a block's runs are; 0 if they are no runs, or more draws than `most`.
uint64_t DecisionLog::CheckRuns(std::string_view payload, uint64_t most) const {
  uint64_t draws = 0;
  for (size_t at = 0; at < payload.size();) {
    const bool first = at == 0;
    const std::optional<uint64_t> run = ReadNumber(payload, &at);
    if (!run || (*run == 0 && !first) || *run > most - draws) return 0;
    draws += *run;
  }
  return draws;
}

void DecisionLog::ThrowDamaged(size_t at) const {
  throw Error({.code = ErrorCode::kCorrupt,
               .what = "a damaged decision log, from byte " + std::to_string(at) + " on",
               .where = name_});
}

void DecisionLog::CheckIsFor(uint64_t fingerprint) const {
  if (fingerprint == fingerprint_) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "a decision log of another pipeline, rank or number of ranks",
               .where = name_});
}

// ---- DecisionReader

DecisionReader::DecisionReader(DecisionLog log, uint64_t draw)
    : log_(std::move(log)), at_(sizeof(Header)), block_end_(at_), draw_(log_.first_draw()) {
  if (draw < log_.first_draw() || draw > log_.end_draw()) {
    throw Error(
        {.code = ErrorCode::kInvalidArgument,
         .what = "a decision log of other draws",
         .where = log_.name_,
         .got = std::to_string(log_.first_draw()) + " to " + std::to_string(log_.end_draw()),
         .wanted = "from " + std::to_string(draw) + " on"});
  }
  Load();
  while (draw_ < draw) Advance(std::min(next_.draws, draw - draw_));
}

void DecisionReader::Advance(uint64_t draws) {
  draw_ += draws;
  next_.draws -= draws;
  if (next_.draws == 0) Load();
}

// The bytes have been checked.
void DecisionReader::Load() {
  const std::string_view bytes = *log_.bytes_;
  while (next_.draws == 0 && at_ < log_.whole_bytes_) {
    next_.decision = Other(next_.decision);
    if (at_ == block_end_) {
      block_end_ += sizeof(BlockHeader) + Read<BlockHeader>(bytes, at_).size;
      at_ += sizeof(BlockHeader);
      next_.decision = Decision::kFresh;
    }
    next_.draws = *ReadNumber(bytes, &at_);
  }
}

// ---- DecisionLogWriter

DecisionLogWriter::DecisionLogWriter(uint64_t fingerprint, uint64_t first_draw)
    : end_draw_(first_draw) {
  Header header{.fingerprint = fingerprint, .first_draw = first_draw};
  header.hash = hash_ = HashOf(header);
  Write(header, &done_);
}

DecisionLogWriter::DecisionLogWriter(const DecisionLog& log, uint64_t draw)
    : DecisionLogWriter(log.fingerprint(), log.first_draw()) {
  const DecisionReader check(log, draw);
  for (DecisionReader reader(log, log.first_draw()); reader.draw() < draw;) {
    const DecisionRun run{reader.next().decision,
                          std::min(reader.next().draws, draw - reader.draw())};
    Add(run);
    reader.Advance(run.draws);
  }
}

void DecisionLogWriter::Add(const DecisionRun& run) {
  if (run.decision != run_.decision) {
    PutRun();
    run_.decision = run.decision;
  }
  run_.draws += run.draws;
  end_draw_ += run.draws;
}

void DecisionLogWriter::PutRun() {
  if (run_.draws == 0) return;
  if (run_.decision != turn_) WriteNumber(0, &block_);
  WriteNumber(std::exchange(run_.draws, 0), &block_);
  turn_ = Other(run_.decision);
  constexpr size_t kLongestRun = 16;
  if (block_.size() > kMaxBlock - kLongestRun) EndBlock();
}

void DecisionLogWriter::EndBlock() {
  if (block_.empty()) return;
  hash_ = HashBytes(block_, hash_);
  Write(BlockHeader{.size = static_cast<uint32_t>(block_.size()), .hash = hash_}, &done_);
  done_ += std::exchange(block_, {});
  turn_ = Decision::kFresh;
}

std::string DecisionLogWriter::TakeBytes() {
  PutRun();
  EndBlock();
  return std::exchange(done_, {});
}

}  // namespace echopipe
