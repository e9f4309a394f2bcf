#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <echopipe/base/export.h>
#include <echopipe/pipeline/example.h>

namespace echopipe {

namespace proto {
class PipelineSpec;
}
namespace internal {
struct UserFunctions;
}

/// Changes an example: it may put new tensors in the place of old ones. Called on many threads at
/// once. What it throws makes the example a bad one; std::bad_alloc ends the pipeline.
using MapFunction = std::function<void(Example&)>;
/// Tells whether an example stays. Called on many threads at once.
using FilterFunction = std::function<bool(const Example&)>;

/// What a pipeline is: its source and the ordered list of its stages (proto/pipeline.proto).
///
///     source { uri: "photos/" shuffle { full {} } epochs: 90 }
///     stage { decode {} }
///     stage { echo { factor: 3 shuffle_buffer: 4096 } }
///     stage { random_resized_crop { height: 224 width: 224 } }
///     stage { batch { size: 256 } }
///
/// The spec and the arguments of Pipeline::Open alone decide which examples come out, and in which
/// order. A value: cheap to copy, immutable.
/// Threads: any.
class ECHOPIPE_EXPORT PipelineSpec {
 public:
  PipelineSpec();
  explicit PipelineSpec(const proto::PipelineSpec& message);

  /// From the text form. Throws kInvalidArgument with `name`, line and column.
  static PipelineSpec FromText(std::string_view text, std::string_view name = "spec");
  std::string ToText() const;

  /// Another spec with this one's functions.
  PipelineSpec WithMessage(const proto::PipelineSpec& message) const;
  /// The same spec with a function for the map (filter) stages that call it by this name. Throws
  /// kInvalidArgument if the function is empty or there is one of that name; for other functions
  /// begin with PipelineSpec(message()), which has none.
  PipelineSpec WithMap(std::string name, MapFunction function) const;
  PipelineSpec WithFilter(std::string name, FilterFunction function) const;

  /// Throws kInvalidArgument with the field and the reason if this is not a whole pipeline; checks
  /// all that can be checked without touching storage.
  void Validate() const;

  const proto::PipelineSpec& message() const { return *message_; }
  const internal::UserFunctions& functions() const { return *functions_; }

 private:
  std::shared_ptr<const proto::PipelineSpec> message_;
  std::shared_ptr<const internal::UserFunctions> functions_;
};

}  // namespace echopipe
