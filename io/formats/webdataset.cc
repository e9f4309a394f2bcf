#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <echopipe/io/formats/webdataset.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kMaxSampleBytes = uint64_t{1} << 30;
constexpr size_t kMaxMembers = 256;

struct SampleName {
  std::string_view key;
  std::string_view extension;
};

// Nothing for names that belong to no sample.
std::optional<SampleName> SplitName(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base || dot + 1 == path.size()) return std::nullopt;
  return SampleName{.key = path.substr(0, dot), .extension = path.substr(dot + 1)};
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

bool HashSet::Insert(uint64_t hash) {
  hash += hash == 0;
  if (size_ * 2 >= slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i] != 0; i = (i + 1) & mask) {
    if (slots_[i] == hash) return false;
  }
  Place(hash);
  ++size_;
  return true;
}

void HashSet::Place(uint64_t hash) {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i] != 0) i = (i + 1) & mask;
  slots_[i] = hash;
}

void HashSet::Grow() {
  std::vector<uint64_t> old(std::max<size_t>(16, slots_.size() * 2));
  old.swap(slots_);
  for (const uint64_t hash : old) {
    if (hash != 0) Place(hash);
  }
}

WebDatasetReader::WebDatasetReader(std::shared_ptr<const std::string> shard,
                                   const SampleMembers& members, BufferPool& pool, uint64_t offset,
                                   std::span<const uint64_t> keys)
    : shard_(std::move(shard)), wanted_(members), pool_(pool), tar_(*shard_, offset) {
  for (const uint64_t key : keys) keys_.Insert(key);
}

std::optional<Sample> WebDatasetReader::Next() {
  while (!at_end_) {
    std::optional<Sample> sample;
    try {
      const TarReader::Event event = tar_.Next();
      if (event.kind == TarReader::Kind::kNeedBytes) return std::nullopt;
      sample = Step(event);
    } catch (const Error& error) {
      return Fail(error);
    }
    if (sample) return sample;
  }
  return std::nullopt;
}

std::optional<Sample> WebDatasetReader::Step(const TarReader::Event& event) {
  if (event.kind == TarReader::Kind::kMember) return OnMember(event);
  if (event.kind == TarReader::Kind::kData) {
    OnData(event.data);
    return std::nullopt;
  }
  at_end_ = true;
  if (!sample_) return std::nullopt;
  Sample last = Complete();
  last.ends_shard = true;
  last.next_offset = tar_.offset();
  return last;
}

// A member of another sample completes the one under way.
std::optional<Sample> WebDatasetReader::OnMember(const TarReader::Event& event) {
  if (tar_.has_global_overrides()) {
    throw Error({.code = ErrorCode::kUnsupported,
                 .what = "a global pax header sets path or size before byte " +
                         std::to_string(event.header_offset),
                 .where = *shard_});
  }
  in_member_ = false;
  const std::optional<SampleName> name = SplitName(event.path);
  if (!name) return std::nullopt;
  std::optional<Sample> completed;
  if (sample_ && sample_->key != name->key) {
    completed = Complete();
    completed->next_offset = event.header_offset;
  }
  if (!sample_) {
    sample_ = Pending{.key = std::string(name->key),
                      .key_hash = XXH3_64bits(name->key.data(), name->key.size()),
                      .offset = event.header_offset};
    if (!keys_.Insert(sample_->key_hash)) {
      MarkBad(SampleError(ErrorCode::kCorrupt, "the key comes back after other samples"));
    }
  }
  AddMember(std::string(name->extension), event.size);
  return completed;
}

void WebDatasetReader::AddMember(std::string extension, uint64_t size) {
  if (sample_->error) return;
  std::string lower = Lower(extension);
  if (FindMember(lower) != kNone) {
    return MarkBad(SampleError(ErrorCode::kCorrupt, "an extension comes twice", extension));
  }
  if (size > kMaxSampleBytes - sample_->bytes || sample_->members.size() == kMaxMembers) {
    return MarkBad(SampleError(ErrorCode::kLimitExceeded, "the sample is too large"));
  }
  sample_->bytes += size;
  sample_->members.push_back({.extension = std::move(extension),
                              .lower = std::move(lower),
                              .bytes = pool_.Allocate(static_cast<size_t>(size))});
  in_member_ = true;
}

void WebDatasetReader::OnData(std::span<const uint8_t> data) {
  if (!in_member_) return;
  Member& member = sample_->members.back();
  std::memcpy(member.bytes->data() + member.filled, data.data(), data.size());
  member.filled += data.size();
  sample_->filled += data.size();
}

Sample WebDatasetReader::Complete() {
  std::shared_ptr<const Record> record;
  if (!sample_->error) {
    try {
      record = MakeRecord();
    } catch (const Error& error) {
      sample_->error = error;
    }
  }
  Sample sample{.key = std::move(sample_->key),
                .key_hash = sample_->key_hash,
                .offset = sample_->offset,
                .record = std::move(record),
                .error = std::move(sample_->error)};
  sample_.reset();
  return sample;
}

// What has come of the sample under way may be less than all of it.
Sample WebDatasetReader::Fail(const Error& error) {
  at_end_ = true;
  if (!sample_) {
    return {
        .offset = tar_.offset(), .next_offset = tar_.offset(), .ends_shard = true, .error = error};
  }
  MarkBad(error.Within("sample " + sample_->key));
  Sample sample = Complete();
  sample.next_offset = tar_.offset();
  sample.ends_shard = true;
  return sample;
}

std::shared_ptr<const Record> WebDatasetReader::MakeRecord() {
  const size_t image = FindImage();
  if (image == kNone)
    throw SampleError(ErrorCode::kMissingMember, "the sample has no image member");
  const size_t label = wanted_.label.empty() ? kNone : FindMember(wanted_.label);
  if (label == kNone && !wanted_.label.empty()) {
    throw SampleError(ErrorCode::kMissingMember,
                      "the sample has no label member ." + wanted_.label);
  }
  auto record = std::make_shared<Record>();
  record->uri = shard_;
  record->key = sample_->key;
  if (label != kNone) record->label = ParseLabel(sample_->members[label]);
  record->members.push_back({"image", std::move(sample_->members[image].bytes)});
  for (size_t i = 0; i < sample_->members.size(); ++i) {
    if (i == image || i == label) continue;
    Member& member = sample_->members[i];
    if (member.extension == "image") {
      throw SampleError(ErrorCode::kCorrupt, "a second member is called image");
    }
    record->members.push_back({std::move(member.extension), std::move(member.bytes)});
  }
  return record;
}

size_t WebDatasetReader::FindMember(std::string_view extension) const {
  const std::vector<Member>& members = sample_->members;
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.lower == extension; });
  return found == members.end() ? kNone : static_cast<size_t>(found - members.begin());
}

size_t WebDatasetReader::FindImage() const {
  for (const std::string& extension : wanted_.image) {
    if (const size_t member = FindMember(extension); member != kNone) return member;
  }
  return kNone;
}

int64_t WebDatasetReader::ParseLabel(const Member& member) const {
  const std::string_view text(reinterpret_cast<const char*>(member.bytes->data()),
                              member.bytes->size());
  const std::string_view digits = Trim(text);
  int64_t label = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), label);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    throw SampleError(ErrorCode::kCorrupt, "the label is not a number",
                      std::string(digits.substr(0, 32)));
  }
  return label;
}

Error WebDatasetReader::SampleError(ErrorCode code, std::string what, std::string got) const {
  return Error({.code = code,
                .what = std::move(what),
                .where = *shard_ + ": sample " + sample_->key,
                .got = std::move(got)});
}

// Its bytes are of no use any more.
void WebDatasetReader::MarkBad(Error error) {
  sample_->error = std::move(error);
  sample_->members.clear();
  sample_->filled = 0;
  in_member_ = false;
}

std::unique_ptr<SampleReader> WebDatasetFormat::Read(std::shared_ptr<const std::string> shard,
                                                     BufferPool& pool, uint64_t offset,
                                                     std::span<const uint64_t> keys) const {
  return std::make_unique<WebDatasetReader>(std::move(shard), members_, pool, offset, keys);
}

}  // namespace echopipe::internal
