#include <fstream>

#include <echopipe/base/error.h>
#include <echopipe/cli/count_flag.h>
#include <echopipe/cli/http_flags.h>
#include <echopipe/cli/units.h>

namespace echopipe::cli {
namespace {

constexpr std::streamsize kMostTokenBytes = 16 << 10;

// "" if it cannot be read.
std::string ReadToken(const std::string& path) {
  std::string token(kMostTokenBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  file.read(token.data(), kMostTokenBytes);
  token.resize(static_cast<size_t>(file.gcount()));
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  return token;
}

}  // namespace

HttpFlags::HttpFlags(CLI::App& command) {
  const auto add = [&](const char* flag, auto& value, const char* type, const char* help) {
    command.add_option(flag, value, help)
        ->type_name(type)
        ->group("Servers, for http:// and https:// sources");
  };
  add("--http-ca", options_.ca_file, "FILE",
      "Certificates (PEM) to trust in the place of the system's.");
  add("--http-proxy", options_.proxy, "URL", "Example: --http-proxy http://proxy:3128");
  add("--http-header", headers_, "TEXT",
      "Goes along with each request; may be repeated.\nExample: --http-header 'X-Project: vision'");
  add("--http-token-file", token_file_, "FILE",
      "Holds a bearer token; read anew for each request.");
  command
      .add_option_function<std::string>(
          "--http-retry",
          [this](const std::string& text) {
            options_.retry.budget = ParseDuration("--http-retry", text);
          },
          "How long a server may fail before the run does.")
      ->type_name("TIME")
      ->default_str("60s")
      ->group("Servers, for http:// and https:// sources");
  AddCountFlag(command, "--http-requests", options_.most_requests, {1, 1024},
               "Requests to one server at once.")
      ->default_str(std::to_string(options_.most_requests))
      ->group("Servers, for http:// and https:// sources");
}

HttpOptions HttpFlags::options() const {
  if (!token_file_.empty() && ReadToken(token_file_).empty()) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "it cannot be read or is empty",
                 .where = "--http-token-file " + token_file_});
  }
  HttpOptions options = options_;
  if (headers_.empty() && token_file_.empty()) return options;
  options.credentials = [headers = headers_, file = token_file_](const std::string&) {
    return HttpCredentials{.bearer_token = file.empty() ? "" : ReadToken(file), .headers = headers};
  };
  return options;
}

}  // namespace echopipe::cli
