#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <echopipe/io/storage.h>
#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Pair;
using Kind = FolderEntry::Kind;

class LocalStorageTest : public ::testing::Test {
 protected:
  Result<ReadResult> ReadNow(const std::string& path, uint64_t length = UINT64_MAX) {
    ReadLog log;
    storage_->Read({.path = path, .length = length}, pool_, log.Callback(0));
    log.WaitFor(1);
    return log.result(0);
  }

  TempFolder folder_;
  BufferPool pool_;
  std::shared_ptr<Storage> storage_ = MakeLocalStorage(1);
};

TEST_F(LocalStorageTest, AFifoIsAnErrorAndNeverWaitsForItsWriter) {
  const std::string path = folder_.Path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(ReadNow(path), FailsWith(ErrorCode::kIo, path));
  EXPECT_THAT(storage_->Size(path), FailsWith(ErrorCode::kIo, path));
}

TEST_F(LocalStorageTest, ADeviceIsAnError) {
  EXPECT_THAT(ReadNow("/dev/zero"), FailsWith(ErrorCode::kIo, "/dev/zero: it is not a regular"));
  EXPECT_THAT(storage_->Size("/dev/zero"), FailsWith(ErrorCode::kIo, "/dev/zero"));
}

TEST_F(LocalStorageTest, ASocketIsAnError) {
  const std::string path = folder_.Path("socket");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::copy(path.begin(), path.end(), address.sun_path);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(ReadNow(path), FailsWith(ErrorCode::kIo, path));
  close(descriptor);
}

TEST_F(LocalStorageTest, TheReasonOfARefusalIsTold) {
  const std::string too_long = folder_.Path(std::string(300, 'x'));
  EXPECT_THAT(ReadNow(too_long), FailsWith(ErrorCode::kIo, "File name too long"));
  const std::string loop = folder_.Path("loop");
  fs::create_symlink("loop", loop);
  EXPECT_THAT(ReadNow(loop), FailsWith(ErrorCode::kIo, loop));
  EXPECT_THAT(storage_->List(loop), FailsWith(ErrorCode::kIo, loop));
}

TEST_F(LocalStorageTest, AFileOrFolderWithoutPermissionIsAnErrorThatSaysSo) {
  const std::string file = folder_.Write("secret", "x");
  const std::string inside = folder_.Write("closed/inside", "x");
  const std::string closed = folder_.Path("closed");
  chmod(file.c_str(), 0);
  chmod(closed.c_str(), 0);
  if (std::ifstream(file).good()) GTEST_SKIP() << "this user may read everything";
  EXPECT_THAT(ReadNow(file), FailsWith(ErrorCode::kIo, file + ": Permission denied"));
  EXPECT_THAT(ReadNow(inside), FailsWith(ErrorCode::kIo, inside + ": Permission denied"));
  EXPECT_THAT(storage_->List(closed), FailsWith(ErrorCode::kIo, closed + ": Permission denied"));
  chmod(closed.c_str(), 0700);
}

TEST_F(LocalStorageTest, ANameWithAZeroByteIsNotTakenForItsBeginning) {
  const std::string path = folder_.Write("a", "x") + '\0' + ".jpg";
  EXPECT_THAT(ReadNow(path), FailsWith(ErrorCode::kIo, "zero byte"));
  EXPECT_THAT(storage_->Size(path), FailsWith(ErrorCode::kIo, "zero byte"));
  const std::string folder = folder_.path().string() + '\0' + "x";
  EXPECT_THAT(storage_->List(folder), FailsWith(ErrorCode::kIo, "zero byte"));
}

TEST_F(LocalStorageTest, LinksAreFollowed) {
  const std::string file = folder_.Write("a/file", "0123456789");
  fs::create_symlink(file, folder_.Path("a/to_file"));
  fs::create_symlink(folder_.path(), folder_.Path("a/to_folder"));
  fs::create_symlink("nowhere", folder_.Path("a/to_nothing"));
  ASSERT_EQ(mkfifo(folder_.Path("a/fifo").c_str(), 0600), 0);

  std::vector<std::pair<std::string, Kind>> kinds;
  for (const FolderEntry& entry : storage_->List(folder_.Path("a")).value())
    kinds.emplace_back(entry.name, entry.kind);
  EXPECT_THAT(kinds, ElementsAre(Pair("fifo", Kind::kOther), Pair("file", Kind::kFile),
                                 Pair("to_file", Kind::kFile), Pair("to_folder", Kind::kFolder),
                                 Pair("to_nothing", Kind::kOther)));
  EXPECT_EQ(AsString(ReadNow(folder_.Path("a/to_file"))), "0123456789");
  EXPECT_EQ(storage_->Size(folder_.Path("a/to_file")).value(), 10u);
  EXPECT_THAT(ReadNow(folder_.Path("a/to_nothing")),
              FailsWith(ErrorCode::kNotFound, folder_.Path("a/to_nothing")));
}

TEST_F(LocalStorageTest, AnEmptyFolderHasNoEntries) {
  EXPECT_TRUE(storage_->List(folder_.path().string()).value().empty());
}

TEST_F(LocalStorageTest, AFileThatEndsBeforeItsSizeGivesTheBytesThereAre) {
  // The kernel says one page for such files and then gives a few words.
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  std::error_code error;
  if (fs::file_size(path, error) != 4096) GTEST_SKIP() << "no " << path;
  const Result<ReadResult> result = ReadNow(path);
  EXPECT_EQ(AsString(result), ReadFile(path));
  EXPECT_EQ(result.value().object_size, 4096u);
}

// Leaves the program little memory for a scope.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_ = {};
};

TEST_F(LocalStorageTest, AFileLargerThanTheMemoryIsAnErrorAndNotTheEnd) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space and end the program instead of throwing";
#endif
  const std::string path = folder_.Write("sparse", "");
  fs::resize_file(path, uint64_t{1} << 42);
  const MemoryLimit limit(rlim_t{1} << 36);
  EXPECT_THAT(ReadNow(path), FailsWith(ErrorCode::kResourceExhausted, path + ": no memory"));
  EXPECT_EQ(AsString(ReadNow(path, 2)), std::string(2, '\0'));
  EXPECT_EQ(pool_.peak_bytes_in_use(), 256u);
}

TEST_F(LocalStorageTest, ReadsStartInTheOrderOfTheirCalls) {
  const std::string path = folder_.Write("a", "x");
  ReadLog log;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    storage_->Read({.path = path, .length = 1}, pool_, log.Callback(i));
    expected.push_back(i);
  }
  log.WaitFor(100);
  EXPECT_EQ(log.order(), expected);
}

TEST_F(LocalStorageTest, AQueuedReadCanBeCancelledAndDoesNotWaitForThoseBeforeIt) {
  const std::string path = folder_.Write("a", "x");
  std::promise<void> gate;
  ReadLog log;
  storage_->Read({.path = path, .length = 1}, pool_,
                 [&](const auto&) { gate.get_future().wait(); });
  for (int i = 0; i < 3; ++i) storage_->Read({.path = path, .length = 1}, pool_, log.Callback(i));
  storage_->Cancel(storage_->Read({.path = path, .length = 1}, pool_, log.Callback(3)));
  gate.set_value();
  log.WaitFor(4);
  EXPECT_THAT(log.order(), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(log.result(3), FailsWith(ErrorCode::kStopped, path));
}

TEST_F(LocalStorageTest, DestructionStopsTheQueueInsteadOfReadingIt) {
  const std::string path = folder_.Write("a", "x");
  Storage& storage = *storage_;
  // Reads for ever, unless stopped.
  std::function<void(Result<ReadResult>)> read_on = [&](const Result<ReadResult>& result) {
    if (result.ok()) storage.Read({.path = path, .length = 1}, pool_, read_on);
  };
  storage.Read({.path = path, .length = 1}, pool_, read_on);
  storage_.reset();
}

TEST_F(LocalStorageTest, AllThreadsRead) {
  constexpr int kThreads = 4;
  storage_ = MakeLocalStorage(kThreads);
  const std::string path = folder_.Write("a", "x");
  ReadLog log;
  // Each callback holds its thread until all four have one.
  for (int i = 0; i < kThreads; ++i) {
    storage_->Read({.path = path, .length = 1}, pool_, [&, i](Result<ReadResult> result) {
      log.Callback(i)(std::move(result));
      log.WaitFor(kThreads);
    });
  }
  log.WaitFor(kThreads);
  storage_.reset();  // the callbacks still hold the log
  EXPECT_EQ(log.threads().size(), size_t{kThreads});
}

TEST_F(LocalStorageTest, TheNumberOfThreadsIsChecked) {
  for (const int threads : {-1, 0, 1025}) {
    try {
      MakeLocalStorage(threads);
      ADD_FAILURE() << threads;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.details().got, std::to_string(threads));
    }
  }
}

}  // namespace
}  // namespace echopipe::testing
