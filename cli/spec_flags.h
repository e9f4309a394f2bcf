#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <echopipe/pipeline/spec.h>

namespace google::protobuf {
class FieldDescriptor;
}

namespace echopipe::cli {

/// The flags that describe a pipeline: one for each field of the spec and of its source, and one
/// for each kind of stage. They come from the messages and the stage registry, so that a new field
/// or stage has its flag at once.
class SpecFlags {
 public:
  enum class Parts {
    kAll,
    kRecords,  ///< where records are and how they are stored
  };

  /// Adds the flags to `command`, which must not be used after this has gone.
  explicit SpecFlags(CLI::App& command, Parts parts = Parts::kAll);
  SpecFlags(const SpecFlags&) = delete;
  SpecFlags& operator=(const SpecFlags&) = delete;

  /// `spec` with the fields given taking the place of its own, and the stages given after its own.
  /// Throws kInvalidArgument that names the flag.
  PipelineSpec AddTo(const PipelineSpec& spec) const;

 private:
  using Edit = std::function<void(proto::PipelineSpec&)>;

  void AddUris(CLI::App& command);
  void AddSourceFields(CLI::App& command, Parts parts);
  void AddSpecFields(CLI::App& command);
  void AddStages(CLI::App& command);
  template <class MessageOf>
  void AddField(CLI::App& command, const google::protobuf::FieldDescriptor& field,
                MessageOf message_of);
  CLI::Option* AddFlag(CLI::App& command, const std::string& name, const std::string& help,
                       std::function<Edit(std::string value)> edit_for);

  std::vector<std::string> uris_;
  std::vector<Edit> edits_;  // in the order of the command line
};

}  // namespace echopipe::cli
