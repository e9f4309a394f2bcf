#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/base/export.h>
#include <echopipe/io/storage.h>

namespace echopipe {

/// When a failed request is sent again: after a random wait that may be twice as long each time.
struct RetryOptions {
  Clock::Duration first_wait = std::chrono::milliseconds(100);  ///< the longest first one, > 0
  Clock::Duration longest_wait = std::chrono::seconds(10);      ///< of all, >= first_wait
  /// A request that has not moved on for so long fails; 0 to 1 day.
  Clock::Duration budget = std::chrono::seconds(60);
};

/// What goes along with a request, anew for each attempt (tokens expire).
struct HttpCredentials {
  std::string bearer_token = {};          ///< never sent on to another host
  std::vector<std::string> headers = {};  ///< "Name: value"
};

struct HttpOptions {
  RetryOptions retry = {};
  Clock::Duration connect_timeout = std::chrono::seconds(10);  ///< 1 ms to 1 h
  /// An answer that brings less than 1 KB/s for so long is cut off and asked for again; 1 ms to
  /// 1 h.
  Clock::Duration stall_timeout = std::chrono::seconds(15);
  /// A read that takes longer, retries and all, fails; 1 ms to 1 day.
  Clock::Duration deadline = std::chrono::minutes(10);
  int most_requests = 64;    ///< to one server at once, 1 to 1024
  std::string ca_file = {};  ///< certificates (PEM) to trust in the place of the system's
  std::string proxy = {};    ///< "http://host:port"; empty: none
  bool verify_tls = true;    ///< false takes any certificate: for tests alone
  /// Called with the uri before each attempt, on the storage's thread; it must be short and not
  /// throw. It says nothing where it has nothing to add.
  std::function<HttpCredentials(const std::string& uri)> credentials = nullptr;
};

/// Objects of HTTP(S) servers. Paths are "http://host:port/plain path": names are plain bytes and
/// are percent-encoded on the way out.
///
/// Reads     By range, over kept-alive HTTP/1.1 connections; neighbouring reads are
///           merged into one request, large ones split. How many are under way follows the server
///           (fewer on 429, 503 and timeouts, more when it recovers), how many bytes the link
///           (bandwidth x delay).
/// Checked   Status, range, length; and that an object is the one that was read before (a strong
///           ETag by If-Match, else Last-Modified and size; of the 65,536 objects read last): one
///           that has changed is an error that names it.
/// Retries   Lost connections, timeouts, 408, 425, 429, 500, 502, 503, 504: what has come is kept,
///           the rest asked for. All requests of a server that stays dead fail within retry.budget
///           of its first failure and one connect_timeout (or stall_timeout); those of one that has
///           never answered in 10 s.
/// List      From a manifest.txt in the folder (a path a line), else from the server's own page for
///           the folder, else from a manifest.txt above.
/// Gone      When a request is given up and in all that time the server has answered none, or with
///           429 and 503 alone, it is kUnavailable; where it has answered others, kIo.
/// Errors    As Storage; messages tell the last reason and how often it was tried.
///           kInvalidArgument for options out of range, a CA file that cannot be read.
ECHOPIPE_EXPORT std::shared_ptr<Storage> MakeHttpStorage(const HttpOptions& options);

/// Whatever a path says: http:// and https:// from servers, the rest from this machine's files,
/// by `threads` threads. Both begin when they are first needed.
ECHOPIPE_EXPORT std::shared_ptr<Storage> MakeStorage(int threads, const HttpOptions& http);

}  // namespace echopipe
