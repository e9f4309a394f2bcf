#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/echo/echo_buffer.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe {
namespace {

using testing::EchoCase;
using testing::ExactShare;
using testing::ExactUses;

struct Step {
  enum Kind { kOffer, kClose, kReopen, kDraw };
  Kind kind = kOffer;
  uint64_t item = 0;  // of Offer and Draw
  uint64_t use = 0;   // these three of Draw
  uint64_t draw = 0;
  uint64_t age = 0;
  bool exception = false;
  bool operator==(const Step&) const = default;
};

/// Runs a case from beginning to end and writes down what happened.
class History {
 public:
  explicit History(const EchoCase& echo_case) : case_(echo_case), buffer_(echo_case.options) {}
  virtual ~History() = default;

  const std::vector<Step>& Steps() {
    for (size_t epoch = 0; epoch < case_.epochs.size(); ++epoch) {
      if (epoch > 0) Reopen();
      for (uint64_t left = case_.epochs[epoch]; left > 0;) {
        BeforeStep();
        if (buffer_.HasRoom()) {
          Offer();
          --left;
        } else {
          Draw();
        }
      }
      while (!case_.early_close && !buffer_.HasRoom() && Draw()) BeforeStep();
      Close();
      while (Draw()) BeforeStep();
    }
    return steps_;
  }
  const EchoBuffer<uint64_t>& buffer() const { return buffer_; }

 protected:
  virtual void BeforeStep() {}
  EchoBuffer<uint64_t>& mutable_buffer() { return buffer_; }

 private:
  void Offer() {
    buffer_.Offer(std::make_shared<uint64_t>(offered_));
    steps_.push_back({.kind = Step::kOffer, .item = offered_++});
  }
  void Close() {
    buffer_.Close();
    steps_.push_back({.kind = Step::kClose});
  }
  void Reopen() {
    buffer_.Reopen();
    steps_.push_back({.kind = Step::kReopen});
  }
  bool Draw() {
    const uint64_t exceptions = buffer_.order().exceptions();
    const std::optional<Use<uint64_t>> use = buffer_.Draw();
    if (!use) return false;
    steps_.push_back({.kind = Step::kDraw,
                      .item = *use->item,
                      .use = use->use,
                      .draw = use->draw,
                      .age = use->age,
                      .exception = buffer_.order().exceptions() > exceptions});
    return true;
  }

  EchoCase case_;
  EchoBuffer<uint64_t> buffer_;
  std::vector<Step> steps_;
  uint64_t offered_ = 0;
};

uint64_t Total(const std::vector<uint64_t>& items) {
  uint64_t total = 0;
  for (const uint64_t count : items) total += count;
  return total;
}

/// What is known about the residents from the steps alone.
class Residents {
 public:
  struct Known {
    uint64_t uses_left = 0;
    std::optional<uint64_t> last_draw = {};
  };

  explicit Residents(const EchoOptions& options) : options_(options) {}

  void Take(const Step& step) {
    if (step.kind == Step::kOffer) {
      known_[step.item] = {.uses_left = ExactShare(step.item, options_.factor)};
    } else if (step.kind == Step::kDraw) {
      Known& known = known_.at(step.item);
      known.last_draw = step.draw;
      if (--known.uses_left == 0) known_.erase(step.item);
    } else {
      open_ = step.kind == Step::kReopen;
    }
  }
  bool Drawable(const Known& known, uint64_t draw) const {
    return !known.last_draw || *known.last_draw + options_.spacing <= draw;
  }
  const std::map<uint64_t, Known>& known() const { return known_; }
  bool open() const { return open_; }

 private:
  EchoOptions options_;
  std::map<uint64_t, Known> known_;
  bool open_ = true;
};

/// Each law over as many cases as kThoroughness says: 2,500 for each of the factors, or 50.
class EchoBufferLaws : public ::testing::TestWithParam<double> {
 protected:
  template <class Law>
  void ForEachCase(Law law) {
    const int cases = 25 * testing::kThoroughness;
    RecordProperty("cases", cases);
    for (int i = 0; i < cases; ++i) {
      const EchoCase echo_case = testing::MakeEchoCase(static_cast<uint64_t>(i), GetParam());
      law(echo_case);
      ASSERT_FALSE(HasFailure()) << echo_case.ToString();
    }
  }
};

TEST_P(EchoBufferLaws, EveryItemIsUsedExactlyAsOftenAsItsShareInOrderOfUses) {
  ForEachCase([](const EchoCase& c) {
    History history(c);
    std::vector<uint64_t> uses(Total(c.epochs));
    std::vector<uint64_t> first(uses.size());
    uint64_t draws = 0;
    for (const Step& step : history.Steps()) {
      if (step.kind != Step::kDraw) continue;
      ASSERT_EQ(step.draw, draws++);
      ASSERT_EQ(step.use, uses.at(step.item)++);
      if (step.use == 0) first[step.item] = step.draw;
      ASSERT_EQ(step.age, step.draw - first[step.item]);
    }
    ASSERT_EQ(draws, ExactUses(uses.size(), c.options.factor));
    for (uint64_t i = 0; i < uses.size(); ++i) {
      ASSERT_EQ(uses[i], ExactShare(i, c.options.factor)) << "item " << i;
    }
    ASSERT_TRUE(history.buffer().order().empty());
    ASSERT_EQ(history.buffer().order().admitted(), uses.size());
    ASSERT_EQ(history.buffer().order().draws(), draws);
  });
}

TEST_P(EchoBufferLaws, AnOpenBufferDrawsExactlyAtTheFillTargetAndAdmitsBelowIt) {
  ForEachCase([](const EchoCase& c) {
    History history(c);
    Residents residents(c.options);
    uint64_t draws = 0;
    for (const Step& step : history.Steps()) {
      const uint64_t target =
          std::min(c.options.shuffle_buffer, std::max<uint64_t>(c.options.spacing, 1) + draws / 16);
      if (residents.open() && step.kind == Step::kOffer) {
        ASSERT_LT(residents.known().size(), target);
      }
      if (residents.open() && step.kind == Step::kDraw) {
        ASSERT_EQ(residents.known().size(), target);
      }
      residents.Take(step);
      ASSERT_LE(residents.known().size(), c.options.shuffle_buffer);
      if (step.kind == Step::kDraw) ++draws;
    }
  });
}

/// Asks at odd moments, and what must not act.
class PolledHistory : public History {
 public:
  explicit PolledHistory(const EchoCase& c)
      : History(c), random_({.low = c.number, .high = 0xa5}) {}

 protected:
  void BeforeStep() override {
    const EchoOrder& order = mutable_buffer().order();
    EXPECT_FALSE(order.closed() && order.HasRoom());
    if (random_.Bernoulli(0.9)) return;
    const EchoState before = mutable_buffer().State();
    if (mutable_buffer().HasRoom()) {
      EXPECT_EQ(mutable_buffer().Draw(), std::nullopt);
    } else if (!order.empty()) {
      EchoBuffer<uint64_t> copy = mutable_buffer();
      EXPECT_NE(copy.Draw(), std::nullopt);
    }
    EXPECT_EQ(mutable_buffer().State(), before);
  }

 private:
  RandomStream random_;
};

TEST_P(EchoBufferLaws, InAnyStateEitherAnOfferOrADrawActsAndAskingChangesNothing) {
  ForEachCase([](const EchoCase& c) {
    History plain(c);
    PolledHistory polling(c);
    ASSERT_TRUE(plain.Steps() == polling.Steps());
    ASSERT_FALSE(::testing::Test::HasFailure());
  });
}

TEST_P(EchoBufferLaws, SpacingIsKeptButForCountedExceptionsAfterClose) {
  ForEachCase([](const EchoCase& c) {
    History history(c);
    std::map<uint64_t, uint64_t> last_draw;
    uint64_t too_near = 0;
    bool open = true;
    for (const Step& step : history.Steps()) {
      if (step.kind == Step::kClose) open = false;
      if (step.kind == Step::kReopen) open = true;
      if (step.kind != Step::kDraw) continue;
      const bool near = step.use > 0 && step.draw - last_draw[step.item] < c.options.spacing;
      ASSERT_EQ(near, step.exception);
      if (near) ++too_near;
      ASSERT_FALSE(near && open);
      last_draw[step.item] = step.draw;
    }
    ASSERT_EQ(history.buffer().order().exceptions(), too_near);
  });
}

TEST_P(EchoBufferLaws, NoBatchUpToTheSpacingHoldsAnItemTwice) {
  ForEachCase([](const EchoCase& c) {
    if (c.options.spacing == 0) return;
    History history(c);
    const std::vector<Step>& steps = history.Steps();
    for (const uint64_t size : {c.options.spacing, (c.options.spacing + 1) / 2}) {
      std::set<uint64_t> batch;
      for (const Step& step : steps) {
        if (step.kind != Step::kDraw) continue;
        if (step.draw % size == 0) batch.clear();
        const bool new_here = batch.insert(step.item).second;
        ASSERT_TRUE(new_here || step.exception);
      }
    }
  });
}

TEST_P(EchoBufferLaws, AfterCloseThoseWithTheMostUsesLeftComeFirst) {
  ForEachCase([](const EchoCase& c) {
    if (c.options.grouped) return;
    History history(c);
    Residents residents(c.options);
    for (const Step& step : history.Steps()) {
      if (step.kind == Step::kDraw && !residents.open()) {
        uint64_t most = 0;
        uint64_t longest_ago = step.draw;
        for (const auto& [item, known] : residents.known()) {
          if (residents.Drawable(known, step.draw)) most = std::max(most, known.uses_left);
          longest_ago = std::min(longest_ago, known.last_draw.value_or(step.draw));
        }
        const Residents::Known& drawn = residents.known().at(step.item);
        ASSERT_EQ(step.exception, most == 0);
        ASSERT_EQ(step.exception ? *drawn.last_draw : drawn.uses_left,
                  step.exception ? longest_ago : most);
      }
      residents.Take(step);
    }
  });
}

TEST_P(EchoBufferLaws, GroupedUsesComeSideBySide) {
  ForEachCase([](const EchoCase& c) {
    if (!c.options.grouped) return;
    History history(c);
    std::optional<Step> previous;
    for (const Step& step : history.Steps()) {
      if (step.kind != Step::kDraw) continue;
      ASSERT_TRUE(step.use == 0 || step.item == previous->item);
      previous = step;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Factors, EchoBufferLaws, ::testing::ValuesIn(testing::kFactors));

TEST(EchoBufferTest, UsesOfAnItemAreOneObjectThatTheLastUseTakesAlong) {
  EchoBuffer<int> buffer({.factor = 3});
  auto item = std::make_shared<const int>(7);
  const std::weak_ptr<const int> watch = item;
  buffer.Offer(std::move(item));
  for (uint32_t i = 0; i < 3; ++i) {
    const std::optional<Use<int>> use = buffer.Draw();
    ASSERT_TRUE(use);
    EXPECT_EQ(use->item, watch.lock());
    EXPECT_EQ(watch.use_count(), i < 2 ? 2 : 1);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(EchoBufferTest, ABufferOfOneRepeatsItemsInTheirOrder) {
  EchoBuffer<int> buffer({.factor = 1.5});
  std::string drawn;
  for (int i = 0; i < 6; ++i) {
    buffer.Offer(std::make_shared<int>(i));
    while (const auto use = buffer.Draw()) drawn += std::to_string(*use->item);
  }
  EXPECT_EQ(drawn, "011233455");
}

TEST(EchoBufferTest, SharesGoOnAcrossADrain) {
  EchoBuffer<int> buffer({.factor = 1.5});
  std::string drawn;
  for (int i = 0; i < 4; ++i) {
    buffer.Offer(std::make_shared<int>(i));
    buffer.Close();
    while (const auto use = buffer.Draw()) drawn += std::to_string(*use->item);
    buffer.Reopen();
  }
  EXPECT_EQ(drawn, "011233");
}

TEST(EchoOptionsTest, ASettingOutOfRangeIsNamed) {
  const auto where = [](const EchoOptions& options) -> std::string {
    try {
      const EchoOrder order(options);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.details().where;
    }
  };
  EXPECT_EQ(where({.shuffle_buffer = 0}), "echo.shuffle_buffer");
  EXPECT_EQ(where({.shuffle_buffer = (uint64_t{1} << 31) + 1}), "echo.shuffle_buffer");
  EXPECT_EQ(where({.shuffle_buffer = uint64_t{1} << 31, .spacing = 4}), "");
  EXPECT_EQ(where({.shuffle_buffer = 4, .spacing = 5}), "echo.spacing");
  EXPECT_EQ(where({.shuffle_buffer = 4, .spacing = 4}), "");
  EXPECT_EQ(where({.shuffle_buffer = 4, .spacing = 1, .grouped = true}), "echo.spacing");
  EXPECT_EQ(where({.shuffle_buffer = 4, .grouped = true}), "");
}

}  // namespace
}  // namespace echopipe
