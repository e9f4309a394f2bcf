#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

// The graph makes the node itself.
extern const StageType kBatchStage;
const StageType kBatchStage{.name = "batch",
                            .help = "Stacks examples along a new first axis.",
                            .sample = "size: 256",
                            .validate = nullptr,
                            .make = nullptr};

}  // namespace echopipe::internal
