#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/tests/echo/echo_cases.h>

namespace echopipe {
namespace {

constexpr uint64_t kFingerprint = 0x0123456789abcdef;
constexpr size_t kHeader = 40;
constexpr size_t kBlockHeader = 16;

/// Decisions in runs of all lengths.
std::vector<Decision> SomeDecisions(uint64_t seed, size_t count) {
  RandomStream random({.low = seed, .high = 0xdec1});
  std::vector<Decision> decisions;
  Decision decision = random.Bernoulli(0.5) ? Decision::kEcho : Decision::kFresh;
  while (decisions.size() < count) {
    const size_t run = size_t{1} + (random.Below(1'000) >> random.Below(10));
    decisions.insert(decisions.end(), std::min(run, count - decisions.size()), decision);
    decision = decision == Decision::kEcho ? Decision::kFresh : Decision::kEcho;
  }
  return decisions;
}

std::vector<Decision> ReadAll(DecisionReader reader) {
  std::vector<Decision> decisions;
  for (; reader.next().draws > 0; reader.Advance()) decisions.push_back(reader.next().decision);
  return decisions;
}

/// The bytes are taken after each so many decisions.
std::string BytesOf(const std::vector<Decision>& decisions, uint64_t first_draw,
                    size_t each = ~size_t{0}) {
  DecisionLogWriter writer(kFingerprint, first_draw);
  std::string bytes;
  for (size_t i = 0; i < decisions.size(); ++i) {
    writer.Add(decisions[i]);
    if ((i + 1) % each == 0) bytes += writer.TakeBytes();
  }
  return bytes + writer.TakeBytes();
}

ErrorCode CodeOf(const std::string& bytes) {
  try {
    DecisionLog::FromBytes(bytes, "run.log");
  } catch (const Error& error) {
    EXPECT_EQ(error.details().where, "run.log");
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(DecisionLogTest, TellsWhatWasWrittenHoweverOftenItWasTaken) {
  for (uint64_t seed = 0; seed < 5 * testing::kThoroughness; ++seed) {
    const std::vector<Decision> decisions = SomeDecisions(seed, seed * 7);
    for (const size_t each : {size_t{1}, size_t{2}, size_t{100}, ~size_t{0}}) {
      const DecisionLog log = DecisionLog::FromBytes(BytesOf(decisions, seed, each));
      ASSERT_EQ(log.fingerprint(), kFingerprint);
      ASSERT_EQ(log.first_draw(), seed);
      ASSERT_EQ(log.end_draw(), seed + decisions.size());
      ASSERT_EQ(log.torn_bytes(), 0);
      ASSERT_EQ(ReadAll({log, seed}), decisions);
    }
  }
}

TEST(DecisionLogTest, CanBeReadFromAnyDrawOn) {
  const std::vector<Decision> decisions = SomeDecisions(1, 700);
  const DecisionLog log = DecisionLog::FromBytes(BytesOf(decisions, 50, 64));
  for (uint64_t draw = 50; draw <= 750; ++draw) {
    const DecisionReader reader(log, draw);
    EXPECT_EQ(reader.draw(), draw);
    const std::vector<Decision> rest(decisions.begin() + static_cast<std::ptrdiff_t>(draw - 50),
                                     decisions.end());
    ASSERT_EQ(ReadAll(reader), rest) << draw;
  }
  EXPECT_THROW(DecisionReader(log, 49), Error);
  EXPECT_THROW(DecisionReader(log, 751), Error);
}

TEST(DecisionLogTest, GoesOnInAnotherRunFromAnyDrawOn) {
  const std::vector<Decision> before = SomeDecisions(2, 400);
  const std::vector<Decision> after = SomeDecisions(3, 300);
  const DecisionLog log = DecisionLog::FromBytes(BytesOf(before, 10, 50));
  for (uint64_t draw = 10; draw <= 410; ++draw) {
    DecisionLogWriter writer(log, draw);
    EXPECT_EQ(writer.end_draw(), draw);
    std::string bytes = writer.TakeBytes();  // the file anew
    for (const Decision decision : after) writer.Add(decision);
    bytes += writer.TakeBytes();
    std::vector<Decision> wanted(before.begin(),
                                 before.begin() + static_cast<std::ptrdiff_t>(draw - 10));
    wanted.insert(wanted.end(), after.begin(), after.end());
    const DecisionLog both = DecisionLog::FromBytes(bytes);
    EXPECT_EQ(both.fingerprint(), kFingerprint);
    ASSERT_EQ(ReadAll({both, 10}), wanted) << draw;
  }
  EXPECT_THROW(DecisionLogWriter(log, 9), Error);
  EXPECT_THROW(DecisionLogWriter(log, 411), Error);
}

TEST(DecisionLogTest, NothingNewIsNoBytes) {
  DecisionLogWriter writer(kFingerprint, 0);
  EXPECT_EQ(writer.TakeBytes().size(), kHeader);
  EXPECT_EQ(writer.TakeBytes(), "");
  writer.Add(Decision::kEcho);
  EXPECT_EQ(writer.TakeBytes().size(), kBlockHeader + 2);  // no fresh one, an echo
  EXPECT_EQ(writer.TakeBytes(), "");
}

TEST(DecisionLogTest, TakesAByteOrTwoForEachRun) {
  DecisionLogWriter writer(kFingerprint, 0);
  const int steps = 40'000;
  for (int step = 0; step < steps; ++step) {
    writer.Add({Decision::kEcho, 170});
    writer.Add({Decision::kFresh, 86});
  }
  // Longer than a block may be, so that it is several.
  EXPECT_GT(writer.waiting_bytes(), 100'000);
  const std::string bytes = writer.TakeBytes();
  EXPECT_LT(bytes.size(), steps * 3 + 200);
  EXPECT_EQ(DecisionLog::FromBytes(bytes).end_draw(), uint64_t{steps} * 256);
}

TEST(DecisionLogTest, IsTheSameBytesInEveryVersion) {
  DecisionLogWriter writer(kFingerprint, 5);
  writer.Add({Decision::kFresh, 300});
  writer.Add({Decision::kEcho, 2});
  std::string text;
  for (const char byte : writer.TakeBytes()) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) / 16];
    text += kDigits[static_cast<unsigned char>(byte) % 16];
  }
  EXPECT_EQ(text,
            "6563686f646c6f670100000000000000efcdab89674523010500000000000000"  // header
            "4a072e60899c158d"                                                  // and its hash
            "03000000fcffffff174b275731f979afac0202");
}

TEST(DecisionLogTest, OfALogThatIsCutOffTheWholeBlocksAreRead) {
  const std::vector<Decision> decisions = SomeDecisions(4, 90);
  const std::string bytes = BytesOf(decisions, 0, 30);
  size_t ends = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    if (size < kHeader) {
      EXPECT_EQ(CodeOf(cut), ErrorCode::kTruncated);
      continue;
    }
    const DecisionLog log = DecisionLog::FromBytes(cut);
    ASSERT_EQ(log.end_draw() % 30, 0);
    if (log.torn_bytes() == 0) ++ends;
    const std::vector<Decision> wanted(
        decisions.begin(), decisions.begin() + static_cast<std::ptrdiff_t>(log.end_draw()));
    ASSERT_EQ(ReadAll({log, 0}), wanted);
    ASSERT_EQ(DecisionLog::FromBytes(cut.substr(0, size - log.torn_bytes())).torn_bytes(), 0);
  }
  EXPECT_EQ(ends, 3);  // behind the header and two blocks
}

TEST(DecisionLogTest, EveryDamagedByteIsFound) {
  const std::string bytes = BytesOf(SomeDecisions(5, 90), 0, 30);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int mask : {0x01, 0x40, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      const ErrorCode code = CodeOf(damaged);
      EXPECT_TRUE(code == ErrorCode::kCorrupt || code == ErrorCode::kUnsupported) << at;
    }
  }
}

/// Where each block begins, and the end.
std::vector<size_t> BlocksOf(const std::string& bytes) {
  std::vector<size_t> begins = {kHeader};
  while (begins.back() < bytes.size()) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + begins.back(), sizeof(size));
    begins.push_back(begins.back() + kBlockHeader + size);
  }
  return begins;
}

TEST(DecisionLogTest, ABlockMissingOrInAnotherPlaceIsFound) {
  const std::string bytes = BytesOf(SomeDecisions(6, 90), 0, 30);
  const std::vector<size_t> at = BlocksOf(bytes);
  ASSERT_EQ(at.size(), 4);
  const std::string header = bytes.substr(0, kHeader);
  const auto block = [&](size_t i) { return bytes.substr(at[i], at[i + 1] - at[i]); };
  EXPECT_EQ(CodeOf(header + block(0) + block(2)), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(header + block(1) + block(2)), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(header + block(0) + block(0)), ErrorCode::kCorrupt);
  DecisionLogWriter other(kFingerprint + 1, 0);
  EXPECT_EQ(CodeOf(other.TakeBytes() + block(0)), ErrorCode::kCorrupt);
}

/// A log of one block with this payload, all hashes right.
std::string LogOf(const std::string& payload, uint64_t first_draw = 0) {
  std::string bytes = DecisionLogWriter(kFingerprint, first_draw).TakeBytes();
  uint64_t hash = 0;
  std::memcpy(&hash, bytes.data() + kHeader - 8, sizeof(hash));
  hash = HashBytes(payload, hash);
  const auto size = static_cast<uint32_t>(payload.size());
  const uint32_t inverted = ~size;
  bytes.append(reinterpret_cast<const char*>(&size), 4);
  bytes.append(reinterpret_cast<const char*>(&inverted), 4);
  bytes.append(reinterpret_cast<const char*>(&hash), 8);
  return bytes + payload;
}

TEST(DecisionLogTest, WhatNoWriterWritesIsRefusedThoughItsHashesAreRight) {
  const std::string most = "\x80\x80\x80\x80\x80\x80\x80\x10";  // 2^53
  const std::string two("\x80\x80\x80\x80\x80\x80\x80\x10\x01", 9);
  EXPECT_EQ(CodeOf(LogOf("\x01\x02\x03")), ErrorCode::kInternal) << "is a log";
  EXPECT_EQ(CodeOf(LogOf(most)), ErrorCode::kInternal) << "is a log";
  EXPECT_EQ(CodeOf(LogOf(std::string("\0\x01", 2))), ErrorCode::kInternal) << "is a log";
  EXPECT_EQ(CodeOf(LogOf("")), ErrorCode::kCorrupt) << "no run";
  EXPECT_EQ(CodeOf(LogOf(std::string("\0", 1))), ErrorCode::kCorrupt) << "no draw";
  EXPECT_EQ(CodeOf(LogOf(std::string("\x01\0\x01", 3))), ErrorCode::kCorrupt) << "a run of none";
  EXPECT_EQ(CodeOf(LogOf(std::string("\x81\0", 2))), ErrorCode::kCorrupt) << "a longer form";
  EXPECT_EQ(CodeOf(LogOf("\x80")), ErrorCode::kCorrupt) << "half a number";
  EXPECT_EQ(CodeOf(LogOf(two)), ErrorCode::kCorrupt) << "too many draws together";
  EXPECT_EQ(CodeOf(LogOf(most, 1)), ErrorCode::kCorrupt) << "too many draws behind the first";
  EXPECT_EQ(CodeOf(LogOf(std::string(7, '\x80') + "\x11")), ErrorCode::kCorrupt) << "too many";
  EXPECT_EQ(CodeOf(LogOf(std::string(9, '\xff') + "\x01")), ErrorCode::kCorrupt) << "64 bits";
  EXPECT_EQ(CodeOf(LogOf(std::string(1 << 16, '\x01'))), ErrorCode::kInternal) << "is a log";
  EXPECT_EQ(CodeOf(LogOf(std::string((1 << 16) + 1, '\x01'))), ErrorCode::kCorrupt) << "too long";
}

TEST(DecisionLogTest, SomethingElseAndNewerFormatsAreRefused) {
  EXPECT_EQ(CodeOf(""), ErrorCode::kTruncated);
  EXPECT_EQ(CodeOf("echodlog"), ErrorCode::kTruncated);
  EXPECT_EQ(CodeOf("echockpt"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(std::string(100, '\0')), ErrorCode::kCorrupt);
  std::string newer = DecisionLogWriter(kFingerprint, 0).TakeBytes();
  newer[8] = 2;
  EXPECT_EQ(CodeOf(newer), ErrorCode::kUnsupported);
}

TEST(DecisionLogTest, IsForOneFingerprint) {
  const DecisionLog log = DecisionLog::FromBytes(BytesOf({}, 0));
  EXPECT_NO_THROW(log.CheckIsFor(kFingerprint));
  EXPECT_THROW(log.CheckIsFor(kFingerprint + 1), Error);
}

TEST(DecisionLogTest, RandomBytesAreRefusedOrRead) {
  int read = 0;
  for (int i = 0; i < 500 * testing::kThoroughness; ++i) {
    RandomStream random({.low = static_cast<uint64_t>(i), .high = 0xf022});
    std::string payload(random.Below(12), '\0');
    for (char& byte : payload) byte = static_cast<char>(random.Next() & random.Next());
    try {
      DecisionReader reader(DecisionLog::FromBytes(LogOf(payload)), 0);
      while (reader.next().draws > 0) reader.Advance(reader.next().draws);
      ++read;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 10 * testing::kThoroughness);
}

// As a power failure may leave it: the file has its new size, but not its new bytes.
TEST(DecisionLogTest, ZerosBehindTheLastBlockAreLeftOut) {
  DecisionLogWriter writer(7, 0);
  writer.Add({Decision::kFresh, 5});
  const std::string whole = writer.TakeBytes();
  const DecisionLog log = DecisionLog::FromBytes(whole + std::string(40, '\0'));
  EXPECT_EQ(log.end_draw(), 5u);
  EXPECT_EQ(log.torn_bytes(), 40u);
  EXPECT_THROW(DecisionLog::FromBytes(whole + std::string(40, '\0') + "x"), Error);
}

}  // namespace
}  // namespace echopipe
