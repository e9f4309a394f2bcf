#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <echopipe/tests/pipeline/stages/stage_testing.h>

namespace echopipe::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool ApplyTo(Example& example, const Stage& stage) {
  BufferPool pool;
  return stage.Apply(example, {.pool = pool, .random_key = Key(0)});
}

std::string MessageOf(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

TEST(MapTest, ChangesTheExampleByTheNamedFunction) {
  UserFunctions functions;
  functions.maps["relabel"] = [](Example& example) { example.set_label(42); };
  functions.maps["other"] = [](Example& example) { example.set_label(1); };
  Example example;
  EXPECT_TRUE(ApplyTo(example, *MakeStage(kMapStage, "function: 'relabel'", functions)));
  EXPECT_EQ(example.label(), 42);
}

TEST(FilterTest, LeavesOutTheExamplesForWhichTheFunctionSaysNo) {
  UserFunctions functions;
  functions.filters["even"] = [](const Example& example) { return *example.label() % 2 == 0; };
  const auto stage = MakeStage(kFilterStage, "function: 'even'", functions);
  Example example;
  example.set_label(2);
  EXPECT_TRUE(ApplyTo(example, *stage));
  example.set_label(3);
  EXPECT_FALSE(ApplyTo(example, *stage));
  EXPECT_TRUE(kFilterStage.may_skip);
  EXPECT_FALSE(kMapStage.may_skip);
}

TEST(UserFunctionTest, AnUnknownNameIsNotFoundAndTheKnownOnesAreNamed) {
  UserFunctions functions;
  functions.maps["blur"] = [](Example&) {};
  functions.maps["crop"] = [](Example&) {};
  functions.filters["keep"] = [](const Example&) { return true; };
  const auto make = [&](const StageType& type) {
    return MessageOf([&] { MakeStage(type, "function: 'keeep'", functions); },
                     ErrorCode::kNotFound);
  };
  EXPECT_THAT(make(kMapStage), AllOf(HasSubstr("keeep"), HasSubstr("one of blur, crop")));
  EXPECT_THAT(make(kFilterStage), AllOf(HasSubstr("keeep"), HasSubstr("one of keep")));
}

TEST(UserFunctionTest, ValidationWantsAName) {
  EXPECT_THAT(InvalidMessage(kMapStage, ""), StartsWith("function: "));
  EXPECT_THAT(InvalidMessage(kFilterStage, ""), StartsWith("function: "));
}

TEST(UserFunctionTest, WhatItThrowsBecomesAnErrorWithItsNameAndMessage) {
  UserFunctions functions;
  functions.maps["exception"] = [](Example&) { throw std::runtime_error("no such colour"); };
  functions.maps["number"] = [](Example&) { throw 17; };
  functions.filters["exception"] = [](const Example&) -> bool { throw std::logic_error("odd"); };
  const auto message = [&](const StageType& type, const std::string& name) {
    const auto stage = MakeStage(type, "function: '" + name + "'", functions);
    Example example;
    return MessageOf([&] { ApplyTo(example, *stage); }, ErrorCode::kUserFunction);
  };
  EXPECT_THAT(message(kMapStage, "exception"),
              AllOf(StartsWith("exception: "), HasSubstr("no such colour")));
  EXPECT_THAT(message(kMapStage, "number"), StartsWith("number: "));
  EXPECT_THAT(message(kFilterStage, "exception"), HasSubstr("odd"));
}

using Body = std::function<void()>;

// Runs `call` in an arena that holds other tasks, until one of these begins on the thread that is
// inside `call`, at most `rounds` times; true if one does. Inside, that thread waits for work of
// its own that ends when a second thread has seen to all the others.
bool OtherTasksBeginInside(int rounds, const std::function<void(const Body&)>& call) {
  thread_local bool inside = false;
  std::atomic<bool> begun = false;
  tbb::task_arena arena(2, 2);
  for (int round = 0; round < rounds && !begun; ++round) {
    arena.execute([&] {
      tbb::task_group others;
      for (int i = 0; i < 50; ++i) {
        others.run([&] {
          if (inside) begun = true;
          for (std::atomic<int> spin = 0; spin < 10'000; ++spin) continue;
        });
      }
      call([&] {
        inside = true;
        tbb::task_group own;
        tbb::task_handle last = own.defer([] {});
        const std::jthread second([&] {
          arena.execute([&] { others.wait(); });
          last = tbb::task_handle();
        });
        own.wait();
        inside = false;
      });
      others.wait();
    });
  }
  return begun;
}

TEST(UserFunctionTest, WhileItWaitsForItsOwnTasksItPicksUpNoOthers) {
  EXPECT_TRUE(OtherTasksBeginInside(1000, [](const Body& body) { body(); }))
      << "it would not be noticed";
  EXPECT_FALSE(OtherTasksBeginInside(50, [](const Body& body) {
    UserFunctions functions;
    functions.maps["waits"] = [&](Example&) { body(); };
    Example example;
    ApplyTo(example, *MakeStage(kMapStage, "function: 'waits'", functions));
  }));
}

}  // namespace
}  // namespace echopipe::internal
