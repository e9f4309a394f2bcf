// The text form of a spec, as people write it.
//
// Parses: pipeline/spec.cc pipeline/graph/plan.cc

#include <string>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/example.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::Example;
using echopipe::PipelineSpec;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

void CheckReturn(const PipelineSpec& spec) {
  const std::string printed = spec.ToText();
  Require(PipelineSpec::FromText(printed).ToText() == printed);
  // As a checkpoint holds it.
  echopipe::proto::PipelineSpec message;
  Require(message.ParseFromString(spec.message().SerializeAsString()));
}

// A pattern may stand for a million names, which takes its time and is no fault.
PipelineSpec WithoutPatterns(const PipelineSpec& spec) {
  echopipe::proto::PipelineSpec message = spec.message();
  for (echopipe::proto::Source& source : *message.mutable_source()) {
    for (std::string& uri : *source.mutable_uri()) std::erase(uri, '{');
  }
  return spec.WithMessage(message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzInput(data, size).TakeRest());
  bool is_parsed = false;
  try {
    const PipelineSpec spec = PipelineSpec::FromText(text);
    is_parsed = true;
    CheckReturn(spec);
    WithoutPatterns(spec)
        .WithMap("f", [](Example&) {})
        .WithFilter("g", [](const Example&) { return true; })
        .Validate();
  } catch (const Error& error) {
    // Not found: a function.
    Require(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kNotFound ||
            error.code() == ErrorCode::kLimitExceeded);
    // It tells where: the line and column of the text, or the field.
    Require(!error.details().where.empty() && !error.details().what.empty());
    Require(is_parsed || error.details().where.starts_with("spec:"));
  }
  return 0;
}
