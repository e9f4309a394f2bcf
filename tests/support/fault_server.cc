#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <sstream>
#include <system_error>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/http_message.h>
#include <echopipe/tests/support/tunnel.h>

namespace echopipe::testing {
namespace {

constexpr uint64_t kPieceBytes = 65536;
constexpr uint64_t kMaxRequestBody = 1 << 20;
constexpr int64_t kFirstModified = 1'700'000'000;  // some day in 2023

int HexDigit(char c) {
  int digit = -1;
  std::from_chars(&c, &c + 1, digit, 16);
  return digit;
}

// What is no proper escape stays as it is.
std::string DecodePercents(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                         HexDigit(text[i + 2]) >= 0;
    decoded +=
        escaped ? static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])) : text[i];
    if (escaped) i += 2;
  }
  return decoded;
}

// Proxies are asked for whole URLs.
std::string_view WithoutHost(std::string_view target) {
  const size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const size_t path = target.find('/', scheme + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

// Nothing if this is no request of HTTP/1.1.
std::optional<SeenRequest> ParseRequest(HttpHead head) {
  std::istringstream line(head.first_line);
  SeenRequest request;
  std::string version;
  line >> request.method >> request.target >> version;
  if (version != "HTTP/1.1") return std::nullopt;
  const std::string_view target = WithoutHost(request.target);
  const size_t question = std::min(target.find('?'), target.size());
  request.path = DecodePercents(target.substr(0, question));
  request.query = target.substr(std::min(question + 1, target.size()));
  request.headers = std::move(head.headers);
  return request;
}

uint64_t BodyBytes(const SeenRequest& request) {
  const std::string text = request.Header("content-length");
  uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return std::min(bytes, kMaxRequestBody);
}

std::string AsChunk(const std::string& bytes) {
  std::ostringstream size;
  size << std::hex << bytes.size();
  return size.str() + "\r\n" + bytes + "\r\n";
}

void SendAtOnce(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// False once the other side has left.
bool Pause(const Socket& socket, std::chrono::nanoseconds time) {
  pollfd wait = {socket.fd(), POLLRDHUP, 0};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const timespec limit = {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  return ppoll(&wait, 1, &limit, nullptr) == 0;
}

// "127.0.0.1:8080"
uint16_t PortIn(const std::string& target) {
  uint16_t port = 0;
  const size_t colon = target.rfind(':');
  if (colon != std::string::npos)
    std::from_chars(target.data() + colon + 1, target.data() + target.size(), port);
  return port;
}

}  // namespace

// The flags change under the server's lock; closing takes it too, since others shut sockets down.
struct FaultServer::Connection {
  Socket socket;
  Socket wake;  // an eventfd: Resume
  size_t number = 0;
  HttpReader reader{socket};
  bool idle = true;  // waits for a request
  bool stalled = false;
  bool resets = false;  // when it is closed
  bool ended = false;
  std::jthread thread;
};

FaultServer::FaultServer() : listener_(ListenOnLoopback()), acceptor_([this] { Accept(); }) {}

FaultServer::~FaultServer() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    for (const Connection& connection : connections_) connection.socket.Shutdown();
  }
  listener_.Shutdown();
  acceptor_.join();
  std::list<Connection> last;
  MutexLock lock(mutex_);
  last.swap(connections_);
}

uint16_t FaultServer::port() const { return PortOf(listener_); }

void FaultServer::Put(const std::string& path, std::string bytes, std::string content_type) {
  ServedObject object{.bytes = std::make_shared<const std::string>(std::move(bytes)),
                      .content_type = std::move(content_type)};
  object.size = object.bytes->size();
  PutObject(path, std::move(object));
}

void FaultServer::PutSparse(const std::string& path, uint64_t size) {
  PutObject(path, {.size = size, .content_type = "application/octet-stream"});
}

void FaultServer::PutObject(const std::string& path, ServedObject object) {
  MutexLock lock(mutex_);
  ++versions_;
  object.etag = "\"v" + std::to_string(versions_) + "\"";
  object.last_modified = HttpDate(kFirstModified + versions_);
  objects_.insert_or_assign(path, std::move(object));
}

void FaultServer::Remove(const std::string& path) {
  MutexLock lock(mutex_);
  objects_.erase(path);
}

std::string FaultServer::ETag(const std::string& path) const { return Find(path).value().etag; }

std::optional<ServedObject> FaultServer::Find(const std::string& path) const {
  MutexLock lock(mutex_);
  const auto object = objects_.find(path);
  if (object == objects_.end()) return std::nullopt;
  return object->second;
}

void FaultServer::OnRequest(size_t number, Fault fault) {
  MutexLock lock(mutex_);
  request_faults_.insert_or_assign(number, std::move(fault));
}

void FaultServer::OnPath(const std::string& path, Fault fault, int times) {
  MutexLock lock(mutex_);
  path_faults_[path].push_back({.fault = std::move(fault), .times = times});
}

void FaultServer::Decide(std::function<Fault(const SeenRequest&)> decide) {
  MutexLock lock(mutex_);
  decide_ = std::move(decide);
}

Fault FaultServer::FaultFor(size_t number, const SeenRequest& request) {
  if (std::optional<Fault> fault = ScriptedFault(number, request)) return *fault;
  std::function<Fault(const SeenRequest&)> decide;
  {
    MutexLock lock(mutex_);
    decide = decide_;
  }
  return decide ? decide(request) : Fault();
}

std::optional<Fault> FaultServer::ScriptedFault(size_t number, const SeenRequest& request) {
  MutexLock lock(mutex_);
  if (const auto fault = request_faults_.find(number); fault != request_faults_.end())
    return fault->second;
  std::deque<PathFault>& faults = path_faults_[request.path];
  while (!faults.empty() && faults.front().times <= 0) faults.pop_front();
  if (faults.empty()) return std::nullopt;
  if (faults.front().times < kAlways) --faults.front().times;
  return faults.front().fault;
}

std::vector<SeenRequest> FaultServer::requests() const {
  MutexLock lock(mutex_);
  return requests_;
}

void FaultServer::WaitForRequests(size_t count) {
  MutexLock lock(mutex_);
  while (requests_.size() < count) changed_.Wait(mutex_);
}

void FaultServer::WaitForAnswers(size_t count) {
  MutexLock lock(mutex_);
  while (answers_ < count) changed_.Wait(mutex_);
}

void FaultServer::WaitForStalled(size_t count) {
  MutexLock lock(mutex_);
  while (CountStalled() < count) changed_.Wait(mutex_);
}

size_t FaultServer::CountStalled() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const Connection& c) { return c.stalled; }));
}

void FaultServer::Resume() {
  MutexLock lock(mutex_);
  for (Connection& connection : connections_) {
    if (!connection.stalled) continue;
    connection.stalled = false;
    eventfd_write(connection.wake.fd(), 1);
  }
}

size_t FaultServer::connections() const {
  MutexLock lock(mutex_);
  return accepted_;
}

size_t FaultServer::open_connections() const {
  MutexLock lock(mutex_);
  return CountOpen();
}

size_t FaultServer::most_open_connections() const {
  MutexLock lock(mutex_);
  return most_open_;
}

size_t FaultServer::CountOpen() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const Connection& c) { return !c.ended; }));
}

void FaultServer::WaitForOpenConnections(size_t count) {
  MutexLock lock(mutex_);
  while (CountOpen() != count) changed_.Wait(mutex_);
}

void FaultServer::CloseIdleConnections() {
  MutexLock lock(mutex_);
  for (const Connection& connection : connections_)
    if (connection.idle && !connection.ended) connection.socket.Shutdown();
}

void FaultServer::Accept() {
  while (true) {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    MutexLock lock(mutex_);
    if (ended_) return;
    if (socket) {
      Add(std::move(socket));
    } else if (errno != EINTR && errno != ECONNABORTED) {
      ADD_FAILURE() << "cannot accept: errno " << errno;
      return;
    }
  }
}

// An ended connection's thread has let go of the lock and does nothing more: joining is quick.
void FaultServer::Add(Socket socket) {
  connections_.remove_if([](const Connection& c) { return c.ended; });
  SendAtOnce(socket);
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  connection.wake = Socket(eventfd(0, EFD_CLOEXEC));
  connection.number = accepted_++;
  most_open_ = std::max(most_open_, CountOpen());
  connection.thread = std::jthread([this, &connection] { Serve(connection); });
  changed_.NotifyAll();
}

void FaultServer::Serve(Connection& connection) {
  while (ServeOne(connection)) continue;
  Close(connection);
}

void FaultServer::Close(Connection& connection) {
  MutexLock lock(mutex_);
  if (connection.resets) {
    connection.socket.Reset();
  } else {
    connection.socket = Socket();
  }
  connection.ended = true;
  changed_.NotifyAll();
}

bool FaultServer::ServeOne(Connection& connection) {
  const std::optional<SeenRequest> request = Receive(connection);
  if (!request) return false;
  const size_t number = NoteRequest(connection, *request);
  const Fault fault = FaultFor(number, *request);
  const bool goes_on = request->method == "CONNECT" && !fault.status
                           ? OpenTunnel(connection, number, *request)
                           : Answer(connection, number, *request, fault);
  NoteAnswered(connection, number);
  return goes_on;
}

std::optional<SeenRequest> FaultServer::Receive(Connection& connection) {
  std::optional<HttpHead> head = connection.reader.ReadHead();
  if (!head) return std::nullopt;
  std::optional<SeenRequest> request = ParseRequest(std::move(*head));
  if (!request) {
    connection.socket.Send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    return std::nullopt;
  }
  connection.reader.Read(BodyBytes(*request));
  request->connection = connection.number;
  return request;
}

size_t FaultServer::NoteRequest(Connection& connection, const SeenRequest& request) {
  MutexLock lock(mutex_);
  connection.idle = false;
  requests_.push_back(request);
  changed_.NotifyAll();
  return requests_.size() - 1;
}

void FaultServer::NoteStatus(size_t number, int status) {
  MutexLock lock(mutex_);
  requests_[number].status = status;
}

void FaultServer::NoteSent(size_t number, uint64_t bytes) {
  MutexLock lock(mutex_);
  requests_[number].body_bytes_sent += bytes;
}

void FaultServer::NoteAnswered(Connection& connection, size_t number) {
  MutexLock lock(mutex_);
  connection.idle = true;
  requests_[number].answered = true;
  ++answers_;
  changed_.NotifyAll();
}

bool FaultServer::OpenTunnel(Connection& connection, size_t number, const SeenRequest& request) {
  const Socket other = ConnectToLoopback(PortIn(request.target));
  if (!other) return Answer(connection, number, request, Status(502));
  NoteStatus(number, 200);
  connection.socket.Send("HTTP/1.1 200 Connection established\r\n\r\n");
  Tunnel(connection.socket, other);
  return false;
}

bool FaultServer::Answer(Connection& connection, size_t number, const SeenRequest& request,
                         const Fault& fault) {
  const std::optional<ServedObject> object = Find(request.path);
  const FaultAnswer answer =
      MakeAnswer(request.method, request.headers, object ? &*object : nullptr, fault);
  NoteStatus(number, answer.status);
  return SendHead(connection, answer.head, fault.stop) &&
         SendBody(connection, number, answer, fault) && !answer.closes;
}

bool FaultServer::SendHead(Connection& connection, std::string_view head, const Fault::Stop& stop) {
  if (stop.where != Fault::Stop::Where::kInHead) return connection.socket.Send(head);
  const std::string_view first = head.substr(0, stop.after_bytes);
  return connection.socket.Send(first) && Halt(connection, stop.how) &&
         connection.socket.Send(head.substr(first.size()));
}

bool FaultServer::SendBody(Connection& connection, size_t number, const FaultAnswer& answer,
                           const Fault& fault) {
  const uint64_t size = answer.body.size();
  const bool stops = fault.stop.where == Fault::Stop::Where::kInBody;
  const uint64_t stop = stops ? std::min(size, fault.stop.after_bytes) : size;
  if (!SendPieces(connection, number, answer, fault.pace, 0, stop)) return false;
  if (stops && !Halt(connection, fault.stop.how)) return false;
  if (!SendPieces(connection, number, answer, fault.pace, stop, size)) return false;
  return answer.length != Fault::Length::kChunked || connection.socket.Send("0\r\n\r\n");
}

bool FaultServer::SendPieces(Connection& connection, size_t number, const FaultAnswer& answer,
                             const Fault::Pace& pace, uint64_t begin, uint64_t end) {
  const bool chunked = answer.length == Fault::Length::kChunked;
  const uint64_t step = pace.bytes == 0 ? kPieceBytes : pace.bytes;
  for (uint64_t offset = begin; offset < end; offset += step) {
    if (pace.bytes > 0 && offset > 0 && !Pause(connection.socket, pace.tick)) return false;
    const std::string piece = answer.body.Piece(offset, std::min(step, end - offset));
    if (!connection.socket.Send(chunked ? AsChunk(piece) : piece)) return false;
    NoteSent(number, piece.size());
  }
  return true;
}

bool FaultServer::Halt(Connection& connection, Fault::Stop::How how) {
  if (how == Fault::Stop::How::kStall) return Stall(connection);
  connection.resets = how == Fault::Stop::How::kReset;
  return false;
}

// The client's leaving, the server's end and Resume all wake it.
bool FaultServer::Stall(Connection& connection) {
  {
    MutexLock lock(mutex_);
    connection.stalled = true;
    changed_.NotifyAll();
  }
  std::array<pollfd, 2> waits = {
      {{connection.socket.fd(), POLLRDHUP, 0}, {connection.wake.fd(), POLLIN, 0}}};
  poll(waits.data(), waits.size(), -1);
  MutexLock lock(mutex_);
  const bool resumed = !connection.stalled;
  connection.stalled = false;
  eventfd_t count = 0;
  if (resumed) eventfd_read(connection.wake.fd(), &count);
  return resumed;
}

}  // namespace echopipe::testing
