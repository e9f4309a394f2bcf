#include <utility>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/plan.h>
#include <echopipe/pipeline/spec.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe {
namespace {

// Keeps the first error of the parser, which would else print it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!message_.empty()) return;
    message_ = message;
    place_ = std::to_string(line + 1) + ":" + std::to_string(column + 1);
  }
  void AddWarning(int, int, const std::string&) override {}

  const std::string& message() const { return message_; }
  const std::string& place() const { return place_; }

 private:
  std::string message_;
  std::string place_;
};

// A second function of that name would run in the first one's place too.
template <class Function, class Functions>
void AddFunction(const char* kind, std::string name, Function function, Functions& functions) {
  if (!function) {
    internal::ThrowInvalidField(kind, "the function is empty", name, "a function to call");
  }
  const auto [found, is_new] = functions.emplace(std::move(name), std::move(function));
  if (!is_new) {
    internal::ThrowInvalidField(kind, "there is a function of that name already", found->first,
                                "another name");
  }
}

}  // namespace

PipelineSpec::PipelineSpec() : PipelineSpec(proto::PipelineSpec()) {}

PipelineSpec::PipelineSpec(const proto::PipelineSpec& message)
    : message_(std::make_shared<proto::PipelineSpec>(message)),
      functions_(std::make_shared<internal::UserFunctions>()) {}

PipelineSpec PipelineSpec::FromText(std::string_view text, std::string_view name) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  proto::PipelineSpec message;
  if (!parser.ParseFromString(std::string(text), &message)) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = error.message(),
                 .where = std::string(name) + ":" + error.place()});
  }
  return PipelineSpec(message);
}

std::string PipelineSpec::ToText() const {
  std::string text;
  google::protobuf::TextFormat::PrintToString(*message_, &text);
  return text;
}

PipelineSpec PipelineSpec::WithMessage(const proto::PipelineSpec& message) const {
  PipelineSpec spec(message);
  spec.functions_ = functions_;
  return spec;
}

PipelineSpec PipelineSpec::WithMap(std::string name, MapFunction function) const {
  PipelineSpec spec = *this;
  auto functions = std::make_shared<internal::UserFunctions>(*functions_);
  AddFunction("map", std::move(name), std::move(function), functions->maps);
  spec.functions_ = std::move(functions);
  return spec;
}

PipelineSpec PipelineSpec::WithFilter(std::string name, FilterFunction function) const {
  PipelineSpec spec = *this;
  auto functions = std::make_shared<internal::UserFunctions>(*functions_);
  AddFunction("filter", std::move(name), std::move(function), functions->filters);
  spec.functions_ = std::move(functions);
  return spec;
}

void PipelineSpec::Validate() const { internal::MakePlan(*this); }

}  // namespace echopipe
