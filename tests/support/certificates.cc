#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <echopipe/tests/support/certificates.h>
#include <echopipe/tests/support/child_process.h>

namespace echopipe::testing {
namespace {

// Nothing is taken from the machine's own settings. FOLDER is replaced.
constexpr std::string_view kConfig = R"(
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
subjectAltName = IP:127.0.0.1, DNS:localhost
[other_server]
subjectAltName = DNS:other.example
[ca]
default_ca = this_ca
[this_ca]
database = FOLDER/issued
new_certs_dir = FOLDER
certificate = FOLDER/ca.pem
private_key = FOLDER/ca.key
default_md = sha256
rand_serial = yes
unique_subject = no
policy = any
[any]
commonName = supplied
)";

std::string ConfigIn(const std::string& folder) {
  constexpr std::string_view kPlace = "FOLDER";
  std::string config(kConfig);
  for (size_t at = config.find(kPlace); at != std::string::npos; at = config.find(kPlace))
    config.replace(at, kPlace.size(), folder);
  return config;
}

}  // namespace

CertificateAuthority::CertificateAuthority() {
  folder_.Write("config", ConfigIn(folder_.path().string()));
  folder_.Write("issued", "");
  Run({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
       "-config", folder_.Path("config"), "-extensions", "authority", "-subj",
       "/CN=echopipe test authority", "-days", "2", "-keyout", folder_.Path("ca.key"), "-out",
       ca_file()});
}

Certificate CertificateAuthority::Issue(Fault fault) const {
  const Certificate certificate{.chain_file = folder_.Path("server.pem"),
                                .key_file = folder_.Path("server.key")};
  Run({"req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
       "-config", folder_.Path("config"), "-subj", "/CN=echopipe test server", "-keyout",
       certificate.key_file, "-out", folder_.Path("request")});
  std::vector<std::string> sign = {"ca",
                                   "-batch",
                                   "-notext",
                                   "-config",
                                   folder_.Path("config"),
                                   "-in",
                                   folder_.Path("request"),
                                   "-out",
                                   certificate.chain_file,
                                   "-extensions",
                                   fault == Fault::kOtherHost ? "other_server" : "server"};
  const std::vector<std::string> time =
      fault == Fault::kExpired
          ? std::vector<std::string>{"-startdate", "20200101000000Z", "-enddate", "20200102000000Z"}
          : std::vector<std::string>{"-days", "2"};
  sign.insert(sign.end(), time.begin(), time.end());
  Run(std::move(sign));
  return certificate;
}

void CertificateAuthority::Run(std::vector<std::string> arguments) const {
  ChildProcess::Options options{.words = std::move(arguments), .output = folder_.Path("log")};
  options.words.insert(options.words.begin(), FindProgram("openssl"));
  // It keeps its random numbers' seed there.
  options.environment = {"HOME=" + folder_.path().string()};
  EXPECT_EQ(ChildProcess(options).Wait(), 0) << ReadFile(folder_.Path("log"));
}

}  // namespace echopipe::testing
