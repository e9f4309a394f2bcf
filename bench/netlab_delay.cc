// A link with a delay, for bench/netlab where the kernel has no netem.
//
//     echopipe_netlab_delay NETNS NETNS DEVICE MICROSECONDS
//
// Makes a TUN device named DEVICE in each of the two network namespaces (files such as
// /run/netns/NAME) and carries every packet from one to the other, so many microseconds after it
// came, in order. Prints "ready" once both devices are there; they go when the program ends.
// Packets are those of the sending TCP, up to 64 KB each (IFF_VNET_HDR), so that a fast link costs
// few calls. Once 64 MiB wait, packets stay in the device's own queue.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace echopipe {
namespace {

using Clock = std::chrono::steady_clock;

// A virtio_net_hdr and the largest IP packet, with room to spare.
constexpr size_t kMaxPacketBytes = size_t{128} << 10;
constexpr size_t kMaxWaitingBytes = size_t{64} << 20;
// Taken before the other direction has its turn.
constexpr int kMaxBunch = 64;

[[noreturn]] void Fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void Enter(const std::string& network_namespace) {
  const int fd = open(network_namespace.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) Fail(network_namespace);
  close(fd);
}

// The device belongs to the namespace that the process is in.
int OpenTun(const std::string& name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) Fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (name.size() >= sizeof request.ifr_name) {
    errno = ENAMETOOLONG;
    Fail(name);
  }
  std::memcpy(request.ifr_name, name.data(), name.size());
  if (ioctl(fd, TUNSETIFF, &request) != 0) Fail("TUNSETIFF");
  const unsigned long offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  if (ioctl(fd, TUNSETOFFLOAD, offload) != 0) Fail("TUNSETOFFLOAD");
  return fd;
}

int OpenTunIn(const std::string& network_namespace, const std::string& name) {
  Enter(network_namespace);
  return OpenTun(name);
}

/// One direction of the link: packets wait in the order in which they came.
class Direction {
 public:
  Direction(int from, int to, std::chrono::microseconds delay)
      : from_(from), to_(to), delay_(delay), buffer_(kMaxPacketBytes) {}

  bool HasRoom() const { return waiting_bytes_ < kMaxWaitingBytes; }

  /// Takes packets that have come.
  void Take() {
    for (int i = 0; i < kMaxBunch && HasRoom(); ++i) {
      const ssize_t size = read(from_, buffer_.data(), buffer_.size());
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (size <= 0) Fail("reading from a device");
      waiting_.push_back({Clock::now() + delay_, {buffer_.begin(), buffer_.begin() + size}});
      waiting_bytes_ += waiting_.back().bytes.size();
    }
  }

  /// Gives on the packets whose time has come.
  void Give() {
    const Clock::time_point now = Clock::now();
    while (!waiting_.empty() && waiting_.front().due <= now) {
      const std::vector<char>& bytes = waiting_.front().bytes;
      // EIO: the device is not up yet.
      if (write(to_, bytes.data(), bytes.size()) < 0 && errno != EIO) Fail("writing to a device");
      waiting_bytes_ -= bytes.size();
      waiting_.pop_front();
    }
  }

  std::optional<Clock::time_point> NextDue() const {
    if (waiting_.empty()) return std::nullopt;
    return waiting_.front().due;
  }

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  const int from_;
  const int to_;
  const std::chrono::microseconds delay_;
  std::vector<char> buffer_;
  std::deque<Packet> waiting_;
  size_t waiting_bytes_ = 0;
};

// A poll that ends at `due`; poll() itself counts in milliseconds.
void Wait(pollfd (&fds)[2], std::optional<Clock::time_point> due) {
  timespec left{};
  if (due) {
    const auto ns =
        std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(*due - Clock::now()));
    left.tv_sec = ns.count() / 1'000'000'000;
    left.tv_nsec = ns.count() % 1'000'000'000;
  }
  if (ppoll(fds, 2, due ? &left : nullptr, nullptr) < 0 && errno != EINTR) Fail("ppoll");
}

std::optional<Clock::time_point> Earlier(std::optional<Clock::time_point> a,
                                         std::optional<Clock::time_point> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

[[noreturn]] void Carry(int first, int second, std::chrono::microseconds delay) {
  Direction there(first, second, delay);
  Direction back(second, first, delay);
  while (true) {
    there.Give();
    back.Give();
    // A negative descriptor is passed over.
    pollfd fds[2] = {{there.HasRoom() ? first : -1, POLLIN, 0},
                     {back.HasRoom() ? second : -1, POLLIN, 0}};
    Wait(fds, Earlier(there.NextDue(), back.NextDue()));
    if (fds[0].revents != 0) there.Take();
    if (fds[1].revents != 0) back.Take();
  }
}

}  // namespace
}  // namespace echopipe

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s NETNS NETNS DEVICE MICROSECONDS\n", argv[0]);
    return 2;
  }
  try {
    const int first = echopipe::OpenTunIn(argv[1], argv[3]);
    const int second = echopipe::OpenTunIn(argv[2], argv[3]);
    std::puts("ready");
    std::fflush(stdout);
    echopipe::Carry(first, second, std::chrono::microseconds(std::atoll(argv[4])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 3;
  }
}
