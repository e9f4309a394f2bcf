// What an echo point measures, message by message, on a clock of the test's.

#include <memory>
#include <optional>

#include <gmock/gmock.h>

#include <echopipe/pipeline/graph/echo_joint.h>
#include <echopipe/tests/support/fake_clock.h>

namespace echopipe::internal {
namespace {

using testing::FakeClock;

// Upstream has nothing more to do once its end is here, however long its last items wait for room.
TEST(EchoJointTest, TheTimeAfterUpstreamsEndIsNotItsOwn) {
  FakeClock clock;
  const Timer stalls;
  Log<ShadowLogs::Gap> gaps;
  EchoJoint joint(
      {.options = {.factor = 4, .shuffle_buffer = 1}}, {.index = 0, .gaps = &gaps}, std::nullopt,
      {.upstream = 16, .downstream = 1, .upstream_full = 16, .downstream_idle = 0}, clock, stalls);
  Outbox outbox(16);
  for (uint64_t i = 0; i < 5; ++i) {
    Message message = i < 4 ? Message::Of(std::make_shared<Item>()) : Message::End(nullptr);
    message.sequence = i;
    joint.Receive(std::move(message), outbox);
  }
  for (int draw = 1; draw < 16; ++draw) {
    clock.Advance(std::chrono::seconds(1));
    joint.Receive(Message::Credit(1), outbox);
  }
  const EchoPointStats stats = joint.Stats(clock.Now());
  EXPECT_EQ(stats.admitted, 4u);
  EXPECT_EQ(stats.draws, 16u);
  EXPECT_LT(stats.r, 0.1);
}

}  // namespace
}  // namespace echopipe::internal
