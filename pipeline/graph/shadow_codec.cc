#include <span>
#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/shadow_codec.h>

namespace echopipe::internal {
namespace {

using Items = std::vector<std::shared_ptr<const ShadowItem>>;

// Far beyond any run, and low enough that no sum here can overflow.
constexpr uint64_t kMaxCount = uint64_t{1} << 53;

void Require(bool condition, const char* what) {
  if (condition) return;
  throw Error({.code = ErrorCode::kInvalidArgument, .what = what, .where = "checkpoint"});
}

// ---- bad examples

ErrorCode CodeOf(const std::string& name) {
  for (int code = 0; code < static_cast<int>(ErrorCode::kInternal); ++code) {
    if (ToString(static_cast<ErrorCode>(code)) == name) return static_cast<ErrorCode>(code);
  }
  return ErrorCode::kInternal;
}

void Encode(const BadExample& bad, proto::BadExample* message) {
  const Error::Details& details = bad.error.details();
  message->set_uri(bad.uri);
  message->set_key(bad.key);
  message->set_stage(bad.stage);
  message->set_code(std::string(ToString(details.code)));
  message->set_what(details.what);
  message->set_where(details.where);
  message->set_got(details.got);
  message->set_wanted(details.wanted);
}

BadExample Decode(const proto::BadExample& message) {
  return {message.uri(), message.key(), message.stage(),
          Error({.code = CodeOf(message.code()),
                 .what = message.what(),
                 .where = message.where(),
                 .got = message.got(),
                 .wanted = message.wanted()})};
}

// ---- echo points

void Encode(const EchoState& state, proto::EchoOrderState* message) {
  message->set_admitted(state.admitted);
  message->set_draws(state.draws);
  message->set_exceptions(state.exceptions);
  message->set_share_remainder(state.share_remainder);
  message->set_closed(state.closed);
  message->set_in_group(state.in_group);
  message->set_drawable(state.drawable.size());
  for (const auto* residents : {&state.drawable, &state.blocked}) {
    for (const EchoState::Resident& resident : *residents) {
      message->add_item(resident.item);
      message->add_uses(resident.uses);
      message->add_uses_left(resident.uses_left);
      message->add_first_draw(resident.first_draw);
      message->add_last_draw(resident.last_draw);
    }
  }
}

EchoState Decode(const proto::EchoOrderState& message) {
  const int count = message.item_size();
  Require(message.uses_size() == count && message.uses_left_size() == count &&
              message.first_draw_size() == count && message.last_draw_size() == count &&
              message.drawable() <= static_cast<uint64_t>(count),
          "columns of unequal length");
  EchoState state{.admitted = message.admitted(),
                  .draws = message.draws(),
                  .exceptions = message.exceptions(),
                  .share_remainder = message.share_remainder(),
                  .closed = message.closed(),
                  .in_group = message.in_group()};
  for (int i = 0; i < count; ++i) {
    const bool drawable = static_cast<uint64_t>(i) < message.drawable();
    (drawable ? state.drawable : state.blocked)
        .push_back({.item = message.item(i),
                    .uses = message.uses(i),
                    .uses_left = message.uses_left(i),
                    .first_draw = message.first_draw(i),
                    .last_draw = message.last_draw(i)});
  }
  return state;
}

void Encode(const EpochEchoState& state, proto::EpochEcho* message) {
  Encode(state.order, message->mutable_order());
  *message->mutable_epoch_border() = {state.epoch_borders.begin(), state.epoch_borders.end()};
  message->set_stream_epoch(state.stream_epoch);
}

EpochEchoState Decode(const proto::EpochEcho& message) {
  return {.order = Decode(message.order()),
          .epoch_borders = {message.epoch_border().begin(), message.epoch_border().end()},
          .stream_epoch = message.stream_epoch()};
}

void Encode(const EpochAdaptiveState& state, proto::EpochEcho* message) {
  message->set_stream_epoch(state.stream_epoch);
  proto::AdaptiveOrderState& order = *message->mutable_adaptive();
  order.set_admitted(state.order.admitted);
  order.set_draws(state.order.draws);
  order.set_drawable(state.order.drawable.size());
  for (const auto* residents : {&state.order.drawable, &state.order.blocked}) {
    for (const AdaptiveState::Resident& resident : *residents) {
      order.add_item(resident.item);
      order.add_uses(resident.uses);
      order.add_first_draw(resident.first_draw);
      order.add_last_draw(resident.last_draw);
    }
  }
}

EpochAdaptiveState DecodeAdaptive(const proto::EpochEcho& message) {
  const proto::AdaptiveOrderState& order = message.adaptive();
  const int count = order.item_size();
  Require(order.uses_size() == count && order.first_draw_size() == count &&
              order.last_draw_size() == count && order.drawable() <= static_cast<uint64_t>(count),
          "columns of unequal length");
  Require(order.draws() <= kMaxCount, "more draws than can be");
  EpochAdaptiveState state{.order = {.admitted = order.admitted(), .draws = order.draws()},
                           .stream_epoch = message.stream_epoch()};
  for (int i = 0; i < count; ++i) {
    const bool drawable = static_cast<uint64_t>(i) < order.drawable();
    (drawable ? state.order.drawable : state.order.blocked)
        .push_back({.item = order.item(i),
                    .uses = order.uses(i),
                    .first_draw = order.first_draw(i),
                    .last_draw = order.last_draw(i)});
  }
  return state;
}

template <class T>
void EncodeState(const ShadowState::EchoPoint<T>& echo, proto::EpochEcho* message) {
  if (echo.adaptive) {
    Encode(*echo.adaptive, message);
  } else {
    Encode(echo.state, message);
  }
}

// Of a point with so many residents, which are for the caller to add.
template <class T>
ShadowState::EchoPoint<T> DecodeState(const proto::EpochEcho& message, const EchoPoint& point,
                                      int residents) {
  Require(message.has_adaptive() == point.adaptive.has_value(), "an echo point of another kind");
  Require(
      residents == (point.adaptive ? message.adaptive().item_size() : message.order().item_size()),
      "other residents");
  if (point.adaptive) return {.state = {}, .adaptive = DecodeAdaptive(message)};
  return {.state = Decode(message)};
}

// ---- items

void Encode(const RecordPlace& place, proto::Places* message) {
  message->add_file(place.file);
  message->add_offset(place.offset);
  message->add_length(place.length);
}

RecordPlace PlaceAt(const proto::Places& message, int i) {
  return {message.file(i), message.offset(i), message.length(i)};
}

void CheckPlaces(const proto::Places& message, int count) {
  Require(message.file_size() == count && message.offset_size() == count &&
              message.length_size() == count,
          "columns of unequal length");
}

void Encode(size_t index, const ShadowItem& item, proto::StandIn* message) {
  message->set_item(index);
  for (const ShadowItem::Former& former : item.formers) {
    proto::StandIn::Former* encoded = message->add_former();
    encoded->set_edge(former.edge);
    encoded->set_epoch(former.identity.epoch);
    encoded->set_ordinal(former.identity.ordinal);
    const std::span<const uint32_t> uses = former.identity.uses();
    *encoded->mutable_use() = {uses.begin(), uses.end()};
    *encoded->mutable_age() = {former.ages.begin(), former.ages.end()};
  }
  for (const auto& bad : item.replaced) Encode(*bad, message->add_bad());
}

void Encode(const Items& items, proto::Items* message) {
  for (size_t i = 0; i < items.size(); ++i) {
    const ShadowItem& item = *items[i];
    message->add_epoch(item.identity.epoch);
    message->add_ordinal(item.identity.ordinal);
    for (const uint32_t use : item.identity.uses()) message->add_use(use);
    for (const uint64_t age : item.ages) message->add_age(age);
    Encode(item.place, message->mutable_place());
    if (!item.formers.empty() || !item.replaced.empty()) Encode(i, item, message->add_stand_in());
    if (!item.tombstone) continue;
    proto::Tombstone* tombstone = message->add_tombstone();
    tombstone->set_item(i);
    if (item.bad) Encode(*item.bad, tombstone->mutable_bad());
  }
}

ShadowItem::Former Decode(const proto::StandIn::Former& message,
                          std::span<const EchoPoint> passed) {
  Require(message.edge() < passed.size() + 1 && message.use_size() == message.age_size() &&
              static_cast<uint64_t>(message.use_size()) == message.edge(),
          "a stand-in from an edge that it has not passed");
  ShadowItem::Former former{.edge = message.edge(),
                            .ages = {message.age().begin(), message.age().end()}};
  former.identity.epoch = message.epoch();
  former.identity.ordinal = message.ordinal();
  for (const uint32_t use : message.use()) {
    const EchoPoint& point = passed[former.identity.echo_points];
    Require(use < point.options.factor.MaxUses(), "a use beyond an echo point's factor");
    former.identity.use[former.identity.echo_points++] = use;
  }
  return former;
}

// Of an item that has passed these echo points, and perhaps the edge behind them.
void Decode(const proto::StandIn& message, std::span<const EchoPoint> points, ShadowItem* item) {
  Require(message.former().empty() || !item->tombstone, "a stand-in without data");
  Require(message.former().empty() || !message.bad().empty(), "a stand-in for nothing");
  for (const proto::StandIn::Former& former : message.former()) {
    item->formers.push_back(Decode(former, points));
    Require(item->formers.size() == 1 || item->formers.rbegin()[1].edge < item->formers.back().edge,
            "stand-ins in another order than their edges'");
  }
  Require(message.bad_size() <= static_cast<int>(points.size()) + 1, "more bad ones than edges");
  for (const proto::BadExample& bad : message.bad()) {
    item->replaced.push_back(std::make_shared<const BadExample>(Decode(bad)));
  }
}

// Items that have passed `points`.
Items Decode(const proto::Items& message, std::span<const EchoPoint> points) {
  const int count = message.epoch_size();
  const auto uses = static_cast<int64_t>(points.size()) * count;
  Require(
      message.ordinal_size() == count && message.use_size() == uses && message.age_size() == uses,
      "columns of unequal length");
  CheckPlaces(message.place(), count);
  std::vector<std::shared_ptr<ShadowItem>> items;
  int next_use = 0;
  for (int i = 0; i < count; ++i) {
    auto item = std::make_shared<ShadowItem>();
    item->identity.epoch = message.epoch(i);
    item->identity.ordinal = message.ordinal(i);
    item->place = PlaceAt(message.place(), i);
    for (const EchoPoint& point : points) {
      const uint32_t use = message.use(next_use);
      Require(use < point.options.factor.MaxUses(), "a use beyond an echo point's factor");
      item->identity.use[item->identity.echo_points++] = use;
      item->ages.push_back(message.age(next_use++));
    }
    items.push_back(std::move(item));
  }
  for (const proto::Tombstone& tombstone : message.tombstone()) {
    Require(tombstone.item() < items.size(), "a tombstone without a place");
    ShadowItem& item = *items[tombstone.item()];
    item.tombstone = true;
    if (tombstone.has_bad()) {
      item.bad = std::make_shared<const BadExample>(Decode(tombstone.bad()));
    }
  }
  for (const proto::StandIn& stand_in : message.stand_in()) {
    Require(stand_in.item() < items.size(), "a stand-in without a place");
    ShadowItem& item = *items[stand_in.item()];
    Require(item.formers.empty() && item.replaced.empty(), "an item that stands in twice");
    Decode(stand_in, points, &item);
  }
  return {items.begin(), items.end()};
}

// ---- edges

void Encode(const StandInsState<ShadowItem>& state, proto::StandIns* message) {
  Items items = state.held;
  if (state.good) items.push_back(state.good);
  Encode(items, message->mutable_item());
  for (const auto& item : items) {
    message->add_stream_epoch(item->stream_epoch);
    message->add_ends_epoch(item->ends_epoch);
  }
  message->set_held(state.held.size());
  message->set_released(state.released);
  message->set_epoch_has_good(state.epoch_has_good);
}

// Of the edge behind `points`.
StandInsState<ShadowItem> Decode(const proto::StandIns& message,
                                 std::span<const EchoPoint> points) {
  const Items decoded = Decode(message.item(), points);
  const auto count = static_cast<int>(decoded.size());
  Require(message.stream_epoch_size() == count && message.ends_epoch_size() == count,
          "columns of unequal length");
  Require(message.held() <= decoded.size() && decoded.size() - message.held() <= 1,
          "more than one item that stands in");
  StandInsState<ShadowItem> state{.released = message.released(),
                                  .epoch_has_good = message.epoch_has_good()};
  for (int i = 0; i < count; ++i) {
    auto item = std::make_shared<ShadowItem>(*decoded[static_cast<size_t>(i)]);
    item->stream_epoch = message.stream_epoch(i);
    item->ends_epoch = message.ends_epoch(i);
    const bool is_held = static_cast<uint64_t>(i) < message.held();
    Require(item->tombstone == is_held, "an item held back that is no tombstone, or one behind");
    Require(item->replaced.size() <= points.size() &&
                (item->formers.empty() || item->formers.back().edge < points.size()),
            "a stand-in from an edge that it has not passed");
    if (is_held) {
      state.held.push_back(std::move(item));
    } else {
      state.good = std::move(item);
    }
  }
  Require(!state.released || (!state.held.empty() && !state.good),
          "tombstones that go on where none can");
  return state;
}

// ---- source

void Encode(const SourceState& state, proto::SourceCursor* message) {
  message->set_epoch(state.epoch);
  message->set_next_ordinal(state.next_ordinal);
  message->set_records(state.records);
  message->set_shard(state.shard);
  message->set_byte_offset(state.byte_offset);
  *message->mutable_key_hash() = {state.keys.begin(), state.keys.end()};
  Encode(state.window, message->mutable_window());
  for (size_t i = 0; i < state.residents.size(); ++i) {
    const SourceState::Resident& resident = state.residents[i];
    Encode(resident.place, message->mutable_resident());
    if (!resident.error) continue;
    proto::Tombstone* bad = message->add_bad_resident();
    bad->set_item(i);
    Encode(BadExample{"", resident.key, "source", *resident.error}, bad->mutable_bad());
  }
  for (const SourceState::Late& late : state.late) {
    message->add_late_ordinal(late.ordinal);
    Encode(late.place, message->mutable_late());
  }
  for (const SourceState& mixed : state.mixed) Encode(mixed, message->add_mixed());
}

SourceState Decode(const proto::SourceCursor& message) {
  Require(message.epoch() <= kMaxCount && message.next_ordinal() <= kMaxCount,
          "a place that no source can come to");
  SourceState state{.epoch = message.epoch(),
                    .next_ordinal = message.next_ordinal(),
                    .records = message.records(),
                    .shard = message.shard(),
                    .byte_offset = message.byte_offset(),
                    .keys = {message.key_hash().begin(), message.key_hash().end()},
                    .window = Decode(message.window())};
  const int count = message.resident().file_size();
  CheckPlaces(message.resident(), count);
  for (int i = 0; i < count; ++i) {
    state.residents.push_back({.place = PlaceAt(message.resident(), i)});
  }
  for (const proto::Tombstone& bad : message.bad_resident()) {
    Require(bad.item() < state.residents.size(), "a bad record without a place");
    BadExample example = Decode(bad.bad());
    SourceState::Resident& resident = state.residents[bad.item()];
    resident.key = std::move(example.key);
    resident.error = std::move(example.error);
  }
  CheckPlaces(message.late(), message.late_ordinal_size());
  for (int i = 0; i < message.late_ordinal_size(); ++i) {
    state.late.push_back({.ordinal = message.late_ordinal(i), .place = PlaceAt(message.late(), i)});
  }
  for (const proto::SourceCursor& mixed : message.mixed()) {
    Require(mixed.mixed().empty(), "a mix of mixes");
    state.mixed.push_back(Decode(mixed));
  }
  return state;
}

ShadowBatch Decode(const proto::BatchEcho::Batch& message, const Plan& plan, size_t passed) {
  ShadowBatch batch{.items = Decode(message.item(), plan.echoes),
                    .uses = {message.use().begin(), message.use().end()},
                    .epoch = message.epoch()};
  Require(!batch.items.empty() && batch.items.size() <= plan.batch.size(),
          "a batch of another size");
  Require(batch.uses.size() == passed, "a batch that has passed other echo points");
  for (const auto& item : batch.items) Require(!item->tombstone, "a tombstone in a batch");
  return batch;
}

}  // namespace

void Encode(const ShadowState& state, proto::Checkpoint* message) {
  message->set_steps(state.steps);
  message->set_batches(state.batches);
  Encode(state.source, message->mutable_source());
  for (const auto& echo : state.echoes) {
    proto::ExampleEcho* encoded = message->add_example_echo();
    EncodeState(echo, encoded->mutable_echo());
    Encode(echo.residents, encoded->mutable_resident());
  }
  for (const auto& echo : state.batch_echoes) {
    proto::BatchEcho* encoded = message->add_batch_echo();
    EncodeState(echo, encoded->mutable_echo());
    for (const std::shared_ptr<const ShadowBatch>& batch : echo.residents) {
      proto::BatchEcho::Batch* resident = encoded->add_resident();
      Encode(batch->items, resident->mutable_item());
      *resident->mutable_use() = {batch->uses.begin(), batch->uses.end()};
      resident->set_epoch(batch->epoch);
    }
  }
  for (const auto& stand_ins : state.stand_ins) Encode(stand_ins, message->add_stand_ins());
  proto::Tally& tally = *message->mutable_tally();
  tally.set_records(state.bad.records);
  tally.set_bad_records(state.bad.bad_records);
  *tally.mutable_bad() = {state.bad.bad.begin(), state.bad.bad.end()};
  tally.set_last_bad(state.bad.last);
  tally.set_epoch_examples(state.epoch.examples);
  tally.set_epoch_bad(state.epoch.bad);
  tally.set_epoch_filtered_out(state.epoch.filtered_out);
}

ShadowState Decode(const proto::Checkpoint& message, const Plan& plan) {
  Require(message.steps() <= kMaxCount && message.batches() <= kMaxCount, "more steps than can be");
  Require(message.example_echo_size() == static_cast<int>(plan.echoes.size()) &&
              message.batch_echo_size() == static_cast<int>(plan.batch_echoes.size()),
          "other echo points than the spec's");
  ShadowState state{
      .steps = message.steps(), .batches = message.batches(), .source = Decode(message.source())};
  for (const proto::ExampleEcho& echo : message.example_echo()) {
    const auto passed = std::span(plan.echoes).first(state.echoes.size());
    state.echoes.push_back(DecodeState<ShadowItem>(echo.echo(), plan.echoes[passed.size()],
                                                   echo.resident().epoch_size()));
    state.echoes.back().residents = Decode(echo.resident(), passed);
    Require(!state.echoes.back().adaptive || echo.resident().tombstone_size() == 0,
            "a tombstone that would be repeated");
  }
  for (const proto::BatchEcho& echo : message.batch_echo()) {
    auto decoded = DecodeState<ShadowBatch>(
        echo.echo(), plan.batch_echoes[state.batch_echoes.size()], echo.resident_size());
    for (const proto::BatchEcho::Batch& batch : echo.resident()) {
      decoded.residents.push_back(
          std::make_shared<const ShadowBatch>(Decode(batch, plan, state.batch_echoes.size())));
    }
    state.batch_echoes.push_back(std::move(decoded));
  }
  Require(message.stand_ins_size() == (plan.replaces ? message.example_echo_size() + 1 : 0),
          "other edges than the spec's");
  for (const proto::StandIns& stand_ins : message.stand_ins()) {
    state.stand_ins.push_back(
        Decode(stand_ins, std::span(plan.echoes).first(state.stand_ins.size())));
  }
  const proto::Tally& tally = message.tally();
  state.bad = {.records = tally.records(),
               .bad_records = tally.bad_records(),
               .bad = {tally.bad().begin(), tally.bad().end()},
               .last = tally.last_bad()};
  state.epoch = {.examples = tally.epoch_examples(),
                 .bad = tally.epoch_bad(),
                 .filtered_out = tally.epoch_filtered_out()};
  return state;
}

}  // namespace echopipe::internal
