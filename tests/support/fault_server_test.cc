#include <gmock/gmock.h>

#include <echopipe/tests/support/fault_server.h>
#include <echopipe/tests/support/plain_client.h>

namespace echopipe::testing {
namespace {

TEST(FaultServerTest, Smoke) {
  FaultServer server;
  server.Put("/a b", "0123456789");
  PlainClient client(server.port());
  EXPECT_EQ(client.Get("/a%20b").body, "0123456789");
  EXPECT_EQ(client.Get("/a%20b", "Range: bytes=2-4\r\n").body, "234");
}

}  // namespace
}  // namespace echopipe::testing
