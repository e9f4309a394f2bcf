#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <echopipe/tests/cli/program.h>
#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/nginx_server.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A shard of twenty samples whose images are text: nothing here decodes.
std::string Shard() {
  TarBuilder tar;
  for (int i = 0; i < 20; ++i) {
    tar.AddFile(std::to_string(i) + ".jpg", "image " + std::to_string(i));
    tar.AddFile(std::to_string(i) + ".cls", std::to_string(i));
  }
  return tar.AddEnd().bytes();
}

ProgramRun RunFrom(const std::string& source, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"run", "--source", source, "--batch", "8"});
  return RunProgram(flags);
}

class HttpFlagsTest : public ::testing::Test {
 protected:
  HttpFlagsTest() { server_.Put("/s.tar", Shard()); }

  std::string uri() const { return server_.url() + "/s.tar"; }

  FaultServer server_;
  TempFolder folder_;
};

TEST_F(HttpFlagsTest, AServerGivesWhatAFileGivesAndTheNetworkIsToldOf) {
  const ProgramRun local = RunFrom(folder_.Write("s.tar", Shard()), {"-q", "--hash"});
  server_.OnRequest(1, Status(503));
  const ProgramRun remote = RunFrom(uri(), {"--hash", "--json"});
  ASSERT_EQ(remote.exit_code, 0) << remote.err;
  EXPECT_THAT(remote.out, HasSubstr(local.out));
  EXPECT_THAT(remote.out,
              AllOf(HasSubstr("network"), HasSubstr("requests"), HasSubstr("sent again"),
                    HasSubstr("throttled"), HasSubstr("The network gave ")));
  const json figures = json::parse(remote.out.substr(remote.out.find("{\"examples\"")));
  EXPECT_EQ(figures.at("network").at("retries"), 1);
  EXPECT_EQ(figures.at("network").at("requests"), server_.requests().size());
  EXPECT_GT(figures.at("network").at("bytes_per_s"), 0);
  EXPECT_THAT(figures.at("verdict").get<std::string>(), HasSubstr("1 of 3 were sent again"));
  EXPECT_THAT(RunFrom(folder_.Path("s.tar"), {}).out, Not(HasSubstr("network")));
}

TEST_F(HttpFlagsTest, HeadersAndTokenGoAlong) {
  const std::string token = folder_.Write("token", "abc\n");
  const ProgramRun run = RunFrom(uri(), {"-q", "--http-header", "X-A: 1", "--http-header", "X-B: 2",
                                         "--http-token-file", token});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const SeenRequest& request : server_.requests()) {
    EXPECT_EQ(request.Header("x-a"), "1");
    EXPECT_EQ(request.Header("x-b"), "2");
    EXPECT_EQ(request.Header("authorization"), "Bearer abc");
  }
}

TEST_F(HttpFlagsTest, ATokenOfTwoLinesIsRefusedAndNeverSent) {
  const std::string token = folder_.Write("token", "a\nX-Evil: b\n");
  const ProgramRun run = RunFrom(uri(), {"-q", "--http-token-file", token});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("not a token"));
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(HttpFlagsTest, AProxyIsUsed) {
  const ProgramRun run = RunFrom("http://far.invalid/s.tar", {"-q", "--http-proxy", server_.url()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(server_.requests().empty());
}

TEST_F(HttpFlagsTest, ADeadServerEndsTheRunWithWhatWasTried) {
  server_.OnPath("/s.tar", Status(500));
  const ProgramRun run = RunFrom(uri(), {"-q", "--http-retry", "200ms"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr(uri()), HasSubstr("HTTP status 500; given up after")));
}

TEST_F(HttpFlagsTest, WhatCannotBeMeantIsToldByItsFlag) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--http-token-file", folder_.Path("none")},
                                             {"--http-ca", folder_.Path("none")},
                                             {"--http-retry", "soon"},
                                             {"--http-requests", "0"}}) {
    const ProgramRun run = RunFrom(uri(), flags);
    EXPECT_EQ(run.exit_code, 2) << flags[0];
    EXPECT_THAT(run.err, HasSubstr(flags[0] == "--http-ca" ? flags[1] : flags[0]));
  }
  const ProgramRun run = RunFrom(uri(), {"--http-header", "nonsense"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("not a header"));
}

TEST_F(HttpFlagsTest, ACertificateIsTakenFromTheFileNamed) {
  if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
  folder_.Write("s.tar", Shard());
  const NginxServer server({.root = folder_.path(), .tls = NginxServer::Tls::kOn});
  EXPECT_EQ(RunFrom(server.url() + "/s.tar", {"-q", "--http-ca", server.ca_file()}).exit_code, 0);
  EXPECT_THAT(RunFrom(server.url() + "/s.tar", {"-q"}).err, HasSubstr("certificate"));
}

}  // namespace
}  // namespace echopipe::testing
