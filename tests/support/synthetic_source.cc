#include <cstring>
#include <string>
#include <utility>

#include <echopipe/tests/support/synthetic_source.h>

namespace echopipe::testing {

SyntheticSource::SyntheticSource(Options options, BufferPool& pool, std::function<void()> wake)
    : options_(std::move(options)), pool_(pool), wake_(std::move(wake)) {
  epoch_ = options_.start.epoch;
  ordinal_ = options_.start.next_ordinal;
}

void SyntheticSource::Poll(uint64_t wanted, std::vector<SourceItem>* out) {
  for (size_t i = 0; i < rereads_.size(); ++i) {
    out->push_back(MakeItem(0, rereads_[i].file));
    out->back().reread = i;
  }
  rereads_.clear();
  const size_t before = out->size();
  for (; wanted > 0 && !AtEnd(); --wanted) {
    if (options_.gated) {
      MutexLock lock(mutex_);
      if (given_ == released_) return;
    }
    if (given_ == options_.fails_at) {
      if (out->size() > before) return;
      throw Error({.code = ErrorCode::kIo, .what = "the source broke", .where = "synthetic"});
    }
    out->push_back(MakeItem(epoch_, ordinal_));
    ++given_;
    if (++ordinal_ == options_.records) {
      ordinal_ = 0;
      ++epoch_;
    }
  }
}

bool SyntheticSource::AtEnd() const {
  return options_.records == 0 || (options_.epochs > 0 && epoch_ == options_.epochs);
}

SourceState SyntheticSource::state() const {
  const SourceState& start = options_.start;
  const uint64_t place = start.epoch * options_.records + start.next_ordinal + advanced_;
  return {.epoch = place / options_.records, .next_ordinal = place % options_.records};
}

SourceItem SyntheticSource::MakeItem(uint64_t epoch, uint64_t ordinal) const {
  SourceItem item;
  item.epoch = epoch;
  item.ordinal = ordinal;
  item.ends_epoch = ordinal + 1 == options_.records;
  item.place = {.file = ordinal};
  item.uri = std::make_shared<std::string>("synthetic");
  item.key = "item-" + std::to_string(ordinal);
  if (options_.bad.contains(ordinal)) {
    item.error = Error({.code = ErrorCode::kIo, .what = "cannot be read", .where = item.key});
    return item;
  }
  std::shared_ptr<Buffer> bytes = pool_.Allocate(sizeof(ordinal));
  std::memcpy(bytes->data(), &ordinal, sizeof(ordinal));
  auto record = std::make_shared<Record>();
  record->uri = item.uri;
  record->key = item.key;
  record->label = static_cast<int64_t>(ordinal);
  record->members = {{"image", std::move(bytes)}};
  item.record = std::move(record);
  return item;
}

void SyntheticSource::Release(uint64_t count) {
  {
    MutexLock lock(mutex_);
    released_ += count;
  }
  wake_();
}

}  // namespace echopipe::testing
