#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GatedStorageTest : public ::testing::Test {
 protected:
  GatedStorageTest() { storage_->Put("a", "0123456789"); }

  Storage::ReadId Read(int name, const std::string& path = "a") {
    return storage_->Read({.path = path, .length = 10}, pool_, log_.Callback(name));
  }

  BufferPool pool_;
  ReadLog log_;
  std::unique_ptr<FakeStorage> storage_ = std::make_unique<FakeStorage>(FakeStorage::Mode::kGated);
};

TEST_F(GatedStorageTest, ReadsWaitUntilTheTestCompletesThem) {
  Read(0);
  const Storage::ReadId second = Read(1);
  Read(2);
  Read(3);
  EXPECT_EQ(storage_->pending().size(), 4u);
  EXPECT_THAT(log_.order(), IsEmpty());
  EXPECT_TRUE(storage_->CompleteNext());
  EXPECT_FALSE(storage_->Complete(99));
  EXPECT_THAT(log_.order(), ElementsAre(0));
  EXPECT_EQ(storage_->CompleteAll(), 3u);
  EXPECT_FALSE(storage_->CompleteNext());
  EXPECT_FALSE(storage_->Complete(second));
  EXPECT_THAT(log_.order(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(log_.threads(), ElementsAre(std::this_thread::get_id()));
}

TEST_F(GatedStorageTest, ReadsOfAnObjectWithAnOpenGateDoNotWait) {
  storage_->Put("b", "b");
  storage_->OpenGateFor("b");
  Read(0);
  Read(1, "b");
  log_.WaitFor(1);
  EXPECT_THAT(log_.order(), ElementsAre(1));
  EXPECT_EQ(storage_->pending().size(), 1u);
}

TEST_F(GatedStorageTest, ReadsCompleteInTheOrderThatTheTestChooses) {
  Read(0);
  const Storage::ReadId second = Read(1);
  EXPECT_TRUE(storage_->Complete(second));
  EXPECT_TRUE(storage_->CompleteNext());
  EXPECT_THAT(log_.order(), ElementsAre(1, 0));
  EXPECT_EQ(storage_->requests().size(), 2u);
}

TEST_F(GatedStorageTest, AReadSeesTheObjectAsItIsWhenItCompletes) {
  Read(0);
  Read(1);
  storage_->Put("a", "new");
  storage_->CompleteNext();
  storage_->Remove("a");
  storage_->CompleteNext();
  EXPECT_EQ(AsString(log_.result(0)), "new");
  EXPECT_THAT(log_.result(1), FailsWith(ErrorCode::kNotFound, "a"));
}

TEST_F(GatedStorageTest, AReadFailsWithTheErrorThatTheTestGives) {
  const Storage::ReadId id = Read(0);
  EXPECT_TRUE(storage_->Fail(id, Error({.code = ErrorCode::kIo, .what = "broken"})));
  EXPECT_FALSE(storage_->Fail(id, Error({})));
  EXPECT_THAT(log_.result(0), FailsWith(ErrorCode::kIo, "broken"));
}

TEST_F(GatedStorageTest, APathCanFailAlways) {
  storage_->FailAlways("a", Error({.code = ErrorCode::kIo, .what = "broken"}));
  Read(0);
  storage_->CompleteAll();
  EXPECT_THAT(log_.result(0), FailsWith(ErrorCode::kIo, "broken"));
  EXPECT_THAT(storage_->Size("a"), FailsWith(ErrorCode::kIo, "broken"));
}

TEST_F(GatedStorageTest, AnObjectCanShrinkDuringReads) {
  storage_->ShrinkInReads("a", 4);
  Read(0);
  storage_->CompleteAll();
  EXPECT_EQ(AsString(log_.result(0)), "0123");
  EXPECT_EQ(log_.result(0).value().object_size, 10u);
}

TEST_F(GatedStorageTest, ACancelledReadIsStoppedOnTheStoragesOwnThread) {
  const Storage::ReadId id = Read(0);
  Read(1);
  storage_->Cancel(id);
  log_.WaitFor(1);
  EXPECT_THAT(log_.result(0), FailsWith(ErrorCode::kStopped, "a"));
  EXPECT_FALSE(log_.threads().contains(std::this_thread::get_id()));
  EXPECT_EQ(storage_->pending().size(), 1u);
}

TEST_F(GatedStorageTest, DestructionStopsWhatWaits) {
  Read(0);
  Read(1, "missing");
  storage_.reset();
  EXPECT_THAT(log_.result(0), FailsWith(ErrorCode::kStopped, "a"));
  EXPECT_THAT(log_.result(1), FailsWith(ErrorCode::kStopped, "missing"));
  EXPECT_EQ(log_.calls(), 2);
}

TEST_F(GatedStorageTest, WaitForPendingReturnsWhenTheReadsAreThere) {
  std::jthread reader([this] {
    Read(0);
    Read(1);
  });
  storage_->WaitForPending(2);
  EXPECT_EQ(storage_->CompleteAll(), 2u);
}

}  // namespace
}  // namespace echopipe::testing
