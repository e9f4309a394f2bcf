#include <csignal>

#include <semaphore.h>

#include <echopipe/cli/interrupt.h>

namespace echopipe::cli {
namespace {

// Signals are not blocked and waited for: libraries start threads before main(), and these would
// get them. A handler can reach nothing but a global and do little more than this.
sem_t signalled;

void OnSignal(int) { sem_post(&signalled); }

void Handle(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  sem_init(&signalled, 0, 0);
  watch_ = std::jthread([this] {
    while (sem_wait(&signalled) != 0) continue;  // EINTR
    if (!ended_) source_.request_stop();
  });
  Handle(OnSignal, SA_RESETHAND | SA_RESTART);
}

Interrupt::~Interrupt() {
  Handle(SIG_DFL, 0);
  ended_ = true;
  sem_post(&signalled);
}

}  // namespace echopipe::cli
