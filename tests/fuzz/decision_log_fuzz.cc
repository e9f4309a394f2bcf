// Decision logs: as they are, and with their checksums mended, since no fuzzer guesses these.
//
// Parses: echo/decision_log.cc

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/echo/decision_log.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::DecisionLog;
using echopipe::DecisionLogWriter;
using echopipe::DecisionReader;
using echopipe::DecisionRun;
using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

// The places of what the format's picture (decision_log.h) shows.
constexpr size_t kHeaderHash = 32;
constexpr size_t kHeaderBytes = 40;
constexpr size_t kBlockHash = 8;
constexpr size_t kBlockHeaderBytes = 16;

std::string WithRightChecksums(std::string bytes) {
  if (bytes.size() < kHeaderBytes) return bytes;
  const auto put = [&bytes](const auto& value, size_t at) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  uint64_t hash = echopipe::HashBytes(std::string_view(bytes).substr(0, kHeaderHash));
  put(hash, kHeaderHash);
  for (size_t at = kHeaderBytes; bytes.size() - at >= kBlockHeaderBytes;) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    const size_t payload = at + kBlockHeaderBytes;
    put(~size, at + sizeof(size));
    if (size > bytes.size() - payload) break;
    hash = echopipe::HashBytes(std::string_view(bytes).substr(payload, size), hash);
    put(hash, at + kBlockHash);
    at = payload + size;
  }
  return bytes;
}

// Runs of the same decision, which end at blocks, as one.
std::vector<DecisionRun> RunsOf(const DecisionLog& log) {
  std::vector<DecisionRun> runs;
  uint64_t draw = log.first_draw();
  for (DecisionReader reader(log, draw); reader.next().draws > 0;) {
    const DecisionRun run = reader.next();
    if (runs.empty() || runs.back().decision != run.decision) runs.push_back({run.decision});
    runs.back().draws += run.draws;
    draw += run.draws;
    reader.Advance(run.draws);
    Require(reader.draw() == draw);
  }
  Require(draw == log.end_draw());
  return runs;
}

// What is said about the draws before `draw`.
std::vector<DecisionRun> Before(uint64_t draw, const DecisionLog& log) {
  std::vector<DecisionRun> runs;
  uint64_t rest = draw - log.first_draw();
  for (const DecisionRun& run : RunsOf(log)) {
    if (rest == 0) break;
    runs.push_back({run.decision, std::min(rest, run.draws)});
    rest -= runs.back().draws;
  }
  return runs;
}

void CheckLog(const DecisionLog& log, size_t size) {
  Require(log.first_draw() <= log.end_draw() && log.torn_bytes() < size);
  log.CheckIsFor(log.fingerprint());
  const uint64_t draws = log.end_draw() - log.first_draw();
  for (const uint64_t draw : {log.first_draw(), log.first_draw() + draws / 2, log.end_draw()}) {
    DecisionLogWriter writer(log, draw);
    const DecisionLog copy = DecisionLog::FromBytes(writer.TakeBytes());
    Require(copy.fingerprint() == log.fingerprint() && copy.torn_bytes() == 0);
    Require(copy.first_draw() == log.first_draw() && copy.end_draw() == draw);
    Require(RunsOf(copy) == Before(draw, log));
  }
}

void CheckBytes(const std::string& bytes) {
  try {
    CheckLog(DecisionLog::FromBytes(bytes), bytes.size());
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTruncated ||
            error.code() == ErrorCode::kUnsupported);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(FuzzInput(data, size).TakeRest());
  CheckBytes(bytes);
  CheckBytes(WithRightChecksums(bytes));
  return 0;
}
