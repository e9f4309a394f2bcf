#include <array>
#include <string>

#include <poll.h>

#include <echopipe/tests/support/tunnel.h>

namespace echopipe::testing {
namespace {

bool PassOn(const Socket& from, const Socket& to) {
  std::string bytes;
  return from.Receive(&bytes) == Socket::End::kOpen && to.Send(bytes);
}

}  // namespace

void Tunnel(const Socket& left, const Socket& right) {
  bool open = true;
  while (open) {
    std::array<pollfd, 2> waits = {{{left.fd(), POLLIN, 0}, {right.fd(), POLLIN, 0}}};
    poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) open = PassOn(left, right);
    if (open && waits[1].revents != 0) open = PassOn(right, left);
  }
}

}  // namespace echopipe::testing
