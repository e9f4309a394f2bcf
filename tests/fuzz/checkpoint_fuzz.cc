// Checkpoints: as they are, and with size and checksum mended, since no fuzzer guesses these. What
// is one is taken for one of the pipelines below.
//
// Parses: pipeline/checkpoint.cc pipeline/graph/shadow_codec.cc echo/echo_state.cc
// Parses: echo/adaptive_state.cc

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow.h>
#include <echopipe/pipeline/graph/shadow_codec.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Decision;
using echopipe::EchoState;
using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::PipelineCheckpoint;
using echopipe::PipelineSpec;
using echopipe::internal::EchoPoint;
using echopipe::internal::EpochAdaptive;
using echopipe::internal::EpochEcho;
using echopipe::internal::Plan;
using echopipe::internal::ShadowItem;
using echopipe::internal::ShadowState;
using echopipe::internal::StandIns;
using echopipe::internal::StandInsState;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

const std::array<Plan, 3>& Plans() {
  static const std::array<Plan, 3> plans = {
      echopipe::internal::MakePlan(PipelineSpec::FromText(
          "source { uri: 's.tar' shuffle { window: 4 } epochs: 3 } stage { decode {} } "
          "stage { echo { factor: 1.5 shuffle_buffer: 8 spacing: 2 } } "
          "stage { random_resized_crop { height: 8 width: 8 } } stage { batch { size: 2 } } "
          "stage { echo { factor: 2 shuffle_buffer: 2 spacing: 1 } }")),
      echopipe::internal::MakePlan(PipelineSpec::FromText(
          "source { uri: 's.tar' shuffle { window: 4 } epochs: 3 } stage { decode {} } "
          "stage { echo { adaptive { max_factor: 4 } shuffle_buffer: 8 spacing: 2 } } "
          "stage { random_resized_crop { height: 8 width: 8 } } stage { batch { size: 2 } }")),
      echopipe::internal::MakePlan(PipelineSpec::FromText(
          "source { uri: 's.tar' } bad_examples { policy: REPLACE } stage { decode {} } "
          "stage { echo { factor: 1.5 shuffle_buffer: 8 spacing: 2 } } stage { random_flip {} } "
          "stage { batch { size: 2 } } stage { echo { factor: 2 shuffle_buffer: 2 } }"))};
  return plans;
}

// ---- Echo points that begin from a state

// Far more than such small points can have to give.
constexpr int kManyDraws = 1000;

// Each resident has its uses and leaves; the state then holds none.
template <class T>
void GoOn(const EchoPoint& point, const ShadowState::EchoPoint<T>& start) {
  if (point.adaptive) {
    EpochAdaptive<T> echo(point, *start.adaptive, start.residents);
    for (int draws = 0; echo.CanEcho(); ++draws) {
      Require(echo.Echo().use.item != nullptr && draws < kManyDraws);
    }
    return;
  }
  EpochEcho<T> echo(point, start.state, start.residents);
  Require(echo.State().order == start.state.order);
  int draws = 0;
  const auto end = [] { return std::shared_ptr<const T>(); };
  while (const auto drawn = echo.DrawFrom(end)) {
    Require(drawn->use.item != nullptr && ++draws < kManyDraws);
  }
  const EchoState drained = echo.State().order;
  Require(drained.drawable.empty() && drained.blocked.empty());
}

// What is held back goes on, at the end at the latest, and can be told of wherever it stands.
void GoOn(const Plan& plan, size_t edge, const StandInsState<ShadowItem>& start) {
  std::vector<std::shared_ptr<ShadowItem>> held;
  for (const auto& item : start.held) held.push_back(std::make_shared<ShadowItem>(*item));
  StandIns<ShadowItem> stand_ins(plan.RuleOf(edge), held, start.released, start.epoch_has_good);
  size_t left = held.size() + (start.good ? 1 : 0);
  while (stand_ins.HasNext()) Require(stand_ins.Next() != nullptr && left-- > 0);
  if (start.good) stand_ins.Put(std::make_shared<ShadowItem>(*start.good));
  if (!stand_ins.HasNext()) stand_ins.Close();
  while (stand_ins.HasNext()) {
    const std::shared_ptr<ShadowItem> item = stand_ins.Next();
    Require(left-- > 0 && (start.good == nullptr || !IsBad(*item)));
    for (size_t passed = 0; passed <= edge; ++passed) MadeBehind(*item, passed);
  }
  Require(left == 0);
}

// ---- Checkpoints

std::string Written(const ShadowState& state) {
  echopipe::proto::Checkpoint message;
  Encode(state, &message);
  return message.SerializeAsString();
}

void CheckState(const echopipe::proto::Checkpoint& message, const Plan& plan) {
  try {
    const ShadowState state = Decode(message, plan);
    echopipe::proto::Checkpoint again;
    Encode(state, &again);
    Require(Written(Decode(again, plan)) == again.SerializeAsString());
    for (size_t i = 0; i < plan.echoes.size(); ++i) GoOn(plan.echoes[i], state.echoes[i]);
    for (size_t i = 0; i < plan.batch_echoes.size(); ++i) {
      GoOn(plan.batch_echoes[i], state.batch_echoes[i]);
    }
    for (size_t i = 0; i < state.stand_ins.size(); ++i) GoOn(plan, i, state.stand_ins[i]);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kInvalidArgument);
  }
}

void CheckFile(std::string_view bytes) {
  std::optional<PipelineCheckpoint> checkpoint;
  try {
    checkpoint = PipelineCheckpoint::FromBytes(bytes);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTruncated ||
            error.code() == ErrorCode::kUnsupported);
    return;
  }
  const std::string written = checkpoint->ToBytes();
  Require(PipelineCheckpoint::FromBytes(written).ToBytes() == written);
  for (const Plan& plan : Plans()) CheckState(checkpoint->message(), plan);
}

std::string WithRightChecksum(std::string bytes) {
  constexpr size_t kSize = 16;
  constexpr size_t kHash = 24;
  constexpr size_t kHeaderBytes = 32;
  if (bytes.size() < kHeaderBytes) return bytes;
  const std::string_view message = std::string_view(bytes).substr(kHeaderBytes);
  const uint64_t size = message.size();
  const uint64_t hash = echopipe::HashBytes(message);
  std::memcpy(bytes.data() + kSize, &size, sizeof(size));
  std::memcpy(bytes.data() + kHash, &hash, sizeof(hash));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = FuzzInput(data, size).TakeRest();
  CheckFile(bytes);
  CheckFile(WithRightChecksum(std::string(bytes)));
  return 0;
}
