#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include <curl/curl.h>

#include <echopipe/io/http/transfers.h>

namespace echopipe::internal {
namespace {

constexpr long kMostRedirects = 5;
constexpr long kReceiveBuffer = 256L << 10;
constexpr long kMostConnectionsKept = 256;
// Longer ones identify nothing that is kept for many objects.
constexpr size_t kMostTagBytes = 512;

void InitCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

void Check(CURLcode code) {
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code == CURLE_OK) return;
  throw Error({.code = ErrorCode::kInternal,
               .what = std::string("libcurl: ") + curl_easy_strerror(code),
               .where = "MakeHttpStorage"});
}

template <class T>
void Set(CURL* handle, CURLoption option, T value) {
  Check(curl_easy_setopt(handle, option, value));
}

std::string HeaderOf(CURL* handle, const char* name) {
  curl_header* header = nullptr;
  // The last answer's, behind redirects.
  if (curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return {};
  return header->value;
}

std::string TagOf(CURL* handle, const char* name) {
  std::string tag = HeaderOf(handle, name);
  return tag.size() <= kMostTagBytes ? tag : std::string();
}

std::string PathOf(CURL* handle) {
  const char* uri = nullptr;
  curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &uri);
  const std::string_view text = uri == nullptr ? "" : uri;
  const size_t host = text.find("://");
  const size_t slash = host == std::string_view::npos ? host : text.find('/', host + 3);
  if (slash == std::string_view::npos) return "/";
  return std::string(text.substr(slash, text.find_first_of("?#", slash) - slash));
}

AnswerHead HeadOf(CURL* handle) {
  AnswerHead head;
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  head.status = static_cast<int>(status);
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (length >= 0) head.content_length = static_cast<uint64_t>(length);
  curl_off_t wait_s = 0;
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &wait_s);
  // Beyond any budget already.
  constexpr curl_off_t kMostSeconds = 604'800;
  if (wait_s > 0) head.retry_after = std::chrono::seconds(std::min(wait_s, kMostSeconds));
  head.content_range = HeaderOf(handle, "Content-Range");
  head.content_type = HeaderOf(handle, "Content-Type");
  head.content_encoding = HeaderOf(handle, "Content-Encoding");
  head.etag = TagOf(handle, "ETag");
  head.last_modified = TagOf(handle, "Last-Modified");
  head.path = PathOf(handle);
  return head;
}

TransferEnd::Kind KindOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return TransferEnd::Kind::kComplete;
    case CURLE_OPERATION_TIMEDOUT:
      return TransferEnd::Kind::kTimeout;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_WRITE_ERROR:
    case CURLE_BAD_CONTENT_ENCODING:
      return TransferEnd::Kind::kBroken;
    case CURLE_OUT_OF_MEMORY:
      return TransferEnd::Kind::kNoMemory;
    default:
      return TransferEnd::Kind::kImpossible;
  }
}

// libcurl's own words for what people meet often are either missing or name its options.
std::string ReasonOf(CURLcode code, const char* details) {
  if (code == CURLE_UNSUPPORTED_PROTOCOL) return "the answer is not HTTP, or leads away from it";
  if (code == CURLE_TOO_MANY_REDIRECTS) return "it redirects in a circle";
  if (code == CURLE_OPERATION_TIMEDOUT) return std::string("no answer in time (") + details + ")";
  return *details != '\0' ? details : curl_easy_strerror(code);
}

// A CR or LF would begin another header.
void CheckHeader(const std::string& header) {
  const bool has_name = header.find(':') != std::string::npos && header.find(':') > 0;
  if (has_name && header.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "not a header",
               .where = "HttpCredentials.headers",
               .wanted = "\"Name: value\" on one line"});
}

void CheckToken(const std::string& token) {
  const auto is_visible = [](char c) { return '!' <= c && c <= '~'; };
  if (std::all_of(token.begin(), token.end(), is_visible)) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "not a token",
               .where = "HttpCredentials.bearer_token",
               .wanted = "visible ASCII characters"});
}

}  // namespace

struct Transfers::Multi {
  Multi() : handle(curl_multi_init()) {
    if (handle == nullptr) throw std::bad_alloc();
  }
  ~Multi() { curl_multi_cleanup(handle); }
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  CURLM* handle;
};

/// A handle of curl's, with what one request needs.
class Transfers::Transfer {
 public:
  explicit Transfer(const HttpOptions& options) : handle_(curl_easy_init()) {
    if (handle_ == nullptr) throw std::bad_alloc();
    try {
      SetOptions(options);
    } catch (...) {
      curl_easy_cleanup(handle_);
      throw;
    }
  }
  ~Transfer() {
    curl_easy_cleanup(handle_);
    curl_slist_free_all(headers_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* handle() const { return handle_; }

  void Prepare(Id id, const TransferRequest& request, TransferReceiver& receiver) {
    id_ = id;
    receiver_ = &receiver;
    head_is_whole_ = false;
    head_is_told_ = false;
    is_out_of_memory_ = false;
    details_[0] = '\0';
    Set(handle_, CURLOPT_URL, request.uri.c_str());
    Set(handle_, CURLOPT_NOBODY, request.head ? 1L : 0L);
    if (!request.head) Set(handle_, CURLOPT_HTTPGET, 1L);
    const std::string& token = request.credentials.bearer_token;
    CheckToken(token);
    Set(handle_, CURLOPT_HTTPAUTH, token.empty() ? CURLAUTH_BASIC : CURLAUTH_BEARER);
    Set(handle_, CURLOPT_XOAUTH2_BEARER, token.empty() ? nullptr : token.c_str());
    SetHeaders(request);
  }

  Id id() const { return id_; }
  TransferReceiver& receiver() const { return *receiver_; }
  const char* details() const { return details_.data(); }
  /// libcurl takes a head that breaks off for a short one.
  bool head_is_whole() const { return head_is_whole_; }

  bool is_out_of_memory() const { return is_out_of_memory_; }

  /// False if there is no memory for it.
  bool TellHead() noexcept {
    try {
      if (!std::exchange(head_is_told_, true)) receiver_->OnHead(HeadOf(handle_));
    } catch (const std::bad_alloc&) {
      is_out_of_memory_ = true;
    }
    return !is_out_of_memory_;
  }

 private:
  void SetOptions(const HttpOptions& options) {
    using std::chrono::duration_cast;
    const auto milliseconds = [](Clock::Duration time) {
      return static_cast<long>(duration_cast<std::chrono::milliseconds>(time).count());
    };
    Set(handle_, CURLOPT_PRIVATE, this);
    Set(handle_, CURLOPT_ERRORBUFFER, details_.data());
    Set(handle_, CURLOPT_NOSIGNAL, 1L);
    Set(handle_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    Set(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
    Set(handle_, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    Set(handle_, CURLOPT_FOLLOWLOCATION, 1L);
    Set(handle_, CURLOPT_MAXREDIRS, kMostRedirects);
    Set(handle_, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options.connect_timeout));
    Set(handle_, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
    Set(handle_, CURLOPT_HEADERDATA, this);
    Set(handle_, CURLOPT_BUFFERSIZE, kReceiveBuffer);
    Set(handle_, CURLOPT_TCP_KEEPALIVE, 1L);
    Set(handle_, CURLOPT_USERAGENT, "echopipe");
    Set(handle_, CURLOPT_WRITEFUNCTION, &Transfer::OnWrite);
    Set(handle_, CURLOPT_WRITEDATA, this);
    // Without a value libcurl would look into the environment.
    Set(handle_, CURLOPT_PROXY, options.proxy.c_str());
    Set(handle_, CURLOPT_NOPROXY, "");
    if (!options.ca_file.empty()) {
      Set(handle_, CURLOPT_CAINFO, options.ca_file.c_str());
      Set(handle_, CURLOPT_CAPATH, nullptr);
    }
    Set(handle_, CURLOPT_SSL_VERIFYPEER, options.verify_tls ? 1L : 0L);
    Set(handle_, CURLOPT_SSL_VERIFYHOST, options.verify_tls ? 2L : 0L);
  }

  void SetHeaders(const TransferRequest& request) {
    Set(handle_, CURLOPT_HTTPHEADER, nullptr);
    curl_slist_free_all(std::exchange(headers_, nullptr));
    const auto add = [&](const std::string& header) {
      CheckHeader(header);
      curl_slist* longer = curl_slist_append(headers_, header.c_str());
      if (longer == nullptr) throw std::bad_alloc();
      headers_ = longer;
    };
    for (const std::string& header : request.credentials.headers) add(header);
    if (!request.if_match.empty()) add("If-Match: " + request.if_match);
    // By libcurl's own option for it the request would go out without it for want of memory.
    if (request.range) {
      add("Range: bytes=" + std::to_string(request.range->first) + "-" +
          std::to_string(request.range->last));
    }
    Set(handle_, CURLOPT_HTTPHEADER, headers_);
  }

  static size_t OnHeader(const char* data, size_t size, size_t count, void* self) {
    const std::string_view line(data, size * count);
    static_cast<Transfer*>(self)->head_is_whole_ = line == "\r\n" || line == "\n";
    return line.size();
  }

  static size_t OnWrite(const char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    if (!transfer.TellHead()) return CURL_WRITEFUNC_ERROR;
    const std::span bytes(reinterpret_cast<const uint8_t*>(data), size * count);
    return transfer.receiver_->OnBody(bytes) ? bytes.size() : CURL_WRITEFUNC_ERROR;
  }

  CURL* handle_;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> details_{};
  Id id_ = 0;
  TransferReceiver* receiver_ = nullptr;
  bool head_is_whole_ = false;
  bool head_is_told_ = false;
  bool is_out_of_memory_ = false;
};

Transfers::Transfers(const HttpOptions& options) : options_(options) {
  InitCurl();
  if (!options.ca_file.empty() && !std::ifstream(options.ca_file)) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "the CA file cannot be read",
                 .where = options.ca_file});
  }
  multi_ = std::make_unique<Multi>();
  curl_multi_setopt(multi_->handle, CURLMOPT_MAXCONNECTS, kMostConnectionsKept);
  curl_multi_setopt(multi_->handle, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

Transfers::~Transfers() {
  for (const auto& [id, transfer] : running_) {
    curl_multi_remove_handle(multi_->handle, transfer->handle());
  }
}

Transfers::Id Transfers::Start(const TransferRequest& request, TransferReceiver& receiver) {
  std::unique_ptr<Transfer> transfer;
  if (idle_.empty()) {
    transfer = std::make_unique<Transfer>(options_);
  } else {
    transfer = std::move(idle_.back());
    idle_.pop_back();
  }
  const Id id = next_++;
  transfer->Prepare(id, request, receiver);
  idle_.reserve(idle_.size() + running_.size() + 1);  // so that its end needs no memory
  Transfer& started = *(running_[id] = std::move(transfer));
  if (curl_multi_add_handle(multi_->handle, started.handle()) != CURLM_OK) {
    running_.erase(id);
    throw std::bad_alloc();
  }
  return id;
}

void Transfers::Abort(Id id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  curl_multi_remove_handle(multi_->handle, found->second->handle());
  idle_.push_back(std::move(found->second));
  running_.erase(found);
}

void Transfers::Poll(Clock::Duration timeout) {
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  curl_multi_poll(multi_->handle, nullptr, 0, static_cast<int>(wait), nullptr);
  int running = 0;
  curl_multi_perform(multi_->handle, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_->handle, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    Finish(*transfer, message->data.result);
  }
}

void Transfers::Finish(Transfer& transfer, int code) {
  const auto reason = static_cast<CURLcode>(code);
  TransferEnd end{.kind = KindOf(reason)};
  if (reason == CURLE_OK && transfer.head_is_whole()) {
    transfer.TellHead();
  } else if (reason == CURLE_OK) {
    end = {.kind = TransferEnd::Kind::kBroken, .why = "the answer breaks off in its head"};
  } else {
    end.why = ReasonOf(reason, transfer.details());
  }
  if (transfer.is_out_of_memory()) end.kind = TransferEnd::Kind::kNoMemory;
  TransferReceiver& receiver = transfer.receiver();
  Abort(transfer.id());
  receiver.OnEnd(end);
}

void Transfers::Wake() { curl_multi_wakeup(multi_->handle); }

}  // namespace echopipe::internal
