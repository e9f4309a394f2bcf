#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/tests/support/certificates.h>
#include <echopipe/tests/support/child_process.h>
#include <echopipe/tests/support/files.h>

namespace echopipe::testing {

/// nginx's full path, or "" where it is missing: then skip with kNoNginx.
std::string NginxProgram();
inline constexpr std::string_view kNoNginx = "skipped: needs nginx (Debian's nginx-light)";

/// A line of nginx's access log.
struct AccessedRequest {
  std::string method;
  std::string uri;    ///< as sent
  std::string range;  ///< the header, "" without one
  int status = 0;
  uint64_t body_bytes_sent = 0;
  uint64_t connection = 0;  ///< the same number: the same connection
};

/// nginx, serving a folder on a port of 127.0.0.1.
///
/// Precondition: NginxProgram() is there. It ends with the thread that made it.
class NginxServer {
 public:
  enum class Listing { kOff, kHtml, kJson };
  enum class Tls { kOff, kOn, kExpired, kOtherHost };
  struct Options {
    std::filesystem::path root;
    Listing listing = Listing::kHtml;
    Tls tls = Tls::kOff;
    bool etags = true;
    bool ranges = true;
  };

  /// Returns when it serves. Fails the test if it does not.
  explicit NginxServer(const Options& options);

  uint16_t port() const { return port_; }
  std::string url() const;
  /// The authority behind its certificate; "" without TLS.
  std::string ca_file() const;

  /// Every request whose answer has ended, in order of that.
  std::vector<AccessedRequest> Requests() const;
  /// From now on connections are refused, and those there are have been cut.
  void Stop();

 private:
  void Start(const Options& options);
  std::string Config(const Options& options) const;
  std::string TlsConfig(Tls tls) const;
  // Asks it by its own socket, which is not logged. By its answer it has logged what it had done.
  bool Answers() const;

  TempFolder folder_;
  uint16_t port_ = 0;
  Tls tls_ = Tls::kOff;
  std::optional<CertificateAuthority> authority_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace echopipe::testing
