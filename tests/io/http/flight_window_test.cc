#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/http/flight_window.h>

namespace echopipe::testing {
namespace {

using internal::FlightWindow;
using internal::RecentLargest;
using std::chrono::seconds;

constexpr uint64_t kMega = uint64_t{1} << 20;

Clock::Time At(double s) {
  return Clock::Time() +
         std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(s));
}

// Starts what there is room for, then lets the oldest request end.
class Server {
 public:
  explicit Server(FlightWindow& window) : window_(window) {}

  void Succeed() {
    Fill();
    now_ += 0.01;
    window_.OnSuccess(flights_.front());
    flights_.pop_front();
  }
  void Refuse() {
    Fill();
    now_ += 0.01;
    window_.OnThrottled(flights_.front());
    flights_.pop_front();
  }
  void Fill() {
    while (window_.HasRoom(At(now_))) flights_.push_back(window_.Start(At(now_), 1));
  }
  size_t under_way() const { return flights_.size(); }

 private:
  FlightWindow& window_;
  std::deque<FlightWindow::Flight> flights_;
  double now_ = 0;
};

TEST(RecentLargestTest, ForgetsWhatIsOlderThanTwiceItsSpan) {
  RecentLargest largest(seconds(5));
  EXPECT_EQ(largest.value(), 0);
  largest.Add(At(0), 100);
  largest.Add(At(4), 50);
  largest.Add(At(6), 10);
  EXPECT_EQ(largest.value(), 100);
  largest.Add(At(12), 7);
  EXPECT_EQ(largest.value(), 10);
  largest.Add(At(60), 5);
  EXPECT_EQ(largest.value(), 5);
}

TEST(FlightWindowTest, BeginsWithEightRequestsAndGrowsByOneForEachSuccessUpToTheMost) {
  FlightWindow window({.most_requests = 20});
  Server server(window);
  server.Fill();
  EXPECT_EQ(server.under_way(), 8u);
  for (int i = 0; i < 11; ++i) server.Succeed();
  server.Fill();
  EXPECT_EQ(server.under_way(), 19u);
  for (int i = 0; i < 50; ++i) server.Succeed();
  server.Fill();
  EXPECT_EQ(server.under_way(), 20u);
}

TEST(FlightWindowTest, DoesNotGrowWhileItIsNotUsed) {
  FlightWindow window({});
  for (int i = 0; i < 100; ++i) {
    const FlightWindow::Flight flight = window.Start(At(i), 1);
    window.OnSuccess(flight);
  }
  EXPECT_EQ(window.limit(), 8);
}

TEST(FlightWindowTest, RefusalsOfOneMomentHalveItOnce) {
  FlightWindow window({.most_requests = 32});
  Server server(window);
  for (int i = 0; i < 100; ++i) server.Succeed();
  server.Fill();
  ASSERT_EQ(server.under_way(), 32u);
  for (int i = 0; i < 17; ++i) server.Refuse();
  EXPECT_EQ(window.limit(), 16);
}

TEST(FlightWindowTest, OneRequestMayAlwaysBeUnderWay) {
  FlightWindow window({.most_requests = 32});
  Server server(window);
  for (int i = 0; i < 500; ++i) server.Refuse();
  EXPECT_EQ(window.limit(), 1);
  EXPECT_TRUE(server.under_way() == 0 || server.under_way() == 1);
  server.Fill();
  EXPECT_EQ(server.under_way(), 1u);
}

// What docs/sources.md says of it.
TEST(FlightWindowTest, AfterABurstOfRefusalsItIsBackOverNineTenthsWithinAsManySuccessesAsTheMost) {
  for (const int most : {1, 2, 8, 32, 64, 200}) {
    for (const int refusals : {1, 10, 1000}) {
      FlightWindow window({.most_requests = most});
      Server server(window);
      for (int i = 0; i < 2000; ++i) server.Succeed();
      const double before = window.limit();
      ASSERT_EQ(before, most);
      for (int i = 0; i < refusals; ++i) server.Refuse();
      // Those that were under way when it began say nothing.
      for (size_t i = server.under_way(); i > 0; --i) server.Succeed();
      int successes = 0;
      for (; window.limit() < 0.9 * before; ++successes) server.Succeed();
      EXPECT_LE(successes, most) << "after " << refusals << " refusals";
    }
  }
}

// A server that refuses whatever goes beyond ten requests.
TEST(FlightWindowTest, SettlesWhereAServerRefusesMore) {
  FlightWindow window({.most_requests = 64});
  Server server(window);
  int refused = 0;
  double sum = 0;
  constexpr int kRequests = 5000;
  for (int i = 0; i < kRequests; ++i) {
    server.Fill();
    sum += static_cast<double>(server.under_way());
    if (server.under_way() > 10) {
      server.Refuse();
      ++refused;
    } else {
      server.Succeed();
    }
  }
  EXPECT_LT(refused, kRequests / 20);
  EXPECT_GT(sum / kRequests, 6.5);
  EXPECT_LT(sum / kRequests, 10.5);
}

TEST(FlightWindowTest, NothingStartsInAPause) {
  FlightWindow window({});
  window.PauseUntil(At(10));
  window.PauseUntil(At(5));
  EXPECT_FALSE(window.HasRoom(At(9.99)));
  EXPECT_TRUE(window.HasRoom(At(10)));
}

// A link that delivers `rate` bytes per second, in order, `delay` after they were asked for.
struct Link {
  double rate;
  double delay;
};

// A request on the way over the link.
struct OnLink {
  FlightWindow::Flight flight;
  double bytes = 0;
  double begin = 0;  // of its bytes
  double end = 0;
};

// The share of the last half of the run in which the link stood idle, and most bytes under way.
struct Outcome {
  double idle_share = 0;
  uint64_t most_bytes = 0;
};

// Requests are a quarter of what may be under way, as HttpServer makes them.
Outcome ReadOver(const Link& link, int requests) {
  FlightWindow window({});
  std::deque<OnLink> under_way;
  double now = 0;
  double link_free = 0;
  double idle = 0;
  double half = 0;
  Outcome outcome;
  for (int i = 0; i < requests; ++i) {
    const bool counts = i > requests / 2;
    while (window.HasRoom(At(now))) {
      const uint64_t bytes = std::max(kMega / 4, window.most_bytes_now() / 4);
      OnLink request{.flight = window.Start(At(now), bytes), .bytes = static_cast<double>(bytes)};
      request.begin = std::max(link_free, now + link.delay);
      request.end = request.begin + request.bytes / link.rate;
      if (counts) idle += request.begin - std::max(link_free, half);
      link_free = request.end;
      under_way.push_back(request);
    }
    if (counts) outcome.most_bytes = std::max(outcome.most_bytes, window.bytes());
    if (i == requests / 2) half = link_free;
    OnLink request = under_way.front();
    under_way.pop_front();
    // A sixteenth at a time.
    for (int k = 0; k < 16; ++k) {
      now = request.begin + (request.end - request.begin) * k / 15;
      window.OnBytes(At(now), request.flight, static_cast<uint64_t>(request.bytes / 16));
    }
    window.OnSuccess(request.flight);
  }
  outcome.idle_share = idle / (now - half);
  return outcome;
}

TEST(FlightWindowTest, ALinkStaysFullWhateverItsDelayAndNoMoreThanNeededIsUnderWay) {
  for (const double megabits : {10., 100., 400., 2000.}) {
    for (const double delay : {0.0005, 0.02, 0.1}) {
      const Link link{megabits * 1e6 / 8, delay};
      const Outcome outcome = ReadOver(link, 4000);
      EXPECT_LT(outcome.idle_share, 0.01) << megabits << " Mbit/s, " << delay << " s";
      // One request more than fits may be under way.
      const double least = 0.5 * kMega * (1 + std::min(delay / 0.02, 1.));
      const double needed = std::max(link.rate * (2 * delay + 0.01), least) * 1.5;
      EXPECT_LE(static_cast<double>(outcome.most_bytes), needed * 1.2)
          << megabits << " Mbit/s, " << delay << " s";
    }
  }
}

TEST(FlightWindowTest, MoreIsUnderWayFromTheBeginningWhereTheDelayIsLong) {
  const auto bytes_at_first = [](double delay) {
    FlightWindow window({.least_bytes = 1000});
    FlightWindow::Flight flight = window.Start(At(0), 10);
    window.OnBytes(At(delay), flight, 10);
    return window.most_bytes_now();
  };
  EXPECT_NEAR(static_cast<double>(bytes_at_first(0.001)), 1050, 1);
  EXPECT_NEAR(static_cast<double>(bytes_at_first(0.02)), 2000, 1);
  EXPECT_EQ(bytes_at_first(0.3), 2000u);
  FlightWindow window({.least_bytes = 1000, .most_bytes = 1500});
  FlightWindow::Flight flight = window.Start(At(0), 10);
  window.OnBytes(At(0.02), flight, 10);
  EXPECT_EQ(window.most_bytes_now(), 1500u);
}

TEST(FlightWindowTest, CountsWhatAnAnswerHasInThePlaceOfWhatWasAsked) {
  FlightWindow window({.least_bytes = 100});
  FlightWindow::Flight flight = window.Start(At(0), 1000);
  EXPECT_EQ(window.bytes(), 1000u);
  EXPECT_FALSE(window.HasRoom(At(0)));
  window.Expect(flight, 40);
  EXPECT_EQ(window.bytes(), 40u);
  window.OnBytes(At(0.1), flight, 30);
  EXPECT_EQ(window.bytes(), 10u);
  window.OnBytes(At(0.2), flight, 30);  // more than it said
  EXPECT_EQ(window.bytes(), 0u);
  window.OnSuccess(flight);
  EXPECT_EQ(window.requests(), 0);
  EXPECT_EQ(window.bytes(), 0u);
}

}  // namespace
}  // namespace echopipe::testing
