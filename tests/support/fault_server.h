#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <echopipe/base/mutex.h>
#include <echopipe/tests/support/fault.h>
#include <echopipe/tests/support/fault_answer.h>
#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {

/// A request as a FaultServer saw it, and how it was answered.
struct SeenRequest {
  std::string method;
  std::string target;            ///< as sent: "/a%20b?c", to a proxy "http://host/a%20b?c"
  std::string path;              ///< decoded, without host and query: "/a b"
  std::string query;             ///< "c"
  HttpHeaders headers;           ///< names in lower case
  size_t connection = 0;         ///< counted from 0
  int status = 0;                ///< 0 as long as there is no answer
  uint64_t body_bytes_sent = 0;  ///< that the system has taken
  bool answered = false;         ///< the answer has ended, one way or another

  /// "" if there is none.
  std::string Header(std::string_view name) const { return FindHeader(headers, name); }
  std::string range() const { return Header("range"); }
};

/// A small HTTP/1.1 server of objects in memory, on a port of 127.0.0.1, which answers well (Range,
/// HEAD, ETag, If-Match, If-Range, keep-alive) until it is told to do otherwise.
///
/// As a forward proxy it answers requests for any host ("GET http://host/a") from its own objects,
/// and CONNECT with a tunnel to that port of 127.0.0.1.
/// Order    Faults for a numbered request go before those for its path, and these before Decide.
/// End      Open connections are cut; stalled answers end.
/// Threads  Every method may be called from any thread. Each connection has one of its own.
class FaultServer {
 public:
  static constexpr int kAlways = 1 << 30;

  FaultServer();
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  uint16_t port() const;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  /// Makes or replaces an object, which gives it another ETag and Last-Modified. Paths are decoded
  /// and begin with "/".
  void Put(const std::string& path, std::string bytes,
           std::string content_type = "application/octet-stream");
  /// An object of any size that takes no memory; its bytes are SparseBytes.
  void PutSparse(const std::string& path, uint64_t size);
  void Remove(const std::string& path);
  /// Precondition: there is such an object.
  std::string ETag(const std::string& path) const;

  /// For the request that will be requests()[number].
  void OnRequest(size_t number, Fault fault);
  /// For the next `times` requests of this path, behind what is there for it already.
  void OnPath(const std::string& path, Fault fault, int times = kAlways);
  /// For every other request. It runs on the connection's thread, under no lock.
  void Decide(std::function<Fault(const SeenRequest&)> decide);

  /// Every request so far, in order.
  std::vector<SeenRequest> requests() const;
  /// These block until so many requests have come, have been answered, or are stalled.
  void WaitForRequests(size_t count);
  void WaitForAnswers(size_t count);
  void WaitForStalled(size_t count);
  /// Lets the answers that are stalled now go on.
  void Resume();

  /// How many connections there have been, are, and were at most at one time.
  size_t connections() const;
  size_t open_connections() const;
  size_t most_open_connections() const;
  /// Blocks until there are exactly so many.
  void WaitForOpenConnections(size_t count);
  /// Closes those that wait for a request.
  void CloseIdleConnections();

 private:
  struct Connection;
  struct PathFault {
    Fault fault;
    int times = 0;
  };

  void Accept();
  void Add(Socket socket) ECHOPIPE_REQUIRES(mutex_);
  void Serve(Connection& connection);
  void Close(Connection& connection);

  // These return false if the connection is to be closed.
  bool ServeOne(Connection& connection);
  bool OpenTunnel(Connection& connection, size_t number, const SeenRequest& request);
  bool Answer(Connection& connection, size_t number, const SeenRequest& request,
              const Fault& fault);
  bool SendHead(Connection& connection, std::string_view head, const Fault::Stop& stop);
  bool SendBody(Connection& connection, size_t number, const FaultAnswer& answer,
                const Fault& fault);
  bool SendPieces(Connection& connection, size_t number, const FaultAnswer& answer,
                  const Fault::Pace& pace, uint64_t begin, uint64_t end);
  bool Halt(Connection& connection, Fault::Stop::How how);
  bool Stall(Connection& connection);

  std::optional<SeenRequest> Receive(Connection& connection);
  size_t NoteRequest(Connection& connection, const SeenRequest& request);
  void NoteStatus(size_t number, int status);
  void NoteSent(size_t number, uint64_t bytes);
  void NoteAnswered(Connection& connection, size_t number);
  Fault FaultFor(size_t number, const SeenRequest& request);
  std::optional<Fault> ScriptedFault(size_t number, const SeenRequest& request);
  std::optional<ServedObject> Find(const std::string& path) const;
  void PutObject(const std::string& path, ServedObject object);
  size_t CountStalled() const ECHOPIPE_REQUIRES(mutex_);
  size_t CountOpen() const ECHOPIPE_REQUIRES(mutex_);

  const Socket listener_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, ServedObject> objects_ ECHOPIPE_GUARDED_BY(mutex_);
  int64_t versions_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  std::map<size_t, Fault> request_faults_ ECHOPIPE_GUARDED_BY(mutex_);
  std::map<std::string, std::deque<PathFault>> path_faults_ ECHOPIPE_GUARDED_BY(mutex_);
  std::function<Fault(const SeenRequest&)> decide_ ECHOPIPE_GUARDED_BY(mutex_);
  std::vector<SeenRequest> requests_ ECHOPIPE_GUARDED_BY(mutex_);
  size_t answers_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  std::list<Connection> connections_ ECHOPIPE_GUARDED_BY(mutex_);  // open, or not yet joined
  size_t accepted_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t most_open_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  bool ended_ ECHOPIPE_GUARDED_BY(mutex_) = false;
  std::jthread acceptor_;
};

}  // namespace echopipe::testing
