#include <csignal>

#include <unistd.h>

#include <echopipe/cli/exit_code.h>
#include <echopipe/cli/interrupt.h>

namespace echopipe::cli {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watch_ = std::jthread([this] { Watch(); });
}

Interrupt::~Interrupt() {
  ended_ = true;
  pthread_kill(watch_.native_handle(), SIGTERM);  // ends its sigwait()
}

void Interrupt::Watch() {
  const sigset_t signals = Signals();
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (ended_) return;
    if (source_.stop_requested()) _exit(kInterrupted);
    source_.request_stop();
  }
}

}  // namespace echopipe::cli
