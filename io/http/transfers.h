#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <echopipe/base/clock.h>
#include <echopipe/io/http/answer.h>
#include <echopipe/io/http_storage.h>

namespace echopipe::internal {

/// A GET of the whole or of a range, or a HEAD.
struct TransferRequest {
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;  ///< inclusive
  };
  std::string uri;  ///< percent-encoded
  bool head = false;
  std::optional<Range> range = {};
  std::string if_match = {};  ///< a strong ETag; "" for none
  HttpCredentials credentials = {};
};

/// Why a transfer ended.
struct TransferEnd {
  enum class Kind {
    kComplete,   ///< all of the answer has come, whatever its status
    kBroken,     ///< the connection or the server failed; another attempt may not
    kTimeout,    ///< the same, for want of an answer
    kImpossible  ///< another attempt would fail alike
  };
  Kind kind = Kind::kComplete;
  std::string why = {};  ///< unless complete
};

/// Is told of one transfer, in this order, on the thread that polls. Must not throw.
class TransferReceiver {
 public:
  virtual ~TransferReceiver() = default;
  /// The answer's head, behind redirects. Not called if the transfer ends before.
  virtual void OnHead(const AnswerHead& head) = 0;
  /// Some bytes of its body. False cuts the transfer off: it ends as broken.
  virtual bool OnBody(std::span<const uint8_t> bytes) = 0;
  /// Last; it may start and abort other transfers.
  virtual void OnEnd(const TransferEnd& end) = 0;
};

/// HTTP/1.1 transfers over kept-alive connections, many at once on one thread: libcurl's multi
/// interface.
///
/// Threads  All of it by one thread at a time, but Wake(), which any may call.
class Transfers {
 public:
  using Id = uint64_t;

  /// Throws kInvalidArgument for a CA file or proxy that cannot be used, kResourceExhausted.
  explicit Transfers(const HttpOptions& options);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// `receiver` must live until OnEnd() or Abort(). Throws kInvalidArgument for a header that is
  /// none, std::bad_alloc.
  Id Start(const TransferRequest& request, TransferReceiver& receiver);
  /// Its receiver is told nothing more. Unknown ids are ignored.
  void Abort(Id id);
  /// Waits for bytes, Wake() or the timeout, then calls the receivers.
  void Poll(Clock::Duration timeout);
  void Wake();

 private:
  class Transfer;
  struct Multi;

  void Finish(Transfer& transfer, int code);

  HttpOptions options_;
  std::unique_ptr<Multi> multi_;
  std::unordered_map<Id, std::unique_ptr<Transfer>> running_;
  std::vector<std::unique_ptr<Transfer>> idle_;  // their handles are used again
  Id next_ = 1;
};

}  // namespace echopipe::internal
