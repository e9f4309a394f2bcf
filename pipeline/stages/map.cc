#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/pipeline/stages/user_function.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

class Map final : public Stage {
 public:
  Map(std::string name, std::function<void(Example&)> function)
      : name_(std::move(name)), function_(std::move(function)) {}

  bool Apply(Example& example, const StageContext&) const override {
    CallUserFunction(name_, [&] { function_(example); });
    return true;
  }

 private:
  std::string name_;
  std::function<void(Example&)> function_;
};

void Validate(const proto::Stage& message) { CheckFunctionName(message.map().function()); }

std::unique_ptr<Stage> Make(const proto::Stage& message, const UserFunctions& functions) {
  const std::string& name = message.map().function();
  return std::make_unique<Map>(name, FindFunction(functions.maps, name));
}

}  // namespace

extern const StageType kMapStage;
const StageType kMapStage = {
    .name = "map",
    .help = "Calls a function of the program's on every example.",
    .sample = "function: \"name\"",
    .validate = &Validate,
    .make = &Make,
};

}  // namespace echopipe::internal
