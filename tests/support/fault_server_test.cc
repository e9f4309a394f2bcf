#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/plain_client.h>
#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using End = Socket::End;

const std::string kDigits = "0123456789";

class FaultServerTest : public ::testing::Test {
 protected:
  FaultServerTest() { server_->Put("/a", kDigits); }

  // The server, until a test ends it.
  std::unique_ptr<FaultServer> server_ = std::make_unique<FaultServer>();
  PlainClient client_{server_->port()};
};

TEST_F(FaultServerTest, OneConnectionServesManyRequests) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_.Get("/a").body, kDigits);
  EXPECT_EQ(client_.Head("/a").Header("content-length"), "10");
  EXPECT_EQ(client_.Get("/a", "Range: bytes=2-4\r\n").body, "234");
  EXPECT_EQ(client_.Get("/missing").status, 404);
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(FaultServerTest, AnObjectPutAgainIsAnotherVersion) {
  const std::string etag = server_->ETag("/a");
  const PlainAnswer before = client_.Get("/a");
  EXPECT_EQ(before.Header("etag"), etag);
  server_->Put("/a", "new", "text/html");
  const PlainAnswer after = client_.Get("/a");
  EXPECT_EQ(after.body, "new");
  EXPECT_EQ(after.Header("content-type"), "text/html");
  EXPECT_NE(after.Header("etag"), etag);
  EXPECT_NE(after.Header("last-modified"), before.Header("last-modified"));
  EXPECT_EQ(client_.Get("/a", "If-Match: " + etag + "\r\n").status, 412);
  EXPECT_EQ(client_.Get("/a", "If-Match: " + server_->ETag("/a") + "\r\n").status, 200);
  server_->Remove("/a");
  EXPECT_EQ(client_.Get("/a").status, 404);
}

TEST_F(FaultServerTest, ASparseObjectIsServedAtAnyPlace) {
  constexpr uint64_t kSize = uint64_t{50} << 30;
  server_->PutSparse("/big", kSize);
  EXPECT_EQ(client_.Head("/big").Header("content-length"), std::to_string(kSize));
  EXPECT_EQ(client_.Get("/big", "Range: bytes=-100000\r\n").body,
            SparseBytes(kSize - 100'000, 100'000));
}

TEST_F(FaultServerTest, RequestsAreSeenAsTheyWereSent) {
  server_->Put("/a b", "x");
  client_.Head("/a%20b?c=%20d%", "Range: bytes=0-0\r\nX-Y:  z \r\n");
  client_.Get("/a%2");
  PlainClient(server_->port()).Get("/a");
  server_->WaitForAnswers(3);
  const std::vector<SeenRequest> seen = server_->requests();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].method, "HEAD");
  EXPECT_EQ(seen[0].target, "/a%20b?c=%20d%");
  EXPECT_EQ(seen[0].path, "/a b");
  EXPECT_EQ(seen[0].query, "c=%20d%");
  EXPECT_EQ(seen[0].range(), "bytes=0-0");
  EXPECT_THAT(seen[0].headers,
              ElementsAre(Pair("host", "localhost"), Pair("range", "bytes=0-0"), Pair("x-y", "z")));
  EXPECT_EQ(seen[0].status, 206);
  EXPECT_EQ(seen[0].body_bytes_sent, 0u);
  EXPECT_EQ(seen[1].path, "/a%2");
  EXPECT_EQ(seen[1].status, 404);
  EXPECT_EQ(seen[1].range(), "");
  EXPECT_EQ(seen[2].body_bytes_sent, 10u);
  EXPECT_EQ(seen[0].connection, 0u);
  EXPECT_EQ(seen[1].connection, 0u);
  EXPECT_EQ(seen[2].connection, 1u);
}

TEST_F(FaultServerTest, WhatIsNoRequestIsToldSo) {
  client_.socket().Send("hello\r\n\r\n");
  EXPECT_EQ(client_.Receive().status, 400);
  EXPECT_EQ(client_.reader().ReadToEnd(), "");
  EXPECT_THAT(server_->requests(), IsEmpty());
}

TEST_F(FaultServerTest, AsAProxyItAnswersForAnyHost) {
  EXPECT_EQ(client_.Get("http://example.org/a").body, kDigits);
  client_.Get("http://example.org?x");
  EXPECT_EQ(server_->requests()[0].target, "http://example.org/a");
  EXPECT_EQ(server_->requests()[0].path, "/a");
  EXPECT_EQ(server_->requests()[1].path, "/");
}

TEST_F(FaultServerTest, AsAProxyItTunnelsToAPortOfThisMachine) {
  FaultServer other;
  other.Put("/b", "behind");
  client_.Send("CONNECT", "127.0.0.1:" + std::to_string(other.port()));
  EXPECT_EQ(client_.reader().ReadHead()->first_line, "HTTP/1.1 200 Connection established");
  EXPECT_EQ(client_.Get("/b").body, "behind");
  EXPECT_EQ(client_.Get("/b").body, "behind");
  EXPECT_EQ(other.connections(), 1u);
  EXPECT_EQ(server_->requests().size(), 1u);
  EXPECT_EQ(server_->requests()[0].method, "CONNECT");
}

TEST_F(FaultServerTest, ATunnelThatLeadsNowhereOrIsForbiddenIsAStatus) {
  const Socket closed = BindToLoopback();
  const std::string target = "127.0.0.1:" + std::to_string(PortOf(closed));
  client_.Send("CONNECT", target);
  EXPECT_EQ(client_.Receive().status, 502);
  server_->OnRequest(1, Status(407));
  client_.Send("CONNECT", target);
  EXPECT_EQ(client_.Receive().status, 407);
}

// Which fault.

TEST_F(FaultServerTest, ANumberedRequestHasItsFault) {
  server_->OnRequest(1, Status(503, "2"));
  EXPECT_EQ(client_.Get("/a").status, 200);
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Header("retry-after"), "2");
  EXPECT_EQ(client_.Get("/a").status, 200);
}

TEST_F(FaultServerTest, APathsFaultsComeInTurn) {
  server_->OnPath("/a", Status(500), 2);
  server_->OnPath("/a", Status(429), 1);
  for (const int status : {500, 500, 429, 200}) EXPECT_EQ(client_.Get("/a").status, status);
  server_->OnPath("/a", Status(404));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client_.Get("/a").status, 404);
  EXPECT_EQ(client_.Get("/").status, 404);
}

TEST_F(FaultServerTest, ACallbackDecidesWhereNoScriptDoes) {
  server_->Decide([this](const SeenRequest& request) {
    server_->Put("/a", "from the callback");
    return request.range().empty() ? Fault() : Status(403);
  });
  server_->OnRequest(0, Status(500));
  server_->OnPath("/a", Status(501), 2);
  for (const int status : {500, 501, 501, 200}) EXPECT_EQ(client_.Get("/a").status, status);
  EXPECT_EQ(client_.Get("/a").body, "from the callback");
  EXPECT_EQ(client_.Get("/a", "Range: bytes=0-0\r\n").status, 403);
}

// What is wrong with an answer's headers is in fault_answer_test.cc.

TEST_F(FaultServerTest, AStatusDoesNotEndTheConnection) {
  server_->OnRequest(0, Status(503));
  EXPECT_TRUE(client_.Get("/a").complete);
  EXPECT_EQ(client_.Get("/a").body, kDigits);
}

TEST_F(FaultServerTest, ARedirectLoopNeverArrives) {
  server_->OnPath("/a", Redirect("/b"));
  server_->OnPath("/b", Redirect("/a"));
  std::string target = "/a";
  for (int i = 0; i < 4; ++i) {
    const PlainAnswer answer = client_.Get(target);
    EXPECT_EQ(answer.status, 302);
    EXPECT_NE(answer.Header("location"), target);
    target = answer.Header("location");
  }
  EXPECT_EQ(target, "/a");
}

TEST_F(FaultServerTest, AConnectionCanBeClosedBeforeAnAnswer) {
  server_->OnRequest(0, {.stop = CloseInHead()});
  client_.Send("GET", "/a");
  EXPECT_EQ(client_.reader().ReadToEnd(), "");
  EXPECT_EQ(client_.reader().end(), End::kClosed);
}

TEST_F(FaultServerTest, AConnectionCanBeResetBeforeAnAnswer) {
  server_->OnRequest(0, {.stop = ResetInHead()});
  client_.Send("GET", "/a");
  EXPECT_EQ(client_.reader().ReadToEnd(), "");
  EXPECT_EQ(client_.reader().end(), End::kReset);
}

TEST_F(FaultServerTest, AConnectionCanBeClosedInTheHead) {
  server_->OnRequest(0, {.stop = CloseInHead(12)});
  client_.Send("GET", "/a");
  EXPECT_EQ(client_.reader().ReadToEnd(), "HTTP/1.1 200");
  EXPECT_EQ(client_.reader().end(), End::kClosed);
}

TEST_F(FaultServerTest, AConnectionCanBeClosedInTheBody) {
  server_->OnRequest(0, {.stop = CloseInBody(4)});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.Header("content-length"), "10");
  EXPECT_EQ(answer.body, "0123");
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(client_.reader().end(), End::kClosed);
  EXPECT_EQ(server_->requests()[0].body_bytes_sent, 4u);
}

TEST_F(FaultServerTest, AConnectionCanBeResetInTheBody) {
  server_->OnRequest(0, {.stop = ResetInBody(4)});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.body, "0123");
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(client_.reader().end(), End::kReset);
}

TEST_F(FaultServerTest, AConnectionCanBeClosedInChunks) {
  server_->OnRequest(0, {.length = Fault::Length::kChunked, .stop = CloseInBody(4)});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.body, "0123");
  EXPECT_FALSE(answer.complete);
}

TEST_F(FaultServerTest, AConnectionCanTurnOutStale) {
  server_->OnRequest(0, {.stop = CloseAfterBody()});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.Header("connection"), "");
  EXPECT_EQ(client_.Get("/a").status, 0);
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(FaultServerTest, AStallBeforeAnAnswerLastsUntilResume) {
  server_->OnRequest(0, {.stop = StallInHead()});
  client_.Send("GET", "/a");
  server_->WaitForStalled(1);
  EXPECT_FALSE(client_.reader().HasMore());
  server_->Resume();
  EXPECT_EQ(client_.Receive().body, kDigits);
}

TEST_F(FaultServerTest, AStallInTheBodyLastsUntilResume) {
  server_->OnRequest(0, {.stop = StallInBody(4)});
  client_.Send("GET", "/a");
  server_->WaitForStalled(1);
  EXPECT_EQ(client_.reader().ReadHead()->first_line, "HTTP/1.1 200 OK");
  EXPECT_EQ(client_.reader().Read(4), "0123");
  EXPECT_FALSE(client_.reader().HasMore());
  EXPECT_FALSE(server_->requests()[0].answered);
  server_->Resume();
  EXPECT_EQ(client_.reader().Read(6), "456789");
  EXPECT_EQ(client_.Get("/a").body, kDigits);
}

TEST_F(FaultServerTest, ResumeIsForThoseStalledNow) {
  server_->OnPath("/a", {.stop = StallInBody(4)});
  server_->Resume();
  client_.Send("GET", "/a");
  server_->WaitForStalled(1);
  server_->Resume();
  EXPECT_EQ(client_.Receive().body, kDigits);
  client_.Send("GET", "/a");
  server_->WaitForStalled(1);
  client_.reader().ReadHead();
  client_.reader().Read(4);
  EXPECT_FALSE(client_.reader().HasMore());
}

TEST_F(FaultServerTest, AStallEndsWhenTheClientLeaves) {
  server_->OnRequest(0, {.stop = StallInBody(4)});
  {
    PlainClient client(server_->port());
    client.Send("GET", "/a");
    client.reader().ReadHead();
    client.reader().Read(4);  // else its leaving would be a reset
    server_->WaitForStalled(1);
  }
  server_->WaitForOpenConnections(1);
  EXPECT_TRUE(server_->requests()[0].answered);
}

TEST_F(FaultServerTest, ASlowBodyComesPieceByPiece) {
  server_->OnRequest(0, {.pace = {.bytes = 3, .tick = std::chrono::hours(1)}});
  client_.Send("GET", "/a");
  client_.reader().ReadHead();
  EXPECT_EQ(client_.reader().Read(3), "012");
  server_.reset();
  EXPECT_EQ(client_.reader().ReadToEnd(), "");
}

TEST_F(FaultServerTest, ASlowBodyComesWhole) {
  server_->OnRequest(0, {.pace = {.bytes = 3, .tick = std::chrono::nanoseconds(1)}});
  EXPECT_EQ(client_.Get("/a").body, kDigits);
  server_->OnRequest(1, {.length = Fault::Length::kChunked,
                         .pace = {.bytes = 3, .tick = std::chrono::nanoseconds(1)}});
  EXPECT_EQ(client_.Get("/a").body, kDigits);
  EXPECT_EQ(client_.Get("/a").body, kDigits);
}

TEST_F(FaultServerTest, ATooLongLengthIsWaitedForInVain) {
  server_->OnRequest(0, {.content_length_error = 2, .stop = CloseAfterBody()});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.Header("content-length"), "12");
  EXPECT_EQ(answer.body, kDigits);
  EXPECT_FALSE(answer.complete);
}

TEST_F(FaultServerTest, ATooShortLengthLeavesBytesBehind) {
  server_->OnRequest(0, {.content_length_error = -2});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.body, "01234567");
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(client_.Get("/a").first_line, "89HTTP/1.1 200 OK");
}

TEST_F(FaultServerTest, ChunkedBodiesAreWhole) {
  server_->PutSparse("/big", 200'000);
  server_->OnPath("/big", {.length = Fault::Length::kChunked});
  const PlainAnswer answer = client_.Get("/big");
  EXPECT_EQ(answer.Header("content-length"), "");
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.body, SparseBytes(0, 200'000));
  EXPECT_TRUE(client_.Head("/big").complete);
  EXPECT_EQ(client_.Get("/a").body, kDigits);
}

TEST_F(FaultServerTest, ABodyWithoutALengthEndsWithTheConnection) {
  server_->OnRequest(0, {.length = Fault::Length::kNone});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.body, kDigits);
  EXPECT_EQ(client_.reader().end(), End::kClosed);
}

TEST_F(FaultServerTest, GarbageIsSentAsItIs) {
  server_->OnRequest(0, {.raw = "\x16\x03\x01 garbage"});
  client_.Send("GET", "/a");
  EXPECT_EQ(client_.reader().ReadToEnd(), "\x16\x03\x01 garbage");
  EXPECT_EQ(client_.reader().end(), End::kClosed);
}

TEST_F(FaultServerTest, AHugeHeaderArrives) {
  const std::string pad(1 << 20, 'x');
  server_->OnRequest(0, {.more_headers = {{"X-Pad", pad}}});
  const PlainAnswer answer = client_.Get("/a");
  EXPECT_EQ(answer.Header("x-pad"), pad);
  EXPECT_EQ(answer.body, kDigits);
}

// What the server counts.

TEST_F(FaultServerTest, WaitsEndWhenRequestsHaveComeAndHaveBeenAnswered) {
  server_->OnPath("/a", {.stop = StallInHead()}, 1);
  std::jthread sender([this] {
    client_.Get("/a");
    client_.Get("/a");
  });
  server_->WaitForRequests(1);
  EXPECT_FALSE(server_->requests()[0].answered);
  server_->WaitForStalled(1);
  server_->Resume();
  server_->WaitForAnswers(2);
  EXPECT_TRUE(server_->requests()[1].answered);
}

TEST_F(FaultServerTest, ConnectionsAreCounted) {
  {
    PlainClient one(server_->port());
    PlainClient other(server_->port());
    server_->WaitForOpenConnections(3);
  }
  server_->WaitForOpenConnections(1);
  PlainClient last(server_->port());
  server_->WaitForOpenConnections(2);
  EXPECT_EQ(server_->connections(), 4u);
  EXPECT_EQ(server_->open_connections(), 2u);
  EXPECT_EQ(server_->most_open_connections(), 3u);
}

TEST_F(FaultServerTest, IdleConnectionsAloneAreClosed) {
  PlainClient busy(server_->port());
  server_->OnRequest(1, {.stop = StallInBody(4)});
  client_.Get("/a");
  server_->WaitForAnswers(1);
  busy.Send("GET", "/a");
  server_->WaitForStalled(1);
  server_->CloseIdleConnections();
  server_->WaitForOpenConnections(1);
  EXPECT_EQ(client_.reader().ReadToEnd(), "");
  server_->Resume();
  EXPECT_EQ(busy.Receive().body, kDigits);
}

TEST_F(FaultServerTest, ManyConnectionsAreServedAtATime) {
  constexpr size_t kClients = 50;
  server_->OnPath("/a", {.stop = StallInBody(4)});
  std::deque<PlainClient> clients;
  for (size_t i = 0; i < kClients; ++i) clients.emplace_back(server_->port()).Send("GET", "/a");
  server_->WaitForStalled(kClients);
  server_->Resume();
  for (PlainClient& client : clients) EXPECT_EQ(client.Receive().body, kDigits);
}

// How it ends.

TEST_F(FaultServerTest, AnEndedServerRefusesConnections) {
  const uint16_t port = server_->port();
  EXPECT_TRUE(PlainClient(port).connected());
  server_.reset();
  EXPECT_FALSE(PlainClient(port).connected());
}

TEST_F(FaultServerTest, ItEndsThoughAnAnswerIsStalled) {
  server_->OnRequest(0, {.stop = StallInBody(4)});
  client_.Send("GET", "/a");
  server_->WaitForStalled(1);
  server_.reset();
  EXPECT_EQ(client_.Receive().body, "0123");
}

TEST_F(FaultServerTest, ItEndsThoughAClientDoesNotRead) {
  server_->PutSparse("/big", uint64_t{50} << 30);
  client_.Send("GET", "/big");
  client_.reader().ReadHead();
  server_.reset();
  EXPECT_LT(client_.reader().ReadToEnd().size(), size_t{1} << 30);
}

TEST_F(FaultServerTest, ItEndsThoughATunnelIsOpen) {
  FaultServer other;
  client_.Send("CONNECT", "127.0.0.1:" + std::to_string(other.port()));
  client_.reader().ReadHead();
  server_.reset();
  EXPECT_EQ(client_.reader().ReadToEnd(), "");
  other.WaitForOpenConnections(0);
}

}  // namespace
}  // namespace echopipe::testing
