#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <echopipe/pipeline/graph/reread.h>

namespace echopipe::internal {
namespace {

// Draws that are looked ahead, for each resident: almost all have been drawn by then.
constexpr uint64_t kLookAhead = 16;

/// For each resident, in the state's order: how many draws come before its own, as if upstream had
/// no end.
std::vector<uint64_t> DrawsBefore(const EchoOptions& options, const EchoState& state) {
  EchoOrder order(options, state);
  std::unordered_map<uint64_t, size_t> waiting;  // item to its index
  for (const auto* residents : {&state.drawable, &state.blocked}) {
    for (const EchoState::Resident& resident : *residents) {
      waiting.emplace(resident.item, waiting.size());
    }
  }
  const uint64_t most = kLookAhead * waiting.size();
  std::vector<uint64_t> draws(waiting.size(), most);
  for (uint64_t draw = 0; draw < most && !waiting.empty(); ++draw) {
    while (order.HasRoom()) order.Offer();
    const std::optional<EchoOrder::Pick> pick = order.Draw();
    if (!pick) break;
    const auto found = waiting.find(pick->item);
    if (found == waiting.end()) continue;
    draws[found->second] = draw;
    waiting.erase(found);
  }
  return draws;
}

// When an adaptive point draws its residents, nothing tells; live, not before all are there.
template <class T>
std::vector<uint64_t> DrawsBefore(const EchoPoint& point, const ShadowState::EchoPoint<T>& echo) {
  if (!point.adaptive) return DrawsBefore(point.options, echo.state.order);
  std::vector<uint64_t> draws(echo.residents.size());
  std::iota(draws.begin(), draws.end(), uint64_t{0});
  return draws;
}

/// Collects destinations by record.
class Rereads {
 public:
  void Add(Destination to, double due) {
    const RecordPlace& place = to.item->place;
    auto& [first_due, destinations] = records_[{place.file, place.offset, place.length}];
    first_due = destinations.empty() ? due : std::min(first_due, due);
    destinations.push_back(std::make_shared<const Destination>(std::move(to)));
  }

  std::vector<Reread> InOrder() && {
    std::vector<std::pair<double, Reread>> sorted;
    for (auto& [place, record] : records_) {
      const auto& [file, offset, length] = place;
      sorted.push_back({record.first, {{file, offset, length}, std::move(record.second)}});
    }
    std::ranges::stable_sort(sorted, {}, [](const auto& entry) { return entry.first; });
    std::vector<Reread> rereads;
    rereads.reserve(sorted.size());
    for (auto& [due, reread] : sorted) rereads.push_back(std::move(reread));
    return rereads;
  }

 private:
  using Record = std::pair<double, std::vector<std::shared_ptr<const Destination>>>;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, Record> records_;
};

/// How many draws of the last of these points follow from one draw in front of them.
double FactorOf(std::span<const EchoPoint> points) {
  double factor = 1;
  for (const EchoPoint& point : points) factor *= point.options.factor.value();
  return factor;
}

}  // namespace

// Draws of all points are compared in examples that reach the batch stage.
std::vector<Reread> RereadsFor(const Plan& plan, const ShadowState& state) {
  Rereads rereads;
  const std::span<const EchoPoint> points(plan.echoes);
  for (size_t echo = 0; echo < points.size(); ++echo) {
    const auto& residents = state.echoes[echo].residents;
    const std::vector<uint64_t> draws = DrawsBefore(points[echo], state.echoes[echo]);
    const double examples = FactorOf(points.subspan(echo + 1));
    for (size_t slot = 0; slot < residents.size(); ++slot) {
      if (residents[slot]->tombstone) continue;
      rereads.Add(
          {.echo = echo, .slot = static_cast<EchoOrder::Slot>(slot), .item = residents[slot]},
          static_cast<double>(draws[slot]) * examples);
    }
  }
  // Others wait for these, in front of all else.
  for (size_t edge = 0; edge < state.stand_ins.size(); ++edge) {
    const std::shared_ptr<const ShadowItem>& good = state.stand_ins[edge].good;
    if (good) rereads.Add({.echo = edge, .item = good, .comes_first = true}, 0);
  }
  const std::span<const EchoPoint> batch_points(plan.batch_echoes);
  for (size_t echo = 0; echo < batch_points.size(); ++echo) {
    const auto& residents = state.batch_echoes[echo].residents;
    const std::vector<uint64_t> draws = DrawsBefore(batch_points[echo], state.batch_echoes[echo]);
    const double examples =
        static_cast<double>(plan.batch.size()) / FactorOf(batch_points.first(echo + 1));
    for (size_t slot = 0; slot < residents.size(); ++slot) {
      const std::shared_ptr<const ShadowBatch>& batch = residents[slot];
      for (size_t member = 0; member < batch->items.size(); ++member) {
        rereads.Add({.echo = echo,
                     .slot = static_cast<EchoOrder::Slot>(slot),
                     .item = batch->items[member],
                     .batch = batch,
                     .member = member},
                    static_cast<double>(draws[slot]) * examples);
      }
    }
  }
  return std::move(rereads).InOrder();
}

}  // namespace echopipe::internal
