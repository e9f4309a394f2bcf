#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

template <class Address>
Socket Connect(int family, const Address& address) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket.fd(), any, sizeof(address)) != 0) return {};
  return socket;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  const Socket old(std::exchange(fd_, std::exchange(other.fd_, -1)));
  return *this;
}

bool Socket::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

Socket::End Socket::Receive(std::string* bytes) const {
  std::array<char, 65536> chunk;
  ssize_t size = -1;
  do {
    size = recv(fd_, chunk.data(), chunk.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return End::kReset;
  bytes->append(chunk.data(), static_cast<size_t>(size));
  return size == 0 ? End::kClosed : End::kOpen;
}

bool Socket::HasMore() const {
  pollfd wait = {fd_, POLLIN, 0};
  return poll(&wait, 1, 0) > 0;
}

void Socket::Shutdown() const { shutdown(fd_, SHUT_RDWR); }

void Socket::Reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(std::exchange(fd_, -1));
}

Socket BindToLoopback() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(0);
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    ADD_FAILURE() << "no port: errno " << errno;
  return socket;
}

Socket ListenOnLoopback() {
  Socket socket = BindToLoopback();
  if (listen(socket.fd(), SOMAXCONN) != 0) ADD_FAILURE() << "cannot listen: errno " << errno;
  return socket;
}

uint16_t PortOf(const Socket& socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Socket ConnectToLoopback(uint16_t port) {
  Socket socket = Connect(AF_INET, Loopback(port));
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

Socket ConnectToPath(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) ADD_FAILURE() << "too long: " << path;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return Connect(AF_UNIX, address);
}

}  // namespace echopipe::testing
