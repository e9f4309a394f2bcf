#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/io/http/read_plan.h>

namespace echopipe::testing {
namespace {

using internal::ReadPlan;
using ::testing::ElementsAre;

constexpr uint64_t kAll = ~uint64_t{0};

// "a 0+10 [1: 0+5, 2: 5+5]"
std::string Describe(const std::optional<ReadPlan::Request>& request) {
  if (!request) return "none";
  std::string text = request->path + " " + std::to_string(request->offset) + "+" +
                     std::to_string(request->length) + " [";
  for (const ReadPlan::Part& part : request->parts) {
    if (!text.ends_with('[')) text += ", ";
    text += std::to_string(part.read) + ": " + std::to_string(part.offset) + "+" +
            std::to_string(part.length);
  }
  return text + "]";
}

std::vector<std::string> TakeAll(ReadPlan& plan, uint64_t most = kAll) {
  std::vector<std::string> requests;
  while (const auto request = plan.Next(most)) requests.push_back(Describe(request));
  return requests;
}

TEST(ReadPlanTest, TheOldestReadComesFirst) {
  ReadPlan plan({.max_request = 100, .max_gap = 0});
  plan.Add(1, {"b", 0, 10});
  plan.Add(2, {"a", 0, 10});
  plan.Add(3, {"b", 50, 10});
  EXPECT_THAT(TakeAll(plan),
              ElementsAre("b 0+10 [1: 0+10]", "a 0+10 [2: 0+10]", "b 50+10 [3: 50+10]"));
}

TEST(ReadPlanTest, NeighboursOnBothSidesAreMergedWhateverTheirOrder) {
  ReadPlan plan({.max_request = 100, .max_gap = 0});
  plan.Add(1, {"a", 20, 10});
  plan.Add(2, {"a", 30, 10});
  plan.Add(3, {"a", 10, 10});
  plan.Add(4, {"a", 0, 10});
  plan.Add(5, {"b", 40, 10});
  EXPECT_THAT(TakeAll(plan),
              ElementsAre("a 0+40 [4: 0+10, 3: 10+10, 1: 20+10, 2: 30+10]", "b 40+10 [5: 40+10]"));
}

TEST(ReadPlanTest, SmallGapsAreReadInVainAndLargeOnesNot) {
  ReadPlan plan({.max_request = 100, .max_gap = 5});
  plan.Add(1, {"a", 20, 10});
  plan.Add(2, {"a", 35, 10});
  plan.Add(3, {"a", 51, 10});
  plan.Add(4, {"a", 10, 5});
  EXPECT_THAT(TakeAll(plan),
              ElementsAre("a 10+35 [4: 10+5, 1: 20+10, 2: 35+10]", "a 51+10 [3: 51+10]"));
}

TEST(ReadPlanTest, AMergedRequestKeepsWithinItsBounds) {
  ReadPlan plan({.max_request = 30, .max_gap = 0});
  for (uint64_t i = 0; i < 5; ++i) plan.Add(i, {"a", i * 10, 10});
  EXPECT_EQ(Describe(plan.Next(kAll)), "a 0+30 [0: 0+10, 1: 10+10, 2: 20+10]");
  EXPECT_EQ(Describe(plan.Next(19)), "a 30+10 [3: 30+10]");
  EXPECT_EQ(Describe(plan.Next(1)), "a 40+10 [4: 40+10]");
  EXPECT_TRUE(plan.empty());
}

TEST(ReadPlanTest, EqualRangesStayApart) {
  ReadPlan plan({.max_request = 30, .max_gap = 5});
  plan.Add(1, {"a", 0, 10});
  plan.Add(2, {"a", 0, 10});
  EXPECT_THAT(TakeAll(plan), ElementsAre("a 0+10 [1: 0+10]", "a 0+10 [2: 0+10]"));
}

TEST(ReadPlanTest, ALargeReadIsSplitOnceTheSizeIsKnown) {
  ReadPlan plan({.max_request = 30, .max_gap = 0});
  plan.Add(1, {"a", 5, kAll});
  EXPECT_THAT(TakeAll(plan), ElementsAre("a 5+30 [1: 5+30]"));
  plan.SetSize(1, 100);
  EXPECT_THAT(TakeAll(plan),
              ElementsAre("a 35+30 [1: 35+30]", "a 65+30 [1: 65+30]", "a 95+5 [1: 95+5]"));
}

TEST(ReadPlanTest, TheRestOfALargeReadIsDroppedIfTheObjectEndsBefore) {
  ReadPlan plan({.max_request = 30, .max_gap = 0});
  plan.Add(1, {"a", 5, kAll});
  plan.Next(kAll);
  plan.SetSize(1, 35);
  EXPECT_TRUE(plan.empty());
  plan.SetSize(1, 35);
  EXPECT_TRUE(plan.empty());
}

TEST(ReadPlanTest, TheRestOfALargeReadTakesNeighboursAlong) {
  ReadPlan plan({.max_request = 30, .max_gap = 0});
  plan.Add(1, {"a", 0, 40});
  plan.Add(2, {"a", 40, 10});
  plan.Next(kAll);
  plan.SetSize(1, 1000);
  EXPECT_THAT(TakeAll(plan), ElementsAre("a 30+20 [1: 30+10, 2: 40+10]"));
}

TEST(ReadPlanTest, RemovedReadsAreNotAskedFor) {
  ReadPlan plan({.max_request = 30, .max_gap = 0});
  plan.Add(1, {"a", 0, 10});
  plan.Add(2, {"a", 10, 10});
  plan.Add(3, {"a", 20, 10});
  plan.Add(4, {"b", 0, 100});
  plan.Remove(2);
  plan.Remove(77);
  EXPECT_THAT(TakeAll(plan),
              ElementsAre("a 0+10 [1: 0+10]", "a 20+10 [3: 20+10]", "b 0+30 [4: 0+30]"));
  plan.Remove(4);
  plan.SetSize(4, 1000);
  EXPECT_TRUE(plan.empty());
}

TEST(ReadPlanTest, RangesUpToTheEndOfAllNumbersDoNotWrapAround) {
  ReadPlan plan({.max_request = 30, .max_gap = 5});
  plan.Add(1, {"a", kAll - 10, 20});
  plan.Add(2, {"a", 0, 10});
  plan.Add(3, {"a", kAll, kAll});
  EXPECT_THAT(TakeAll(plan).size(), 3u);
}

TEST(ReadPlanTest, EveryByteOfEveryReadIsAskedForOnceWhateverTheOrder) {
  RandomStream random({.low = 4, .high = 2});
  for (int round = 0; round < 2000; ++round) {
    ReadPlan plan({.max_request = 1 + random.Below(40), .max_gap = random.Below(8)});
    std::map<uint64_t, std::pair<ReadRequest, std::vector<bool>>> reads;
    uint64_t next = 0;
    uint64_t size = 150;
    const auto take = [&] {
      const auto request = plan.Next(1 + random.Below(50));
      ASSERT_TRUE(request);
      for (const ReadPlan::Part& part : request->parts) {
        ASSERT_GE(part.offset, request->offset);
        ASSERT_LE(part.offset + part.length, request->offset + request->length);
        auto& [read, seen] = reads.at(part.read);
        ASSERT_EQ(read.path, request->path);
        for (uint64_t i = part.offset; i < part.offset + part.length; ++i) {
          ASSERT_FALSE(seen.at(i - read.offset)) << "twice";
          seen[i - read.offset] = true;
        }
        plan.SetSize(part.read, size);
      }
    };
    while (next < 30 || !plan.empty()) {
      if (next < 30 && random.Below(2) == 0) {
        const ReadRequest read{std::string(1, static_cast<char>('a' + random.Below(2))),
                               random.Below(100), 1 + random.Below(50)};
        reads[next] = {read, std::vector<bool>(read.length)};
        plan.Add(next++, read);
      } else if (!plan.empty()) {
        take();
      }
    }
    for (const auto& [id, read] : reads) {
      for (const bool seen : read.second) ASSERT_TRUE(seen) << "round " << round << " read " << id;
    }
  }
}

}  // namespace
}  // namespace echopipe::testing
