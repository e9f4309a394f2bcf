#include <string>

#include <echopipe/echo/echo_factor.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {
namespace {

// No low water mark is meant to last longer.
constexpr double kMostLowWaterMs = 86'400'000;

void RequireUnset(bool unset, const char* field, const std::string& got) {
  if (unset) return;
  ThrowInvalidField(field, "an adaptive echo has none", got, "it left out, or no adaptive");
}

void Validate(const proto::Stage& stage) {
  const proto::Echo& echo = stage.echo();
  if (!echo.has_adaptive()) {
    EchoFactor{echo.factor()};
    return;
  }
  RequireUnset(echo.factor() == 0, "echo.factor", std::to_string(echo.factor()));
  RequireUnset(!echo.grouped(), "echo.grouped", "true");
  RequireUnset(!echo.drain_each_epoch(), "echo.drain_each_epoch", "true");
  const double low_water = echo.adaptive().low_water_ms();
  if (!(low_water >= 0 && low_water <= kMostLowWaterMs)) {
    ThrowInvalidField("echo.adaptive.low_water_ms", "out of range", std::to_string(low_water),
                      "0 to a day");
  }
}

}  // namespace

// The graph makes the node itself; the options are checked where the batch size is known.
extern const StageType kEchoStage;
const StageType kEchoStage{.name = "echo",
                           .help = "Repeats what passes, through a shuffle buffer.",
                           .sample = "factor: 3 shuffle_buffer: 4096",
                           .validate = Validate,
                           .make = nullptr};

}  // namespace echopipe::internal
