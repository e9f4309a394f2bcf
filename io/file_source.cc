#include <algorithm>
#include <cstring>
#include <utility>

#include <echopipe/io/file_source.h>

namespace echopipe::internal {

FileSource::FileSource(std::unique_ptr<const FileListing> listing, const EpochOptions& options,
                       RecordOrder order, const SourceState& start, uint64_t max_record_bytes,
                       std::shared_ptr<Storage> storage, BufferPool& pool,
                       const SourceLimits& limits, std::function<void()> wake)
    : listing_(std::move(listing)),
      max_record_bytes_(max_record_bytes),
      trail_(start, [options](uint64_t epoch) { return WindowOptions(options, epoch); }),
      order_(listing_->size(), options, start, trail_),
      fingerprint_(listing_->Fingerprint()),
      files_(order, trail_),
      most_rereading_(std::max<uint64_t>(1, static_cast<uint64_t>(limits.reads_in_flight) / 2)),
      reads_(std::move(storage), pool, limits, std::move(wake)) {}

void FileSource::Poll(uint64_t wanted, std::vector<SourceItem>* out) {
  TakeArrivals();
  for (auto file = rereading_.begin(); file != rereading_.end();) {
    const auto next = std::next(file);
    if (file->IsReady()) {
      out->push_back(MakeItem(std::move(*file)));
      rereading_.erase(file);
    }
    file = next;
  }
  uint64_t given = 0;
  for (; given < wanted && !fatal_; ++given) {
    std::optional<File> file = files_.TakeReady();
    if (!file) break;
    CheckRoot(*file);
    if (fatal_) break;
    out->push_back(MakeItem(*std::move(file)));
  }
  if (fatal_ && given == 0) throw *fatal_;
  if (!fatal_) StartReads(wanted - given);
}

void FileSource::Reread(std::vector<RecordPlace> places) {
  for (const RecordPlace& place : places) {
    if (place.file < listing_->size()) continue;
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "no such record",
                 .where = "source state",
                 .got = std::to_string(place.file),
                 .wanted = "less than " + std::to_string(listing_->size())});
  }
  rereads_ = std::move(places);
}

bool FileSource::AtEnd() const { return files_.empty() && order_.AtEnd(); }

void FileSource::TakeArrivals() {
  for (const ReadQueue::Arrival& arrival : reads_.TakeArrivals()) {
    const auto is_read = [&](const File& file) { return file.serial == arrival.serial; };
    const auto file = std::ranges::find_if(files_, is_read);
    OnArrival(file != files_.end() ? *file : *std::ranges::find_if(rereading_, is_read),
              arrival.result);
  }
}

void FileSource::OnArrival(File& file, const Result<ReadResult>& result) {
  if (!result.ok()) {
    Fail(file, result.error());
  } else if (file.stage == File::Stage::kReadingFirst) {
    OnFirst(file, result.value());
  } else {
    OnRest(file, result.value());
  }
}

void FileSource::OnFirst(File& file, const ReadResult& result) {
  file.first = result.data;
  file.size = result.object_size;
  const std::string where = listing_->Path(file.position.record);
  if (file.size == 0) {
    return Fail(file,
                Error({.code = ErrorCode::kEmpty, .what = "the file is empty", .where = where}));
  }
  if (file.size > max_record_bytes_) {
    return Fail(file, Error({.code = ErrorCode::kLimitExceeded,
                             .what = "the file is too large",
                             .where = where,
                             .got = std::to_string(file.size) + " bytes",
                             .wanted = "at most " + std::to_string(max_record_bytes_)}));
  }
  if (file.first->size() < std::min(file.size, kFirstRead)) {
    return Fail(file, Error({.code = ErrorCode::kTruncated,
                             .what = "the file shrank while it was read",
                             .where = where}));
  }
  file.stage = file.size > kFirstRead ? File::Stage::kWaitingForRest : File::Stage::kReady;
}

void FileSource::OnRest(File& file, const ReadResult& result) {
  file.rest = result.data;
  if (result.object_size != file.size || file.rest->size() != file.size - kFirstRead) {
    return Fail(file, Error({.code = ErrorCode::kTruncated,
                             .what = "the file changed its size while it was read",
                             .where = listing_->Path(file.position.record)}));
  }
  file.stage = File::Stage::kReady;
}

// What has come of it is of no use.
void FileSource::Fail(File& file, Error error) {
  if (file.first) reads_.Release(file.first->size());
  if (file.rest) reads_.Release(file.rest->size());
  file.first = nullptr;
  file.rest = nullptr;
  file.error = std::move(error);
  file.stage = File::Stage::kReady;
}

void FileSource::StartReads(uint64_t wanted) {
  StartRereads();
  if (!StartRests(files_)) return;
  while (files_.size() < wanted) {
    // The item due next may always be read.
    if (!reads_.HasRoom(kFirstRead) && (!files_.empty() || !reads_.HasReadRoom())) return;
    const std::optional<ListingOrder::Position> position = order_.Next();
    if (!position) return;
    Start(files_.Add({.position = *position}), 0, kFirstRead);
  }
}

void FileSource::StartRereads() {
  if (!StartRests(rereading_)) return;
  while (next_reread_ < rereads_.size() && rereading_.size() < most_rereading_) {
    if (!reads_.HasRoom(kFirstRead) && (!rereading_.empty() || !reads_.HasReadRoom())) return;
    rereading_.push_back(
        {.position = {.record = rereads_[next_reread_].file}, .reread = next_reread_});
    ++next_reread_;
    Start(rereading_.back(), 0, kFirstRead);
  }
}

// Older files come first: false if one has to wait.
template <class Files>
bool FileSource::StartRests(Files& files) {
  for (File& file : files) {
    if (file.stage != File::Stage::kWaitingForRest) continue;
    const uint64_t length = file.size - kFirstRead;
    const bool oldest = &file == &files.front();
    if (!reads_.HasRoom(length) && !(oldest && reads_.HasReadRoom())) return false;
    file.stage = File::Stage::kReadingRest;
    Start(file, kFirstRead, length);
  }
  return true;
}

void FileSource::Start(File& file, uint64_t offset, uint64_t length) {
  file.serial = reads_.Start(
      {.path = listing_->Path(file.position.record), .offset = offset, .length = length});
}

SourceItem FileSource::MakeItem(File file) {
  const uint64_t index = file.position.record;
  SourceItem item{.epoch = file.position.epoch,
                  .ordinal = file.position.ordinal,
                  .ends_epoch = file.position.ends_epoch,
                  .place = {.file = index},
                  .uri = std::make_shared<const std::string>(listing_->Path(index)),
                  .key = listing_->Key(index),
                  .error = std::move(file.error),
                  .reread = file.reread};
  if (item.error) return item;
  auto record = std::make_shared<Record>();
  record->uri = item.uri;
  record->key = item.key;
  record->label = listing_->Label(index);
  record->members.push_back({.name = "image", .bytes = Join(file)});
  for (const auto& [name, value] : listing_->Fields(index)) {
    const std::shared_ptr<Buffer> bytes = reads_.pool().Allocate(value.size());
    std::ranges::copy(value, bytes->data());
    record->members.push_back({.name = name, .bytes = bytes});
  }
  reads_.Release(file.size);
  item.record = std::move(record);
  return item;
}

std::shared_ptr<const Buffer> FileSource::Join(const File& file) {
  if (!file.rest) return file.first;
  std::shared_ptr<Buffer> whole = reads_.pool().Allocate(static_cast<size_t>(file.size));
  std::memcpy(whole->data(), file.first->data(), file.first->size());
  std::memcpy(whole->data() + file.first->size(), file.rest->data(), file.rest->size());
  return whole;
}

// If the file is missing because all of its root is, that ends the stream.
void FileSource::CheckRoot(const File& file) {
  if (!file.error || file.error->code() != ErrorCode::kNotFound) return;
  if (!RootIsGone(file.position.record)) return;
  fatal_ = Error({.code = ErrorCode::kNotFound,
                  .what = "it is gone, and all of its records",
                  .where = listing_->Root(file.position.record)});
}

// Where folders have no size of their own, the listing decides.
bool FileSource::RootIsGone(uint64_t record) {
  const std::string& root = listing_->Root(record);
  const Result<uint64_t> size = reads_.storage().Size(root);
  if (size.ok() || size.error().code() != ErrorCode::kNotFound) return false;
  return !reads_.storage().List(root).ok();
}

}  // namespace echopipe::internal
