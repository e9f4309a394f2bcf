#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <echopipe/tests/support/child_process.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {
namespace {

using ::testing::EndsWith;

// The test's end of a connection whose other end a shell has as $FD.
class Shell {
 public:
  explicit Shell(const std::string& script, std::chrono::milliseconds grace = {}) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    mine_ = Socket(ends[0]);
    const Socket theirs(ends[1]);
    process_ = std::make_unique<ChildProcess>(ChildProcess::Options{
        .words = {FindProgram("sh"), "-c", script},
        .environment = {"PATH=/usr/bin:/bin", "FD=" + std::to_string(theirs.fd())},
        .output = folder_.Path("output"),
        .inherited_fd = theirs.fd(),
        .grace = grace});
  }

  ChildProcess& process() { return *process_; }
  std::string Output() const { return ReadFile(folder_.Path("output")); }
  // A line, or "" once nobody has the other end.
  std::string Receive() const {
    std::string line;
    while (!line.ends_with('\n') && mine_.Receive(&line) == Socket::End::kOpen) continue;
    return line;
  }

 private:
  TempFolder folder_;
  Socket mine_;
  std::unique_ptr<ChildProcess> process_;
};

TEST(ChildProcessTest, ProgramsAreFoundByName) {
  EXPECT_THAT(FindProgram("sh"), EndsWith("/sh"));
  EXPECT_EQ(FindProgram("no-such-program"), "");
}

TEST(ChildProcessTest, ExitCodesAreTold) {
  EXPECT_EQ(Shell("exit 3").process().Wait(), 3);
  EXPECT_EQ(Shell("kill -9 $$").process().Wait(), 128 + SIGKILL);
  EXPECT_EQ(ChildProcess({.words = {"/no/such/program"}}).Wait(), 127);
}

TEST(ChildProcessTest, WhatItSaysIsInAFile) {
  Shell shell("echo out; echo err >&2");
  shell.process().Wait();
  EXPECT_EQ(shell.Output(), "out\nerr\n");
}

TEST(ChildProcessTest, ADescriptorCanBeInherited) {
  Shell shell("eval \"echo hello >&$FD\"");
  EXPECT_EQ(shell.Receive(), "hello\n");
  EXPECT_EQ(shell.Receive(), "");
}

TEST(ChildProcessTest, ItIsAskedToEnd) {
  Shell shell("trap 'exit 5' TERM; eval \"echo up >&$FD; read line <&$FD\"",
              std::chrono::minutes(10));
  EXPECT_EQ(shell.Receive(), "up\n");
  EXPECT_TRUE(shell.process().Running());
  shell.process().Stop();
  EXPECT_FALSE(shell.process().Running());
  EXPECT_EQ(shell.process().Wait(), 5);
}

TEST(ChildProcessTest, WhoDoesNotEndIsMadeToWithItsChildren) {
  Shell shell("trap '' TERM; eval \"(echo up >&$FD; cat <&$FD); true\"");
  EXPECT_EQ(shell.Receive(), "up\n");
  shell.process().Stop();
  EXPECT_EQ(shell.process().Wait(), 128 + SIGKILL);
  EXPECT_EQ(shell.Receive(), "");
}

}  // namespace
}  // namespace echopipe::testing
