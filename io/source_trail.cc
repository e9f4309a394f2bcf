#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <echopipe/io/source_trail.h>

namespace echopipe::internal {

SourceTrail::SourceTrail(const SourceState& start, OptionsOfEpoch window_options)
    : window_options_(std::move(window_options)), place_(start) {
  place_.window = {};
  place_.residents.clear();
  std::vector<std::shared_ptr<const SourceState::Resident>> residents;
  residents.reserve(start.residents.size());
  for (const SourceState::Resident& resident : start.residents) {
    residents.push_back(std::make_shared<const SourceState::Resident>(resident));
  }
  window_.emplace(window_options_(start.epoch), start.window, std::move(residents));
}

void SourceTrail::BeginEpoch(uint64_t epoch) {
  Add({.kind = Step::Kind::kBeginEpoch, .number = epoch});
}
void SourceTrail::Admit(Entry entry) {
  Add({.kind = Step::Kind::kAdmit, .entry = std::move(entry)});
}
void SourceTrail::CloseWindow() { Add({.kind = Step::Kind::kClose}); }
void SourceTrail::Draw() { Add({.kind = Step::Kind::kDraw}); }
void SourceTrail::EndItem(uint64_t ordinal, const RecordPlace& place) {
  Add({.kind = Step::Kind::kEndItem, .number = ordinal, .place = place});
}

void SourceTrail::Give(uint64_t ordinal) {
  MutexLock lock(mutex_);
  given_.push_back(ordinal);
}

void SourceTrail::Add(Step step) {
  MutexLock lock(mutex_);
  steps_.push_back(std::move(step));
}

void SourceTrail::Advance(uint64_t items) {
  MutexLock lock(mutex_);
  for (; items > 0 && !given_.empty(); --items) {
    FollowTo(given_.front());
    given_.pop_front();
  }
}

void SourceTrail::FollowTo(uint64_t ordinal) {
  std::vector<SourceState::Late>& late = place_.late;
  const auto is_it = [ordinal](const SourceState::Late& item) { return item.ordinal == ordinal; };
  auto found = std::ranges::find_if(late, is_it);
  while (found == late.end() && !steps_.empty()) {
    FollowNext();
    found = std::ranges::find_if(late, is_it);
  }
  if (found != late.end()) late.erase(found);
  // Behind an epoch's last item the next one begins.
  if (late.empty() && !steps_.empty() && steps_.front().kind == Step::Kind::kBeginEpoch) {
    FollowNext();
  }
}

void SourceTrail::FollowNext() {
  Step step = std::move(steps_.front());
  steps_.pop_front();
  switch (step.kind) {
    case Step::Kind::kBeginEpoch:
      place_ = {.epoch = step.number};
      window_.emplace(window_options_(step.number));
      break;
    case Step::Kind::kAdmit:
      FollowAdmit(*std::move(step.entry));
      break;
    case Step::Kind::kClose:
      window_->Close();
      break;
    case Step::Kind::kDraw:
      if (const auto use = window_->Draw()) place_.records += use->item->error ? 0 : 1;
      break;
    case Step::Kind::kEndItem:
      place_.next_ordinal = step.number + 1;
      place_.late.push_back({.ordinal = step.number, .place = step.place});
      break;
  }
}

void SourceTrail::FollowAdmit(Entry entry) {
  window_->Offer(std::make_shared<const SourceState::Resident>(std::move(entry.resident)));
  if (entry.shard != place_.shard) place_.keys.clear();
  if (entry.key_hash) place_.keys.push_back(*entry.key_hash);
  if (entry.next_shard != entry.shard) place_.keys.clear();
  place_.shard = entry.next_shard;
  place_.byte_offset = entry.next_byte_offset;
}

SourceState SourceTrail::state() const {
  MutexLock lock(mutex_);
  SourceState state = place_;
  state.window = window_->State();
  for (const auto& resident : window_->Residents()) state.residents.push_back(*resident);
  return state;
}

}  // namespace echopipe::internal
