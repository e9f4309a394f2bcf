#include <memory>
#include <string>

#include <curl/curl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/nginx_server.h>
#include <echopipe/tests/support/plain_client.h>
#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NginxServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
    folder_.Write("a", "0123456789");
    folder_.Write("b/c", "");
  }

  NginxServer::Options Options() const { return {.root = folder_.path()}; }

  TempFolder folder_;
};

auto Accessed(const std::string& method, const std::string& uri, const std::string& range,
              int status) {
  return AllOf(Field("method", &AccessedRequest::method, method),
               Field("uri", &AccessedRequest::uri, uri),
               Field("range", &AccessedRequest::range, range),
               Field("status", &AccessedRequest::status, status));
}

TEST_F(NginxServerTest, AFolderIsServedByRange) {
  NginxServer server(Options());
  PlainClient client(server.port());
  EXPECT_EQ(client.Get("/a").body, "0123456789");
  const PlainAnswer part = client.Get("/a", "Range: bytes=2-4\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_THAT(part.Header("etag"), Not(IsEmpty()));
  EXPECT_EQ(client.Get("/missing").status, 404);
}

TEST_F(NginxServerTest, RequestsAreToldAsSoonAsTheyAreAnswered) {
  NginxServer server(Options());
  EXPECT_THAT(server.Requests(), IsEmpty());
  PlainClient client(server.port());
  for (int i = 0; i < 100; ++i) {
    client.Get("/a");
    ASSERT_EQ(server.Requests().size(), i + 1u);
  }
}

TEST_F(NginxServerTest, RequestsAreToldAsTheyWereSent) {
  NginxServer server(Options());
  PlainClient client(server.port());
  client.Head("/a?x");
  client.Get("/%61", "Range: bytes=0-1, 3-4\r\n");
  PlainClient(server.port()).Get("/missing\"");
  const std::vector<AccessedRequest> requests = server.Requests();
  ASSERT_THAT(requests, ElementsAre(Accessed("HEAD", "/a?x", "", 200),
                                    Accessed("GET", "/%61", "bytes=0-1, 3-4", 206),
                                    Accessed("GET", "/missing\\x22", "", 404)));
  EXPECT_EQ(requests[0].body_bytes_sent, 0u);
  EXPECT_GT(requests[1].body_bytes_sent, 4u);
  EXPECT_EQ(requests[0].connection, requests[1].connection);
  EXPECT_NE(requests[0].connection, requests[2].connection);
}

TEST_F(NginxServerTest, FoldersAreListedAsAsked) {
  NginxServer::Options options = Options();
  EXPECT_THAT(PlainClient(NginxServer(options).port()).Get("/").body,
              HasSubstr("<a href=\"b/\">b/</a>"));
  options.listing = NginxServer::Listing::kJson;
  EXPECT_THAT(PlainClient(NginxServer(options).port()).Get("/").body,
              HasSubstr("\"name\":\"b\", \"type\":\"directory\""));
  options.listing = NginxServer::Listing::kOff;
  EXPECT_EQ(PlainClient(NginxServer(options).port()).Get("/").status, 403);
}

TEST_F(NginxServerTest, ETagsAndRangesCanBeLeftOut) {
  NginxServer::Options options = Options();
  options.etags = false;
  options.ranges = false;
  NginxServer server(options);
  const PlainAnswer answer = PlainClient(server.port()).Get("/a", "Range: bytes=2-4\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "0123456789");
  EXPECT_EQ(answer.Header("etag"), "");
}

TEST_F(NginxServerTest, AStoppedServerRefusesAndStillTellsItsRequests) {
  NginxServer server(Options());
  PlainClient client(server.port());
  client.Get("/a");
  server.Stop();
  EXPECT_FALSE(PlainClient(server.port()).connected());
  EXPECT_EQ(client.reader().ReadToEnd(), "");
  EXPECT_EQ(server.Requests().size(), 1u);
}

TEST_F(NginxServerTest, TwoServersHaveTwoPorts) {
  NginxServer one(Options());
  NginxServer other(Options());
  EXPECT_NE(one.port(), other.port());
}

// What libcurl says to a server of this kind.
CURLcode Ask(const std::string& url, const std::string& ca_file) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOBODY, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  if (!ca_file.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, ca_file.c_str());
  return curl_easy_perform(curl.get());
}

class NginxTlsTest : public NginxServerTest {
 protected:
  void SetUp() override {
    NginxServerTest::SetUp();
    if (FindProgram("openssl").empty()) GTEST_SKIP() << "skipped: needs openssl";
  }

  NginxServer::Options Options(NginxServer::Tls tls) const {
    return {.root = folder_.path(), .tls = tls};
  }
};

TEST_F(NginxTlsTest, AGoodCertificateIsTrustedByItsAuthorityAlone) {
  NginxServer server(Options(NginxServer::Tls::kOn));
  EXPECT_THAT(server.url(), HasSubstr("https://127.0.0.1:"));
  EXPECT_EQ(Ask(server.url() + "/a", server.ca_file()), CURLE_OK);
  EXPECT_EQ(Ask("https://localhost:" + std::to_string(server.port()), server.ca_file()), CURLE_OK);
  EXPECT_EQ(Ask(server.url() + "/a", ""), CURLE_PEER_FAILED_VERIFICATION);
}

TEST_F(NginxTlsTest, AnExpiredCertificateIsRefused) {
  NginxServer server(Options(NginxServer::Tls::kExpired));
  EXPECT_EQ(Ask(server.url() + "/a", server.ca_file()), CURLE_PEER_FAILED_VERIFICATION);
  EXPECT_THAT(server.Requests(), IsEmpty());
}

TEST_F(NginxTlsTest, ACertificateOfAnotherHostIsRefused) {
  NginxServer server(Options(NginxServer::Tls::kOtherHost));
  EXPECT_EQ(Ask(server.url() + "/a", server.ca_file()), CURLE_PEER_FAILED_VERIFICATION);
  EXPECT_THAT(server.Requests(), IsEmpty());
}

}  // namespace
}  // namespace echopipe::testing
