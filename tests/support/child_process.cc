#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <echopipe/tests/support/child_process.h>

namespace echopipe::testing {
namespace {

constexpr std::chrono::milliseconds kTick{2};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child of a process with threads: system calls alone. The group is for its own children.
[[noreturn]] void Become(char** words, char** environment, int output, int inherited_fd) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (inherited_fd >= 0) fcntl(inherited_fd, F_SETFD, 0);
  execve(words[0], words, environment);
  _exit(127);
}

}  // namespace

std::string FindProgram(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/" + std::string(name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

ChildProcess::ChildProcess(const Options& options) : grace_(options.grace) {
  const std::vector<char*> words = Pointers(options.words);
  const std::vector<char*> environment = Pointers(options.environment);
  const int output = open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  pid_ = fork();
  if (pid_ == 0)
    Become(const_cast<char**>(words.data()), const_cast<char**>(environment.data()), output,
           options.inherited_fd.value_or(-1));
  if (pid_ < 0) ADD_FAILURE() << "cannot start " << options.words[0];
  close(output);
}

ChildProcess::~ChildProcess() { Stop(); }

bool ChildProcess::Running() { return !Reap(WNOHANG); }

int ChildProcess::Wait() {
  Reap(0);
  return *exit_code_;
}

// A failed start counts as ended.
bool ChildProcess::Reap(int options) {
  int status = 127 << 8;
  if (exit_code_ || waitpid(pid_, &status, options) == 0) return exit_code_.has_value();
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

void ChildProcess::Stop() {
  if (!Running()) return;
  kill(pid_, SIGTERM);
  const auto limit = std::chrono::steady_clock::now() + grace_;
  while (Running() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(kTick);
  if (!Running()) return;
  kill(-pid_, SIGKILL);
  Wait();
}

}  // namespace echopipe::testing
