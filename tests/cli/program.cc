#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <echopipe/tests/cli/program.h>

namespace echopipe::testing {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe: errno " << errno;
  return {ends[0], ends[1]};
}

pid_t Spawn(const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failure, 0) << "cannot start " << words[0];
  return pid;
}

// False at the pipe's end.
bool Append(int pipe, std::string* text) {
  std::array<char, 4096> chunk;
  const ssize_t size = read(pipe, chunk.data(), chunk.size());
  if (size > 0) text->append(chunk.data(), static_cast<size_t>(size));
  return size > 0;
}

void Close(int* pipe) {
  if (*pipe >= 0) close(*pipe);
  *pipe = -1;
}

}  // namespace

Program::Program(std::vector<std::string> arguments, std::vector<std::string> launcher) {
  std::vector<std::string> words = std::move(launcher);
  words.emplace_back(ECHOPIPE_PROGRAM);
  words.insert(words.end(), arguments.begin(), arguments.end());
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  pid_ = Spawn(words, out.write, err.write);
  Close(&out.write);
  Close(&err.write);
  out_ = out.read;
  err_ = err.read;
}

Program::~Program() {
  if (pid_ > 0) Signal(SIGKILL);
  Wait();
}

void Program::Signal(int signal) const { kill(pid_, signal); }

bool Program::Read() {
  std::array<pollfd, 2> pipes{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (out_ < 0 && err_ < 0) return false;
  poll(pipes.data(), pipes.size(), -1);
  if (pipes[0].revents != 0 && !Append(out_, &run_.out)) Close(&out_);
  if (pipes[1].revents != 0 && !Append(err_, &run_.err)) Close(&err_);
  return true;
}

ProgramRun Program::Wait() {
  while (Read()) continue;
  if (pid_ <= 0) return run_;
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  run_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run_;
}

ProgramRun RunProgram(std::vector<std::string> arguments, std::vector<std::string> launcher) {
  return Program(std::move(arguments), std::move(launcher)).Wait();
}

}  // namespace echopipe::testing
