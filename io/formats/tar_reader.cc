#include <algorithm>
#include <charconv>
#include <utility>

#include <echopipe/io/formats/compression.h>
#include <echopipe/io/formats/tar_reader.h>

namespace echopipe::internal {
namespace {

// The header's fields: POSIX.1-1988 (ustar), and GNU tar's manual, "Basic Tar Format".
constexpr size_t kNameAt = 0, kNameSize = 100;
constexpr size_t kSizeAt = 124, kSizeSize = 12;
constexpr size_t kChecksumAt = 148, kChecksumSize = 8;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257, kMagicSize = 6;
constexpr size_t kPrefixAt = 345, kPrefixSize = 155;

// Far below 2^64, so that adding offset and padding cannot overflow.
constexpr uint64_t kMaxSize = uint64_t{1} << 62;

std::string_view UntilNul(std::string_view field) { return field.substr(0, field.find('\0')); }

// Octal digits between optional blanks; all blank is 0. Nothing if it is not that.
std::optional<uint64_t> ParseOctal(std::string_view field) {
  const auto blank = [](char c) { return c == ' ' || c == '\0'; };
  while (!field.empty() && blank(field.front())) field.remove_prefix(1);
  uint64_t value = 0;
  while (!field.empty() && !blank(field.front())) {
    const char digit = field.front();
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(digit - '0');
    field.remove_prefix(1);
  }
  if (!std::all_of(field.begin(), field.end(), blank)) return std::nullopt;
  return value;
}

// GNU's big-endian form: a first byte of 0x80, or its low bits too for huge numbers.
std::optional<uint64_t> ParseBase256(std::string_view field) {
  uint64_t value = static_cast<uint8_t>(field[0]) & 0x7f;
  for (const char c : field.substr(1)) {
    if (value >> 55 != 0) return std::nullopt;
    value = value << 8 | static_cast<uint8_t>(c);
  }
  return value;
}

std::optional<uint64_t> ParseDecimal(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

uint64_t PaddingOf(uint64_t size) { return (512 - size % 512) % 512; }

// Links, devices, folders and pipes have no data, whatever their size field says.
bool HasNoData(char type) { return '1' <= type && type <= '6'; }

bool IsRegular(char type) { return type == '0' || type == '\0' || type == '7'; }

}  // namespace

TarReader::TarReader(std::string shard, uint64_t offset)
    : shard_(std::move(shard)),
      offset_(offset),
      header_offset_(offset),
      member_offset_(offset),
      at_first_block_(offset == 0) {}

TarReader::Event TarReader::Next() {
  while (true) {
    switch (phase_) {
      case Phase::kDone:
        return {.kind = Kind::kEnd};
      case Phase::kHeader:
        if (!SkipPadding() || !FillBlock()) return NeedBytes();
        if (std::optional<Event> member = ReadHeader()) return *std::move(member);
        break;
      case Phase::kExtension:
        if (!FillExtension()) return NeedBytes();
        EndExtension();
        break;
      case Phase::kData:
        if (data_left_ == 0) {
          phase_ = Phase::kHeader;
          break;
        }
        if (input_.empty()) return NeedBytes();
        const std::span<const uint8_t> data = Take(data_left_);
        data_left_ -= data.size();
        return {.kind = Kind::kData, .data = data};
    }
  }
}

std::span<const uint8_t> TarReader::Take(uint64_t most) {
  const std::span<const uint8_t> taken =
      input_.first(static_cast<size_t>(std::min<uint64_t>(most, input_.size())));
  input_ = input_.subspan(taken.size());
  offset_ += taken.size();
  return taken;
}

bool TarReader::SkipPadding() {
  skip_ -= Take(skip_).size();
  return skip_ == 0;
}

bool TarReader::FillBlock() {
  if (block_size_ == 0) header_offset_ = offset_;
  const std::span<const uint8_t> more = Take(kBlock - block_size_);
  std::copy(more.begin(), more.end(), block_.begin() + static_cast<std::ptrdiff_t>(block_size_));
  block_size_ += more.size();
  return block_size_ == kBlock;
}

bool TarReader::FillExtension() {
  const std::span<const uint8_t> more = Take(data_left_);
  extension_.append(more.begin(), more.end());
  data_left_ -= more.size();
  return data_left_ == 0;
}

// All input is used up: more is needed, or this is where the archive ends.
TarReader::Event TarReader::NeedBytes() {
  if (!finished_) return {.kind = Kind::kNeedBytes};
  if (at_first_block_) {
    if (block_size_ == 0) Throw(ErrorCode::kEmpty, "the shard is empty", 0);
    ThrowNoHeader();
  }
  if (phase_ != Phase::kHeader || skip_ > 0 || block_size_ > 0 || extended_) {
    Throw(ErrorCode::kTruncated, "the shard ends inside a member", offset_);
  }
  phase_ = Phase::kDone;
  return {.kind = Kind::kEnd};
}

std::optional<TarReader::Event> TarReader::ReadHeader() {
  block_size_ = 0;
  if (ReadZeroBlock()) return std::nullopt;
  CheckHeader();
  at_first_block_ = false;
  if (!extended_) member_offset_ = header_offset_;
  const char type = static_cast<char>(block_[kTypeAt]);
  const uint64_t size = ParseSize();
  if (std::string_view("LKxXg").find(type) != std::string_view::npos) {
    BeginExtension(type, size);
    return std::nullopt;
  }
  return ReadMember(type, size);
}

// The rest of a member's header, with what its extension headers say.
std::optional<TarReader::Event> TarReader::ReadMember(char type, uint64_t size) {
  if (type == 'S') Throw(ErrorCode::kUnsupported, "a sparse GNU member", header_offset_);
  if (type == 'M') Throw(ErrorCode::kUnsupported, "a multi-volume member", header_offset_);
  Overrides member = std::exchange(member_, {});
  std::optional<std::string> long_name = std::exchange(long_name_, std::nullopt);
  extended_ = false;
  if (!member.path) member.path = long_name ? std::move(long_name) : global_.path;
  if (!member.path) member.path = HeaderPath();
  size = member.size.value_or(global_.size.value_or(size));
  if (member.path->empty()) Throw(ErrorCode::kCorrupt, "a member without a name", header_offset_);
  if (HasNoData(type)) return std::nullopt;
  if (size > kMaxSize) Throw(ErrorCode::kCorrupt, "a broken size", header_offset_);
  CheckEndsInShard(size);
  const uint64_t padding = PaddingOf(size);
  if (!IsRegular(type) || member.path->ends_with('/')) {
    skip_ = size + padding;
    return std::nullopt;
  }
  if (size > kMaxMemberBytes) {
    Throw(ErrorCode::kLimitExceeded,
          "a member of " + std::to_string(size) + " bytes, more than " +
              std::to_string(kMaxMemberBytes),
          header_offset_);
  }
  phase_ = Phase::kData;
  data_left_ = size;
  skip_ = padding;
  return Event{.kind = Kind::kMember,
               .path = *std::move(member.path),
               .size = size,
               .header_offset = member_offset_};
}

// Two zero blocks end an archive; so does one before the end of the bytes.
bool TarReader::ReadZeroBlock() {
  const bool zero = std::all_of(block_.begin(), block_.end(), [](uint8_t b) { return b == 0; });
  if (zero && extended_) {
    Throw(ErrorCode::kCorrupt, "an extension header without a member", header_offset_);
  }
  if (!zero && zero_block_) {
    Throw(ErrorCode::kCorrupt, "a header after a lone zero block", header_offset_);
  }
  if (zero && zero_block_) phase_ = Phase::kDone;
  zero_block_ = zero;
  if (zero) at_first_block_ = false;
  return zero;
}

void TarReader::BeginExtension(char type, uint64_t size) {
  const bool name = type == 'L' || type == 'K';
  const uint64_t most = name ? kMaxNameBytes : kMaxPaxBytes;
  if (size > most) {
    Throw(ErrorCode::kLimitExceeded,
          (name ? "a long name of " : "a pax header of ") + std::to_string(size) +
              " bytes, more than " + std::to_string(most),
          header_offset_);
  }
  CheckEndsInShard(size);
  extension_type_ = type;
  extension_.clear();
  data_left_ = size;
  phase_ = Phase::kExtension;
}

void TarReader::EndExtension() {
  phase_ = Phase::kHeader;
  skip_ = PaddingOf(extension_.size());
  // A global header stands for itself; the others wait for their member.
  if (extension_type_ == 'g') return ReadPax(&global_);
  extended_ = true;
  if (extension_type_ == 'L') long_name_ = UntilNul(extension_);
  if (extension_type_ == 'x' || extension_type_ == 'X') ReadPax(&member_);
}

// Records "length key=value\n", the length counting itself.
void TarReader::ReadPax(Overrides* overrides) {
  for (std::string_view rest = extension_; !rest.empty();) {
    const size_t space = rest.find(' ');
    const std::optional<uint64_t> length = ParseDecimal(rest.substr(0, space));
    if (space == std::string_view::npos || !length || *length > rest.size() ||
        *length < space + 2 || rest[*length - 1] != '\n') {
      Throw(ErrorCode::kCorrupt, "a broken pax header", header_offset_);
    }
    const std::string_view record = rest.substr(space + 1, *length - space - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      Throw(ErrorCode::kCorrupt, "a pax header without a value", header_offset_);
    }
    SetPax(record.substr(0, equals), record.substr(equals + 1), overrides);
    rest.remove_prefix(*length);
  }
}

// An empty value takes an earlier one back.
void TarReader::SetPax(std::string_view key, std::string_view value, Overrides* overrides) {
  if (key.starts_with("GNU.sparse.")) {
    Throw(ErrorCode::kUnsupported, "a sparse pax member", header_offset_);
  }
  if (key == "path") {
    if (value.size() > kMaxNameBytes) {
      Throw(ErrorCode::kLimitExceeded, "a name that is too long", header_offset_);
    }
    if (value.find('\0') != std::string_view::npos) {
      Throw(ErrorCode::kCorrupt, "a name with a NUL in it", header_offset_);
    }
    overrides->path.reset();
    if (!value.empty()) overrides->path = value;
  } else if (key == "size") {
    overrides->size = ParseDecimal(value);
    if (!value.empty() && !overrides->size) {
      Throw(ErrorCode::kCorrupt, "a size that is not a number", header_offset_);
    }
  }
}

// The sum of the header's bytes, its own field taken as blanks; old programs summed signed chars.
void TarReader::CheckHeader() const {
  const std::string_view field = Field(kChecksumAt, kChecksumSize);
  const std::optional<uint64_t> wanted = ParseOctal(field);
  int64_t unsigned_sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = kChecksumAt <= i && i < kChecksumAt + kChecksumSize;
    const uint8_t byte = own ? uint8_t{' '} : block_[i];
    unsigned_sum += byte;
    signed_sum += static_cast<int8_t>(byte);
  }
  const auto is = [&](int64_t sum) { return sum >= 0 && static_cast<uint64_t>(sum) == *wanted; };
  if (!wanted || (!is(unsigned_sum) && !is(signed_sum))) ThrowNoHeader();
}

void TarReader::CheckEndsInShard(uint64_t size) const {
  if (!shard_size_ || (offset_ <= *shard_size_ && size <= *shard_size_ - offset_)) return;
  Throw(ErrorCode::kTruncated, "the shard ends inside a member", header_offset_);
}

uint64_t TarReader::ParseSize() const {
  const std::string_view field = Field(kSizeAt, kSizeSize);
  const bool base256 = static_cast<uint8_t>(field[0]) >= 0x80;
  const bool negative = static_cast<uint8_t>(field[0]) >= 0xc0;
  const std::optional<uint64_t> size =
      negative ? std::nullopt : (base256 ? ParseBase256(field) : ParseOctal(field));
  if (!size || *size > kMaxSize) Throw(ErrorCode::kCorrupt, "a broken size", header_offset_);
  return *size;
}

std::string TarReader::HeaderPath() const {
  const std::string name(UntilNul(Field(kNameAt, kNameSize)));
  const std::string_view prefix = UntilNul(Field(kPrefixAt, kPrefixSize));
  // GNU's magic is "ustar " and means other fields there; v7 has none.
  const bool ustar = Field(kMagicAt, kMagicSize) == std::string_view("ustar\0", 6);
  return ustar && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

std::string_view TarReader::Field(size_t begin, size_t size) const {
  return std::string_view(reinterpret_cast<const char*>(block_.data()), kBlock).substr(begin, size);
}

void TarReader::Throw(ErrorCode code, std::string what, uint64_t at) const {
  throw Error(
      {.code = code, .what = std::move(what) + " at byte " + std::to_string(at), .where = shard_});
}

void TarReader::ThrowNoHeader() const {
  if (at_first_block_) {
    const size_t size = block_size_ > 0 ? block_size_ : kBlock;
    const std::string_view compression = CompressionOf(Field(0, size));
    if (!compression.empty()) {
      Throw(ErrorCode::kUnsupported, "a shard compressed with " + std::string(compression), 0);
    }
    if (block_size_ > 0) Throw(ErrorCode::kTruncated, "the shard ends inside a header", offset_);
  }
  Throw(ErrorCode::kCorrupt, "not a tar header", header_offset_);
}

}  // namespace echopipe::internal
