#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/clock.h>

namespace echopipe {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// Runs one more callback, after all those due before it.
void WaitForCallbacks(Clock& clock, Clock::Time due) {
  std::promise<void> done;
  clock.CallAt(due, [&] { done.set_value(); });
  done.get_future().wait();
}

TEST(SteadyClockTest, CallbacksRunInOrderOfTimeThenOfCalls) {
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  std::vector<int> order;
  std::promise<void> gate;
  // While the first holds the clock's thread, the others are put in.
  clock->CallAt(clock->Now(), [&] { gate.get_future().wait(); });
  const Clock::Time start = clock->Now();
  clock->CallAt(start + 2ms, [&] { order.push_back(3); });
  clock->CallAt(start + 1ms, [&] { order.push_back(1); });
  clock->CallAt(start + 2ms, [&] { order.push_back(4); });
  clock->CallAt(start + 1ms, [&] { order.push_back(2); });
  gate.set_value();
  WaitForCallbacks(*clock, start + 2ms);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST(SteadyClockTest, NoCallbackRunsBeforeItsTime) {
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  const Clock::Time due = clock->Now() + 1ms;
  Clock::Time called{};
  clock->CallAt(due, [&] { called = clock->Now(); });
  WaitForCallbacks(*clock, due);
  EXPECT_GE(called, due);
}

TEST(SteadyClockTest, AnEarlierCallIsNotHeldUpByALaterOne) {
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  clock->CallAt(clock->Now() + 10h, [] { ADD_FAILURE() << "too early"; });
  WaitForCallbacks(*clock, clock->Now());
}

TEST(SteadyClockTest, TheFirstAndTheLastTimeThereIsAreTimesToo) {
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  clock->CallAt(Clock::Time::max(), [] { ADD_FAILURE() << "too early"; });
  WaitForCallbacks(*clock, Clock::Time::min());
}

TEST(SteadyClockTest, CallbacksRunOnAThreadOfTheClockAndMayCallIt) {
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  std::promise<std::thread::id> thread;
  clock->CallAt(clock->Now(), [&] {
    clock->CallAt(clock->Now(), [&] { thread.set_value(std::this_thread::get_id()); });
  });
  EXPECT_NE(thread.get_future().get(), std::this_thread::get_id());
}

TEST(SteadyClockTest, TheEndDropsPendingCallsAndWhatTheyHold) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  std::shared_ptr<Clock> clock = MakeSteadyClock();
  clock->CallAt(clock->Now() + 10h, [held = std::move(held)] { ADD_FAILURE() << "ran"; });
  clock.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(SteadyClockTest, WhatACallbackHoldsIsDestroyedUnderNoLock) {
  const std::shared_ptr<Clock> clock = MakeSteadyClock();
  std::promise<void> done;
  // Calls the clock when destroyed.
  std::shared_ptr<int> last(new int(1), [&](const int* value) {
    delete value;
    clock->CallAt(clock->Now(), [&] { done.set_value(); });
  });
  clock->CallAt(clock->Now(), [last = std::move(last)] {});
  done.get_future().wait();
}

TEST(SteadyClockTest, AClockThatNobodyCalledEndsToo) { MakeSteadyClock().reset(); }

}  // namespace
}  // namespace echopipe
