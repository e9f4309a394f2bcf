#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <echopipe/base/error.h>
#include <echopipe/base/replace_file.h>
#include <echopipe/tests/support/files.h>

namespace echopipe {
namespace {

namespace fs = std::filesystem;
using testing::ReadFile;
using testing::TempFolder;

ErrorCode CodeOf(const std::string& path) {
  try {
    ReplaceFile(path, "new");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith(path));
    return error.code();
  }
  ADD_FAILURE() << path << " was written";
  return ErrorCode::kInternal;
}

TEST(ReplaceFileTest, TheFileIsMadeOrReplacedAndNothingIsLeftBeside) {
  const TempFolder folder;
  for (const std::string bytes : {"one", "", "another one"}) {
    ReplaceFile(folder.Path("file"), bytes);
    EXPECT_EQ(ReadFile(folder.Path("file")), bytes);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(ReplaceFileTest, WhoeverReadsMeanwhileFindsOneOfTheWritersWholeFiles) {
  const TempFolder folder;
  const std::string path = folder.Write("file", std::string(100'000, 'a'));
  std::atomic<int> writing = 4;
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      const std::string bytes(100'000, static_cast<char>('a' + writer));
      for (int i = 0; i < 25; ++i) ReplaceFile(path, bytes);
      --writing;
    });
  }
  while (writing > 0) {
    const std::string found = ReadFile(path);
    ASSERT_EQ(found, std::string(100'000, found.at(0)));
  }
  writers.clear();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(ReplaceFileTest, ALinkIsFollowed) {
  const TempFolder folder;
  const std::string file = folder.Write("disk/file", "old");
  fs::create_symlink(file, folder.Path("link"));
  ReplaceFile(folder.Path("link"), "new");
  EXPECT_EQ(ReadFile(file), "new");
  EXPECT_TRUE(fs::is_symlink(folder.Path("link")));
}

TEST(ReplaceFileTest, WhatIsNoRegularFileIsLeftAlone) {
  const TempFolder folder;
  const std::string fifo = folder.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(fifo), ErrorCode::kIo);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_EQ(CodeOf(folder.path()), ErrorCode::kIo);
  EXPECT_EQ(CodeOf(folder.path().string() + "/none/file"), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace echopipe
