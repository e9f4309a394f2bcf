// Checkpoints. The first byte tells what the rest is: '0' a file, else a message of this pipeline,
// which gets the header of a file here, since no fuzzer guesses its checksum.

#include <string>
#include <string_view>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/graph/shadow_codec.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::PipelineCheckpoint;
using echopipe::PipelineSpec;
using echopipe::internal::Plan;
using echopipe::internal::ShadowState;
using echopipe::testing::Require;

const Plan& ThePlan() {
  static const PipelineSpec spec = PipelineSpec::FromText(
      "source { uri: 's.tar' shuffle { window: 4 } epochs: 3 } stage { decode {} } "
      "stage { echo { factor: 1.5 shuffle_buffer: 8 spacing: 2 } } "
      "stage { random_resized_crop { height: 8 width: 8 } } stage { batch { size: 2 } } "
      "stage { echo { factor: 2 shuffle_buffer: 2 spacing: 1 } }");
  static const Plan plan = echopipe::internal::MakePlan(spec);
  return plan;
}

// Whatever is taken for a state says the same when it is written again.
void CheckState(const echopipe::proto::Checkpoint& message) {
  try {
    const ShadowState state = echopipe::internal::Decode(message, ThePlan());
    echopipe::proto::Checkpoint again;
    echopipe::internal::Encode(state, &again);
    echopipe::proto::Checkpoint twice;
    echopipe::internal::Encode(echopipe::internal::Decode(again, ThePlan()), &twice);
    Require(again.SerializeAsString() == twice.SerializeAsString());
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kInvalidArgument);
  }
}

void CheckFile(std::string_view bytes) {
  try {
    const PipelineCheckpoint checkpoint = PipelineCheckpoint::FromBytes(bytes);
    Require(PipelineCheckpoint::FromBytes(checkpoint.ToBytes()).ToBytes() == checkpoint.ToBytes());
    CheckState(checkpoint.message());
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTruncated ||
            error.code() == ErrorCode::kUnsupported);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = echopipe::testing::FuzzInput(data, size).TakeRest();
  if (bytes.empty() || bytes[0] == '0') {
    CheckFile(bytes.substr(bytes.empty() ? 0 : 1));
    return 0;
  }
  echopipe::proto::Checkpoint message;
  if (message.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size() - 1))) {
    CheckFile(PipelineCheckpoint(message).ToBytes());
  }
  return 0;
}
