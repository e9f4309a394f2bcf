#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace echopipe::testing {

/// A stream socket that blocks; closed at the end of the scope.
class Socket {
 public:
  /// How the other side's bytes have ended so far.
  enum class End { kOpen, kClosed, kReset };

  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  /// False if the other side takes no more.
  bool Send(std::string_view bytes) const;
  /// Waits for bytes and appends what has come; nothing at the end.
  End Receive(std::string* bytes) const;
  /// True if Receive would not have to wait.
  bool HasMore() const;
  /// Ends both directions, and with it whatever waits on this socket in another thread.
  void Shutdown() const;
  /// Closes with a reset: the other side fails, after what has reached it already.
  void Reset();

 private:
  int fd_ = -1;
};

/// A port of 127.0.0.1 that nobody else can take. Connections are refused unless it listens.
Socket BindToLoopback();
Socket ListenOnLoopback();
uint16_t PortOf(const Socket& socket);
/// A socket without a connection if it is refused.
Socket ConnectToLoopback(uint16_t port);
Socket ConnectToPath(const std::string& path);

}  // namespace echopipe::testing
