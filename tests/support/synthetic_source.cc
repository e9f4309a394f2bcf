#include <cstring>
#include <string>
#include <utility>

#include <echopipe/tests/support/synthetic_source.h>

namespace echopipe::testing {

SyntheticSource::SyntheticSource(Options options, BufferPool& pool, std::function<void()> wake)
    : options_(std::move(options)), pool_(pool), wake_(std::move(wake)) {}

void SyntheticSource::Poll(uint64_t wanted, std::vector<SourceItem>* out) {
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
    out->push_back(MakeItem());
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

SourceItem SyntheticSource::MakeItem() const {
  SourceItem item;
  item.epoch = epoch_;
  item.ordinal = ordinal_;
  item.ends_epoch = ordinal_ + 1 == options_.records;
  item.uri = std::make_shared<std::string>("synthetic");
  item.key = "item-" + std::to_string(ordinal_);
  if (options_.bad.contains(ordinal_)) {
    item.error = Error({.code = ErrorCode::kIo, .what = "cannot be read", .where = item.key});
    return item;
  }
  std::shared_ptr<Buffer> bytes = pool_.Allocate(sizeof(ordinal_));
  std::memcpy(bytes->data(), &ordinal_, sizeof(ordinal_));
  auto record = std::make_shared<Record>();
  record->uri = item.uri;
  record->key = item.key;
  record->label = static_cast<int64_t>(ordinal_);
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
