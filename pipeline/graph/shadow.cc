#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include <echopipe/pipeline/graph/shadow.h>

namespace echopipe::internal {
namespace {

template <class T>
std::vector<ShadowEcho<T>> MakeEchoes(const std::vector<EchoPoint>& points,
                                      const std::vector<ShadowState::EchoPoint<T>>* start,
                                      Log<Decision>& decisions) {
  std::vector<ShadowEcho<T>> echoes;
  for (size_t i = 0; i < points.size(); ++i) {
    echoes.emplace_back(points[i], start ? &start->at(i) : nullptr, decisions);
  }
  return echoes;
}

template <class T>
std::variant<EpochEcho<T>, EpochAdaptive<T>> EchoOf(const EchoPoint& point,
                                                    const ShadowState::EchoPoint<T>* start) {
  if (!point.adaptive) {
    return start ? EpochEcho<T>(point, start->state, start->residents) : EpochEcho<T>(point);
  }
  return start ? EpochAdaptive<T>(point, start->adaptive.value(), start->residents)
               : EpochAdaptive<T>(point);
}

template <class T>
std::vector<ShadowState::EchoPoint<T>> StatesOf(const std::vector<ShadowEcho<T>>& echoes) {
  std::vector<ShadowState::EchoPoint<T>> states;
  states.reserve(echoes.size());
  for (const ShadowEcho<T>& echo : echoes) states.push_back(echo.State());
  return states;
}

std::vector<std::shared_ptr<ShadowItem>> CopiesOf(
    const std::vector<std::shared_ptr<const ShadowItem>>& items) {
  std::vector<std::shared_ptr<ShadowItem>> copies;
  copies.reserve(items.size());
  for (const auto& item : items) copies.push_back(std::make_shared<ShadowItem>(*item));
  return copies;
}

StandIns<ShadowItem> StandInsOf(const StandInRule& rule, const StandInsState<ShadowItem>* start) {
  if (start == nullptr) return StandIns<ShadowItem>(rule);
  return {rule, CopiesOf(start->held), start->released, start->epoch_has_good};
}

RecordOrigin OriginOf(const Identity& identity) {
  return {.epoch = identity.epoch, .ordinal = identity.ordinal};
}

Error Failed() {
  return Error({.code = ErrorCode::kStopped,
                .what = "no checkpoint can be made: the pipeline has failed, and what it still "
                        "delivered came about by that",
                .where = "Pipeline"});
}

Error Inconsistent() {
  return Error({.code = ErrorCode::kInternal,
                .what = "no checkpoint can be made: a batch came that nothing follows from",
                .where = "Pipeline"});
}

}  // namespace

std::shared_ptr<ShadowItem> StandIn(const ShadowItem& place, const ShadowItem& good, size_t edge) {
  auto item = std::make_shared<ShadowItem>(place);
  item->tombstone = false;
  item->replaced.push_back(std::exchange(item->bad, nullptr));
  item->place = good.place;
  item->formers = good.formers;
  item->formers.push_back({.edge = edge, .identity = good.identity, .ages = good.ages});
  return item;
}

MadeItem MadeBehind(const ShadowItem& item, size_t echo_points) {
  const auto former = std::ranges::find_if(
      item.formers, [echo_points](const auto& candidate) { return candidate.edge >= echo_points; });
  const bool is_former = former != item.formers.end();
  const Identity& whole = is_former ? former->identity : item.identity;
  const std::vector<uint64_t>& ages = is_former ? former->ages : item.ages;
  MadeItem made;
  made.identity.epoch = whole.epoch;
  made.identity.ordinal = whole.ordinal;
  made.identity.echo_points = static_cast<uint32_t>(echo_points);
  std::copy_n(whole.use.begin(), echo_points, made.identity.use.begin());
  if (echo_points > 0) made.age = ages[echo_points - 1];
  if (former != item.formers.begin()) made.stands_in = OriginOf(item.formers.front().identity);
  return made;
}

MadeItem MadeNow(const ShadowItem& item) {
  MadeItem made{.identity = item.identity};
  if (!item.ages.empty()) made.age = item.ages.back();
  if (!item.formers.empty()) made.stands_in = OriginOf(item.formers.front().identity);
  return made;
}

template <class T>
ShadowEcho<T>::ShadowEcho(const EchoPoint& point, const ShadowState::EchoPoint<T>* start,
                          Log<Decision>& decisions)
    : echo_(EchoOf(point, start)), decisions_(decisions) {}

template <class T>
ShadowState::EchoPoint<T> ShadowEcho<T>::State() const {
  if (const auto* fixed = std::get_if<EpochEcho<T>>(&echo_)) {
    return {.state = fixed->State(), .residents = fixed->Residents()};
  }
  const auto& adaptive = std::get<EpochAdaptive<T>>(echo_);
  return {.state = {}, .residents = adaptive.Residents(), .adaptive = adaptive.State()};
}

Shadow::Shadow(const Plan& plan, const ShadowState* start, ShadowLogs& logs, Source& source)
    : logs_(logs),
      source_(source),
      adaptive_echo_(plan.adaptive_echo()),
      echoes_(
          MakeEchoes<ShadowItem>(plan.echoes, start ? &start->echoes : nullptr, logs.decisions)),
      batch_echoes_(MakeEchoes<ShadowBatch>(
          plan.batch_echoes, start ? &start->batch_echoes : nullptr, logs.decisions)),
      replaces_(plan.replaces) {
  for (size_t edge = 0; edge <= plan.echoes.size(); ++edge) {
    const auto* state = start && replaces_ ? &start->stand_ins.at(edge) : nullptr;
    edges_.push_back({.stand_ins = StandInsOf(plan.RuleOf(edge), state),
                      .first = state ? state->good : nullptr});
  }
  if (start == nullptr) return;
  steps_ = start->steps;
  batches_ = start->batches;
  epoch_ = start->epoch;
  bad_ = start->bad;
}

void Shadow::FollowIfFree(uint64_t steps) {
  if (!mutex_.try_lock()) return;
  MutexLock lock(mutex_, std::adopt_lock);
  Follow(steps);
}

ShadowState Shadow::StateAfter(uint64_t steps) {
  MutexLock lock(mutex_);
  Follow(steps);
  if (error_) throw *error_;
  return {.steps = steps_,
          .batches = batches_,
          .source = source_.state(),
          .echoes = StatesOf(echoes_),
          .batch_echoes = StatesOf(batch_echoes_),
          .stand_ins = StandInStates(),
          .epoch = epoch_,
          .bad = bad_};
}

std::vector<StandInsState<ShadowItem>> Shadow::StandInStates() {
  std::vector<StandInsState<ShadowItem>> states;
  if (!replaces_) return states;
  for (const Edge& edge : edges_) {
    states.push_back(edge.stand_ins.State());
    if (edge.first) states.back().good = edge.first;
  }
  return states;
}

void Shadow::Follow(uint64_t steps) {
  try {
    for (; steps_ < steps && !error_; ++steps_) {
      if (!PullBatch(batch_echoes_.size()) && !error_) error_ = Inconsistent();
    }
    source_.Advance(std::exchange(records_, 0));
  } catch (const std::bad_alloc&) {  // half of a batch has been followed
    error_ = OutOfMemory();
  }
}

// What comes to the echo point of batches with this number; behind the last, to the consumer.
std::shared_ptr<const ShadowBatch> Shadow::PullBatch(size_t edge) {
  if (edge == 0) return MakeBatch();
  const auto drawn = batch_echoes_[edge - 1].DrawFrom([&] {
    mutex_.AssertHeld();
    return PullBatch(edge - 1);
  });
  if (!drawn) return nullptr;
  auto batch = std::make_shared<ShadowBatch>(*drawn->use.item);
  batch->uses.push_back(drawn->use.use);
  batch->ends_epoch = drawn->ends_epoch;
  return batch;
}

std::shared_ptr<const ShadowBatch> Shadow::MakeBatch() {
  const std::optional<ShadowLogs::Batch> log = logs_.batches.Take();
  if (!log) return nullptr;
  ++batches_;
  if (log->by_failure) error_ = Failed();
  auto batch = std::make_shared<ShadowBatch>();
  batch->ends_epoch = log->ends_epoch;
  batch->epoch = log->epoch;
  while (batch_places_ < log->next) {
    const bool inside = batch_places_ >= log->begin && batch_places_ < log->end;
    ++batch_places_;
    std::shared_ptr<const ShadowItem> item = PullItem(echoes_.size());
    if (!item) return nullptr;
    Count(*item);
    if (inside && !item->tombstone && !batch_echoes_.empty()) batch->items.push_back(item);
  }
  return batch;
}

void Shadow::Count(const ShadowItem& item) {
  bad_.CountPlace(item.identity, item.replaced.size() + (item.bad ? 1 : 0));
  for (const auto& bad : item.replaced) bad_.Add(item.identity, *bad);
  if (item.bad) bad_.Add(item.identity, *item.bad);
  if (!adaptive_echo_ || item.identity.use[*adaptive_echo_] == 0) {
    ++(!item.tombstone ? epoch_.examples : item.bad ? epoch_.bad : epoch_.filtered_out);
  }
  if (item.ends_epoch) epoch_ = {};
}

// What goes on from the edge in front of the echo point with this number, or of batch.
std::shared_ptr<const ShadowItem> Shadow::PullItem(size_t edge) {
  StandIns<ShadowItem>& stand_ins = edges_[edge].stand_ins;
  while (!stand_ins.HasNext()) {
    if (std::shared_ptr<ShadowItem> item = PullArrival(edge)) {
      stand_ins.Put(std::move(item));
      continue;
    }
    if (error_) return nullptr;
    stand_ins.Close();
    if (!stand_ins.HasNext()) return nullptr;
  }
  return stand_ins.Next();
}

// What comes over it.
std::shared_ptr<ShadowItem> Shadow::PullArrival(size_t edge) {
  const uint64_t place = edges_[edge].places++;
  const auto is_here = [place](const ShadowLogs::Gap& next) { return next.place == place; };
  std::optional<ShadowLogs::Gap> tombstone;
  while (std::optional<ShadowLogs::Gap> gap = logs_.gaps[edge].TakeIf(is_here)) {
    if (gap->failure) {
      error_ = Failed();
      return nullptr;
    }
    tombstone = std::move(gap);
  }
  const std::shared_ptr<const ShadowItem> first = std::exchange(edges_[edge].first, nullptr);
  std::shared_ptr<ShadowItem> item = first       ? std::make_shared<ShadowItem>(*first)
                                     : edge == 0 ? NextRecord()
                                                 : DrawItem(edge - 1);
  if (item && tombstone) {
    item->tombstone = true;
    item->bad = std::move(tombstone->bad);
    item->formers.clear();
  }
  return item;
}

std::shared_ptr<ShadowItem> Shadow::DrawItem(size_t index) {
  const auto drawn = echoes_[index].DrawFrom([&] {
    mutex_.AssertHeld();
    return PullItem(index);
  });
  if (!drawn) return nullptr;
  auto item = std::make_shared<ShadowItem>(*drawn->use.item);
  item->identity.use[item->identity.echo_points++] = drawn->use.use;
  item->ages.push_back(drawn->use.age);
  item->stream_epoch = drawn->stream_epoch;
  item->ends_epoch = drawn->ends_epoch;
  return item;
}

std::shared_ptr<ShadowItem> Shadow::NextRecord() {
  const std::optional<ShadowLogs::Record> record = logs_.records.Take();
  if (!record) return nullptr;
  ++records_;
  auto item = std::make_shared<ShadowItem>();
  item->identity.epoch = record->epoch;
  item->identity.ordinal = record->ordinal;
  item->place = record->place;
  item->stream_epoch = record->epoch;
  item->ends_epoch = record->ends_epoch;
  return item;
}

}  // namespace echopipe::internal
