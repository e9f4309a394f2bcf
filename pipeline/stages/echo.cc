#include <echopipe/echo/echo_factor.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

// The graph makes the node itself; the options are checked where the batch size is known.
extern const StageType kEchoStage;
const StageType kEchoStage{
    .name = "echo",
    .help = "Repeats what passes, through a shuffle buffer.",
    .sample = "factor: 3 shuffle_buffer: 4096",
    .validate = [](const proto::Stage& stage) { EchoFactor{stage.echo().factor()}; },
    .make = nullptr};

}  // namespace echopipe::internal
