#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/stages/user_function.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class Filter final : public Stage {
 public:
  Filter(std::string name, std::function<bool(const Example&)> function)
      : name_(std::move(name)), function_(std::move(function)) {}

  bool Apply(Example& example, const StageContext&) const override {
    return CallUserFunction(name_, [&] { return function_(example); });
  }

 private:
  std::string name_;
  std::function<bool(const Example&)> function_;
};

void Validate(const proto::Stage& message) { CheckFunctionName(message.filter().function()); }

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions& functions) {
  const std::string& name = message.filter().function();
  return std::make_unique<Filter>(name, FindFunction(functions.filters, name));
}

}  // namespace

extern const StageType kFilterStage;
const StageType kFilterStage = {
    .name = "filter",
    .help = "Leaves out the examples for which a function of the program's says no.",
    .sample = "function: \"name\"",
    .validate = &Validate,
    .make = &Make,
    .may_skip = true,
};

}  // namespace echopipe::internal
