#pragma once

#include <string>

#include <echopipe/tests/support/files.h>

namespace echopipe::testing {

/// A certificate and its key, as files.
struct Certificate {
  std::string chain_file = {};
  std::string key_file = {};
};

/// An authority that lives as long as a test and signs what the test needs. It runs the program
/// `openssl`.
class CertificateAuthority {
 public:
  enum class Fault { kNone, kExpired, kOtherHost };

  CertificateAuthority();

  /// What clients are to trust.
  std::string ca_file() const { return folder_.Path("ca.pem"); }
  /// For 127.0.0.1 and localhost, or with what is wrong with it.
  Certificate Issue(Fault fault = Fault::kNone) const;

 private:
  void Run(std::vector<std::string> arguments) const;

  TempFolder folder_;
};

}  // namespace echopipe::testing
