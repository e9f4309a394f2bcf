#include <chrono>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include <echopipe/tests/support/nginx_server.h>
#include <echopipe/tests/support/plain_client.h>
#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {
namespace {

constexpr std::chrono::seconds kStartLimit{20};
constexpr std::chrono::milliseconds kTick{2};

// With one worker, answers and their log lines come in one order. Only root may name a user:
// without one its workers could not read a test's folders.
std::string MainConfig(const TempFolder& folder) {
  std::string config = "daemon off;\nworker_processes 1;\npid \"" + folder.Path("pid") + "\";\n";
  if (geteuid() == 0) config += "user root;\n";
  return config + "events { worker_connections 1024; }\n";
}

std::string HttpConfig(const TempFolder& folder) {
  std::string config;
  for (const char* module : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
    config += std::string(module) + "_temp_path \"" + folder.Path(module) + "\";\n";
  return config +
         "log_format fields '$request_method\\t$request_uri\\t$http_range\\t$status\\t"
         "$body_bytes_sent\\t$connection';\n"
         "access_log \"" +
         folder.Path("access") +
         "\" fields;\n"
         "types { }\ndefault_type application/octet-stream;\n"
         "server { listen \"unix:" +
         folder.Path("control") +
         "\"; access_log off; "
         "location / { return 204; } }\n";
}

std::string ListingConfig(NginxServer::Listing listing) {
  if (listing == NginxServer::Listing::kOff) return "autoindex off;\n";
  return std::string("autoindex on;\nautoindex_format ") +
         (listing == NginxServer::Listing::kJson ? "json;\n" : "html;\n");
}

CertificateAuthority::Fault CertificateFault(NginxServer::Tls tls) {
  switch (tls) {
    case NginxServer::Tls::kExpired:
      return CertificateAuthority::Fault::kExpired;
    case NginxServer::Tls::kOtherHost:
      return CertificateAuthority::Fault::kOtherHost;
    default:
      return CertificateAuthority::Fault::kNone;
  }
}

std::optional<AccessedRequest> ParseLine(const std::string& line) {
  std::istringstream fields(line);
  AccessedRequest request;
  std::string numbers;
  std::getline(fields, request.method, '\t');
  std::getline(fields, request.uri, '\t');
  std::getline(fields, request.range, '\t');
  if (!(fields >> request.status >> request.body_bytes_sent >> request.connection))
    return std::nullopt;
  if (request.range == "-") request.range.clear();
  return request;
}

}  // namespace

std::string NginxProgram() { return FindProgram("nginx"); }

NginxServer::NginxServer(const Options& options) : tls_(options.tls) {
  if (tls_ != Tls::kOff) authority_.emplace();
  Start(options);
  const auto limit = std::chrono::steady_clock::now() + kStartLimit;
  while (process_->Running() && std::chrono::steady_clock::now() < limit && !Answers())
    std::this_thread::sleep_for(kTick);
  if (!Answers()) ADD_FAILURE() << "nginx does not start: " << ReadFile(folder_.Path("errors"));
}

// nginx takes over a socket that listens already, as it does from its predecessor when it is
// upgraded: so the port cannot be lost to anybody in between.
void NginxServer::Start(const Options& options) {
  const Socket listener = ListenOnLoopback();
  port_ = PortOf(listener);
  const std::string config = folder_.Write("config", Config(options));
  const std::string errors = folder_.Path("errors");
  process_ = std::make_unique<ChildProcess>(ChildProcess::Options{
      .words = {NginxProgram(), "-p", folder_.path().string(), "-c", config, "-e", errors},
      .environment = {"NGINX=" + std::to_string(listener.fd()) + ";"},
      .output = errors,
      .inherited_fd = listener.fd()});
}

std::string NginxServer::Config(const Options& options) const {
  return MainConfig(folder_) + "http {\n" + HttpConfig(folder_) +
         "server {\nlisten 127.0.0.1:" + std::to_string(port_) +
         (tls_ == Tls::kOff ? ";\n" : " ssl;\n") + TlsConfig(tls_) + "root \"" +
         options.root.string() + "\";\n" + ListingConfig(options.listing) +
         (options.etags ? "" : "etag off;\n") + (options.ranges ? "" : "max_ranges 0;\n") +
         "}\n}\n";
}

std::string NginxServer::TlsConfig(Tls tls) const {
  if (tls == Tls::kOff) return {};
  const Certificate certificate = authority_->Issue(CertificateFault(tls));
  return "ssl_certificate \"" + certificate.chain_file + "\";\nssl_certificate_key \"" +
         certificate.key_file + "\";\n";
}

bool NginxServer::Answers() const {
  PlainClient client(ConnectToPath(folder_.Path("control")));
  return client.connected() && client.Get("/").status == 204;
}

std::string NginxServer::url() const {
  return (tls_ == Tls::kOff ? "http" : "https") + ("://127.0.0.1:" + std::to_string(port_));
}

std::string NginxServer::ca_file() const { return authority_ ? authority_->ca_file() : ""; }

std::vector<AccessedRequest> NginxServer::Requests() const {
  if (process_->Running() && !Answers())
    ADD_FAILURE() << "nginx does not answer: " << ReadFile(folder_.Path("errors"));
  std::istringstream lines(ReadFile(folder_.Path("access")));
  std::vector<AccessedRequest> requests;
  for (std::string line; std::getline(lines, line);) {
    const std::optional<AccessedRequest> request = ParseLine(line);
    if (request) requests.push_back(*request);
    EXPECT_TRUE(request) << line;
  }
  return requests;
}

void NginxServer::Stop() { process_->Stop(); }

}  // namespace echopipe::testing
