#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/http_storage.h>
#include <echopipe/io/shaped_storage.h>
#include <echopipe/io/storage.h>
#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/nginx_server.h>

namespace echopipe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Kind = FolderEntry::Kind;

// A storage and a way to put objects into it.
class Fixture {
 public:
  virtual ~Fixture() = default;
  virtual std::shared_ptr<Storage> Make() = 0;
  /// Makes an object; returns its path.
  virtual std::string Put(const std::string& name, const std::string& bytes) = 0;
  /// The path of this name, whether or not it is there.
  virtual std::string Path(const std::string& name) = 0;
};

class LocalFixture : public Fixture {
 public:
  std::shared_ptr<Storage> Make() override { return MakeLocalStorage(3); }
  std::string Put(const std::string& name, const std::string& bytes) override {
    return folder_.Write(name, bytes);
  }
  std::string Path(const std::string& name) override { return folder_.path() / name; }

 private:
  TempFolder folder_;
};

class ShapedFixture : public LocalFixture {
 public:
  std::shared_ptr<Storage> Make() override {
    return MakeShapedStorage(LocalFixture::Make(),
                             {.bytes_per_second = 1'000'000'000,
                              .latency = std::chrono::microseconds(50),
                              .jitter = std::chrono::microseconds(50)},
                             clock_);
  }

 private:
  std::shared_ptr<Clock> clock_ = MakeSteadyClock();
};

class FakeFixture : public Fixture {
 public:
  std::shared_ptr<Storage> Make() override {
    auto storage = std::make_shared<FakeStorage>();
    for (const auto& [name, bytes] : objects_) storage->Put(Path(name), bytes);
    return storage;
  }
  std::string Put(const std::string& name, const std::string& bytes) override {
    objects_[name] = bytes;
    return Path(name);
  }
  std::string Path(const std::string& name) override { return "/objects/" + name; }

 private:
  std::map<std::string, std::string> objects_;
};

class HttpFixture : public Fixture {
 public:
  std::shared_ptr<Storage> Make() override { return MakeHttpStorage({}); }
  std::string Put(const std::string& name, const std::string& bytes) override {
    folder_.Write(name, bytes);
    return Path(name);
  }
  std::string Path(const std::string& name) override { return server_.url() + "/" + name; }

 private:
  TempFolder folder_;
  NginxServer server_{{.root = folder_.path()}};
};

struct Implementation {
  std::string name;
  std::unique_ptr<Fixture> (*make)();
};

std::vector<std::pair<std::string, Kind>> AsPairs(const Result<std::vector<FolderEntry>>& list) {
  std::vector<std::pair<std::string, Kind>> pairs;
  for (const FolderEntry& entry : list.value()) pairs.emplace_back(entry.name, entry.kind);
  return pairs;
}

template <class T>
std::unique_ptr<Fixture> MakeFixture() {
  return std::make_unique<T>();
}

class StorageContract : public ::testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override {
    if (GetParam().name == "Http" && NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
    fixture_ = GetParam().make();
  }

  Result<ReadResult> ReadNow(Storage& storage, const std::string& path, uint64_t offset,
                             uint64_t length) {
    ReadLog log;
    storage.Read({.path = path, .offset = offset, .length = length}, pool_, log.Callback(0));
    log.WaitFor(1);
    return log.result(0);
  }

  std::string BytesOf(Storage& storage, const std::string& path, uint64_t offset, uint64_t length) {
    return AsString(ReadNow(storage, path, offset, length));
  }

  BufferPool pool_;
  std::unique_ptr<Fixture> fixture_;
};

TEST_P(StorageContract, ARangeInsideGivesItsBytes) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_EQ(BytesOf(*storage, path, 0, 10), "0123456789");
  EXPECT_EQ(BytesOf(*storage, path, 0, 4), "0123");
  EXPECT_EQ(BytesOf(*storage, path, 3, 4), "3456");
  EXPECT_EQ(BytesOf(*storage, path, 9, 1), "9");
}

TEST_P(StorageContract, ARangeOverTheEndIsCutThere) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_EQ(BytesOf(*storage, path, 7, 4), "789");
  EXPECT_EQ(BytesOf(*storage, path, 0, UINT64_MAX), "0123456789");
  EXPECT_EQ(BytesOf(*storage, path, 1, UINT64_MAX), "123456789");
}

TEST_P(StorageContract, ARangeAtOrBehindTheEndGivesNoBytes) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  for (const uint64_t offset : {uint64_t{10}, uint64_t{11}, uint64_t{1} << 63, UINT64_MAX}) {
    const Result<ReadResult> result = ReadNow(*storage, path, offset, UINT64_MAX);
    ASSERT_TRUE(result.ok()) << offset << ": " << result.error().what();
    EXPECT_EQ(result.value().data->size(), 0u) << offset;
    EXPECT_EQ(result.value().object_size, 10u) << offset;
  }
}

TEST_P(StorageContract, ARangeOfNoLengthGivesNoBytes) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_EQ(BytesOf(*storage, path, 5, 0), "");
}

TEST_P(StorageContract, AnEmptyObjectIsNoError) {
  const std::string path = fixture_->Put("empty", "");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  const Result<ReadResult> result = ReadNow(*storage, path, 0, 100);
  EXPECT_EQ(AsString(result), "");
  EXPECT_EQ(result.value().object_size, 0u);
  EXPECT_EQ(storage->Size(path).value(), 0u);
}

TEST_P(StorageContract, ObjectSizeIsThatOfTheWholeObject) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_EQ(ReadNow(*storage, path, 3, 4).value().object_size, 10u);
  EXPECT_EQ(storage->Size(path).value(), 10u);
}

TEST_P(StorageContract, TheBufferHoldsNoMoreThanTheObjectHas) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  ReadNow(*storage, path, 0, uint64_t{1} << 40);
  EXPECT_LE(pool_.peak_bytes_in_use(), 4096u);
}

TEST_P(StorageContract, AMissingObjectIsNotFoundAndNamed) {
  fixture_->Put("file", "x");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  for (const std::string name : {"missing", "no/such/folder", "file/inside"}) {
    const std::string path = fixture_->Path(name);
    EXPECT_THAT(ReadNow(*storage, path, 0, 1), FailsWith(ErrorCode::kNotFound, path));
    EXPECT_THAT(storage->Size(path), FailsWith(ErrorCode::kNotFound, path));
  }
  const std::string folder = fixture_->Path("missing");
  EXPECT_THAT(storage->List(folder), FailsWith(ErrorCode::kNotFound, folder));
}

TEST_P(StorageContract, AFolderIsNoObjectAndAnObjectNoFolder) {
  const std::string object = fixture_->Put("folder/a", "x");
  const std::string folder = fixture_->Path("folder");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_THAT(ReadNow(*storage, folder, 0, 1), FailsWith(ErrorCode::kIo, folder));
  EXPECT_THAT(storage->Size(folder), FailsWith(ErrorCode::kIo, folder));
  EXPECT_THAT(storage->List(object), FailsWith(ErrorCode::kIo, object));
}

TEST_P(StorageContract, AListingIsSortedBytewiseAndTellsTheKinds) {
  for (const std::string name :
       {"b", "a/inside/deep", "a.jpg", "a-", "Z", "\xc3\xa4", "~", "10", "9"})
    fixture_->Put("list/" + name, "x");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  for (const std::string folder : {"list", "list/"}) {
    EXPECT_THAT(
        AsPairs(storage->List(fixture_->Path(folder))),
        ElementsAre(Pair("10", Kind::kFile), Pair("9", Kind::kFile), Pair("Z", Kind::kFile),
                    Pair("a", Kind::kFolder), Pair("a-", Kind::kFile), Pair("a.jpg", Kind::kFile),
                    Pair("b", Kind::kFile), Pair("~", Kind::kFile), Pair("\xc3\xa4", Kind::kFile)))
        << folder;
  }
  EXPECT_THAT(AsPairs(storage->List(fixture_->Path("list/a"))),
              ElementsAre(Pair("inside", Kind::kFolder)));
}

TEST_P(StorageContract, NamesAreBytesAndNeedNoMeaning) {
  const std::string name = "odd/ \n\xff\"*%s";
  const std::string path = fixture_->Put(name, "x");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_THAT(AsPairs(storage->List(fixture_->Path("odd"))),
              ElementsAre(Pair(" \n\xff\"*%s", Kind::kFile)));
  EXPECT_EQ(BytesOf(*storage, path, 0, 9), "x");
}

TEST_P(StorageContract, ConcurrentReadsFromManyThreadsEachGetTheirOwnBytes) {
  constexpr int kThreads = 4;
  constexpr int kReads = 100;
  std::string bytes;
  for (int i = 0; i < kThreads * kReads; ++i) bytes += std::to_string(1000 + i);
  const std::string path = fixture_->Put("big", bytes);
  const std::shared_ptr<Storage> storage = fixture_->Make();
  ReadLog log;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kReads; ++i) {
          const int read = thread * kReads + i;
          storage->Read({.path = path, .offset = uint64_t(read) * 4, .length = 4}, pool_,
                        log.Callback(read));
        }
      });
    }
  }
  log.WaitFor(kThreads * kReads);
  for (int read = 0; read < kThreads * kReads; ++read)
    EXPECT_EQ(AsString(log.result(read)), std::to_string(1000 + read));
  EXPECT_EQ(log.calls(), kThreads * kReads);
}

TEST_P(StorageContract, CallbacksDoNotRunInTheCallOfRead) {
  const std::string path = fixture_->Put("a", "x");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  ReadLog log;
  storage->Read({.path = path, .length = 1}, pool_, log.Callback(0));
  storage->Read({.path = fixture_->Path("missing"), .length = 1}, pool_, log.Callback(1));
  log.WaitFor(2);
  EXPECT_FALSE(log.threads().contains(std::this_thread::get_id()));
}

TEST_P(StorageContract, CallbacksMayStartFurtherReadsAndCallEverythingElse) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  ReadLog log;
  const auto read_on = [&](const auto& self, int i, Result<ReadResult> result) -> void {
    storage->Stats();
    storage->Cancel(12345);
    EXPECT_EQ(storage->Size(path).value(), 10u);
    if (i + 1 < 10) {
      storage->Read({.path = path, .offset = uint64_t(i) + 1, .length = 1}, pool_,
                    [&self, i](Result<ReadResult> next) { self(self, i + 1, std::move(next)); });
    }
    log.Callback(i)(std::move(result));
  };
  storage->Read({.path = path, .length = 1}, pool_,
                [&](Result<ReadResult> result) { read_on(read_on, 0, std::move(result)); });
  log.WaitFor(10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(AsString(log.result(i)), std::to_string(i));
}

TEST_P(StorageContract, ACancelledReadStillHasItsOneCallback) {
  const std::string path = fixture_->Put("a", "0123456789");
  std::shared_ptr<Storage> storage = fixture_->Make();
  constexpr int kReads = 300;
  ReadLog log;
  std::vector<Storage::ReadId> ids;
  for (int i = 0; i < kReads; ++i)
    ids.push_back(storage->Read({.path = path, .length = 10}, pool_, log.Callback(i)));
  for (int i = 0; i < kReads; i += 2) storage->Cancel(ids[static_cast<size_t>(i)]);
  for (int i = 0; i < kReads; i += 2) storage->Cancel(ids[static_cast<size_t>(i)]);
  log.WaitFor(kReads);
  for (int i = 0; i < kReads; ++i) {
    const Result<ReadResult> result = log.result(i);
    if (i % 2 == 1 || result.ok())
      EXPECT_EQ(AsString(result), "0123456789");
    else
      EXPECT_THAT(result, FailsWith(ErrorCode::kStopped, path));
  }
  storage.reset();
  EXPECT_EQ(log.calls(), kReads);
}

TEST_P(StorageContract, CancellingUnknownOrCompletedReadsDoesNothing) {
  const std::string path = fixture_->Put("a", "x");
  std::shared_ptr<Storage> storage = fixture_->Make();
  ReadLog log;
  storage->Cancel(0);
  storage->Cancel(UINT64_MAX);
  const Storage::ReadId id = storage->Read({.path = path, .length = 1}, pool_, log.Callback(0));
  log.WaitFor(1);
  storage->Cancel(id);
  storage.reset();
  EXPECT_EQ(log.calls(), 1);
  EXPECT_EQ(AsString(log.result(0)), "x");
}

TEST_P(StorageContract, DestructionEndsReadsUnderWayWithOneCallbackEach) {
  const std::string path = fixture_->Put("a", "0123456789");
  for (int round = 0; round < 20; ++round) {
    std::shared_ptr<Storage> storage = fixture_->Make();
    ReadLog log;
    for (int i = 0; i < 50; ++i)
      storage->Read({.path = path, .length = 10}, pool_, log.Callback(i));
    if (round % 2 == 0) log.WaitFor(round);
    storage.reset();
    ASSERT_EQ(log.calls(), 50);
    for (int i = 0; i < 50; ++i) {
      const Result<ReadResult> result = log.result(i);
      EXPECT_TRUE(result.ok() || result.error().code() == ErrorCode::kStopped);
    }
  }
}

TEST_P(StorageContract, DestructionEndsReadsThatCallbacksStartMeanwhile) {
  const std::string path = fixture_->Put("a", "x");
  for (int round = 0; round < 20; ++round) {
    std::shared_ptr<Storage> storage = fixture_->Make();
    Storage& reader = *storage;
    ReadLog log;
    for (int i = 0; i < 20; ++i) {
      reader.Read({.path = path, .length = 1}, pool_, [&, i](Result<ReadResult> first) {
        reader.Read({.path = path, .length = 1}, pool_, log.Callback(20 + i));
        log.Callback(i)(std::move(first));
      });
    }
    storage.reset();
    ASSERT_EQ(log.calls(), 40);
  }
}

TEST_P(StorageContract, DestructionWaitsForTheCallbackThatRuns) {
  const std::string path = fixture_->Put("a", "x");
  std::shared_ptr<Storage> storage = fixture_->Make();
  std::promise<void> started;
  std::atomic<bool> returned = false;
  storage->Read({.path = path, .length = 1}, pool_, [&](const auto&) {
    started.set_value();
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
    returned = true;
  });
  started.get_future().wait();
  storage.reset();
  EXPECT_TRUE(returned);
}

TEST_P(StorageContract, DestructionGivesAllBuffersBack) {
  const std::string path = fixture_->Put("a", "0123456789");
  {
    const std::shared_ptr<Storage> storage = fixture_->Make();
    for (int i = 0; i < 100; ++i)
      storage->Read({.path = path, .length = 10}, pool_, [](const Result<ReadResult>&) {});
  }
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
}

TEST_P(StorageContract, StatsCountReadsAndPayload) {
  const std::string path = fixture_->Put("a", "0123456789");
  const std::shared_ptr<Storage> storage = fixture_->Make();
  EXPECT_EQ(storage->Stats().reads, 0u);
  ReadNow(*storage, path, 2, 5);
  ReadNow(*storage, path, 8, 100);
  EXPECT_EQ(storage->Stats().reads, 2u);
  EXPECT_EQ(storage->Stats().bytes_read, 7u);
  ReadNow(*storage, fixture_->Path("missing"), 0, 5);
  EXPECT_EQ(storage->Stats().reads, 3u);
  EXPECT_EQ(storage->Stats().bytes_read, 7u);
}

INSTANTIATE_TEST_SUITE_P(Storages, StorageContract,
                         ::testing::Values(Implementation{"Local", MakeFixture<LocalFixture>},
                                           Implementation{"Shaped", MakeFixture<ShapedFixture>},
                                           Implementation{"Http", MakeFixture<HttpFixture>},
                                           Implementation{"Fake", MakeFixture<FakeFixture>}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace echopipe::testing
