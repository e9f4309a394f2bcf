#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <echopipe/base/error.h>
#include <echopipe/cli/spec_flags.h>
#include <echopipe/pipeline/stages/stage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct FieldHelp {
  std::string_view text;
  std::string_view sample;
};

FieldHelp HelpFor(const std::string& field) {
  static const std::map<std::string, FieldHelp, std::less<>> kHelp = {
      {"seed", {"Names all random numbers of the run.", "7"}},
      {"bad_examples",
       {"What happens to examples that cannot be read or decoded (SKIP, REPLACE by the next good "
        "one); by default the first one ends the run.",
        "policy: SKIP max_count: 10"}},
      {"steps_per_epoch",
       {"So many batches are an epoch, instead of a pass over the data.", "500"}},
      {"format",
       {"image_folder (one subfolder for each class), tar, tfrecord or manifest; by default as the "
        "names end.",
        "tfrecord"}},
      {"shuffle",
       {"full (of shards by their indexes: see echopipe index), or the size of a window; by "
        "default "
        "none.",
        "full"}},
      {"epochs", {"Passes over the data; 0 is endless. Default 1.", "3"}},
      {"take", {"An epoch ends after so many records.", "1000"}},
      {"tar",
       {"Which members of a tar sample are image and label.", "image: \"jpg\" label: \"cls\""}},
      {"weight", {"Of several sources (in a spec file): how often the first one is drawn.", "3"}},
      {"folder", {"The file of class names.", "classes: \"classes.txt\""}},
      {"tfrecord",
       {"Which features of a tf.train.Example are image, label and key.",
        "image: \"image/encoded\" label: \"image/class/label\""}},
      {"manifest",
       {"Which columns of a manifest are path and label.", "path: \"file\" label: \"class\""}},
  };
  const auto found = kHelp.find(field);
  return found == kHelp.end() ? FieldHelp{"A field of the spec, as text.", ""} : found->second;
}

// Keeps the parser's first error, which it would else print.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string& message) override {
    if (message_.empty()) message_ = message;
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

bool IsNumber(std::string_view text) {
  double number;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size();
}

bool TakesNumber(const FieldDescriptor& field) {
  return field.cpp_type() <= FieldDescriptor::CPPTYPE_FLOAT;
}

// A bare number stands for the message's first number, a bare name for its field of that name.
std::string LongForm(const Descriptor& message, const std::string& text) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (IsNumber(text) && TakesNumber(field)) return field.name() + ": " + text;
    if (text == field.name() && field.message_type() != nullptr) return text + " {}";
  }
  return text;
}

// The value as the text format has it.
std::string FieldText(const FieldDescriptor& field, std::string value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{" + LongForm(*field.message_type(), value) + "\n}";
    case FieldDescriptor::CPPTYPE_ENUM:
      std::ranges::transform(value, value.begin(),
                             [](char c) { return 'a' <= c && c <= 'z' ? c - 'a' + 'A' : c; });
      return value;
    default:
      return value;
  }
}

std::string FlagName(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::ranges::replace(name, '_', '-');
  return name;
}

void SetField(Message& message, const FieldDescriptor& field, const std::string& value,
              std::string_view sample) {
  message.GetReflection()->ClearField(&message, &field);
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFieldValueFromString(FieldText(field, value), &field, &message)) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = error.message().empty() ? "more than one value" : error.message(),
               .where = FlagName(field.name()),
               .got = value,
               .wanted = "for example " + std::string(sample)});
}

proto::Source& SourceOf(proto::PipelineSpec& spec) {
  return spec.source_size() == 0 ? *spec.add_source() : *spec.mutable_source(0);
}

// These say which records come when, not what they are.
bool IsOfOrder(std::string_view field) {
  return field == "shuffle" || field == "epochs" || field == "take";
}

std::string WithExample(std::string_view help, const std::string& flag, std::string_view sample) {
  const bool quoted = sample.find_first_of(" :\"") != std::string_view::npos;
  const std::string quote = quoted ? "'" : "";
  return std::string(help) + "\nExample: " + flag + " " + quote + std::string(sample) + quote;
}

}  // namespace

SpecFlags::SpecFlags(CLI::App& command, Parts parts) {
  AddUris(command);
  AddSourceFields(command, parts);
  if (parts == Parts::kRecords) return;
  AddSpecFields(command);
  AddStages(command);
}

CLI::Option* SpecFlags::AddFlag(CLI::App& command, const std::string& name, const std::string& help,
                                std::function<Edit(std::string)> edit_for) {
  const auto add = [this, edit_for = std::move(edit_for)](const std::string& value) {
    edits_.push_back(edit_for(value));
  };
  return command.add_option_function<std::string>(name, add, help)->trigger_on_parse();
}

void SpecFlags::AddUris(CLI::App& command) {
  command
      .add_option(
          "--source", uris_,
          "A folder of images, tar or TFRecord shards, or manifests (.csv, .jsonl); globs and "
          "brace lists are expanded. May be given more than once.\nExample: --source "
          "'shards/train-{000..127}.tar'")
      ->type_name("URI")
      ->allow_extra_args(false)
      ->group("Source");
}

template <class MessageOf>
void SpecFlags::AddField(CLI::App& command, const FieldDescriptor& field, MessageOf message_of) {
  const std::string flag = FlagName(field.name());
  const FieldHelp help = HelpFor(field.name());
  const auto edit_for = [&field, message_of, help](std::string value) -> Edit {
    return [&field, message_of, help, value = std::move(value)](proto::PipelineSpec& spec) {
      SetField(message_of(spec), field, value, help.sample);
    };
  };
  AddFlag(command, flag, WithExample(help.text, flag, help.sample), edit_for)->group("Source");
}

void SpecFlags::AddSourceFields(CLI::App& command, Parts parts) {
  const Descriptor& source = *proto::Source::descriptor();
  for (int i = 0; i < source.field_count(); ++i) {
    const FieldDescriptor& field = *source.field(i);
    if (field.is_repeated() || (parts == Parts::kRecords && IsOfOrder(field.name()))) continue;
    AddField(command, field, SourceOf);
  }
}

void SpecFlags::AddSpecFields(CLI::App& command) {
  const Descriptor& spec = *proto::PipelineSpec::descriptor();
  for (int i = 0; i < spec.field_count(); ++i) {
    if (spec.field(i)->is_repeated()) continue;
    AddField(command, *spec.field(i),
             [](proto::PipelineSpec& s) -> proto::PipelineSpec& { return s; });
  }
}

void SpecFlags::AddStages(CLI::App& command) {
  for (const internal::StageType* type : internal::StageTypes()) {
    const FieldDescriptor& field =
        *proto::Stage::descriptor()->FindFieldByName(std::string(type->name));
    // These call functions of a C++ program.
    if (field.message_type()->FindFieldByName("function") != nullptr) continue;
    const std::string flag = FlagName(type->name);
    const auto edit_for = [&field, type](std::string value) -> Edit {
      return [&field, type, value = std::move(value)](proto::PipelineSpec& spec) {
        SetField(*spec.add_stage(), field, value, type->sample);
      };
    };
    AddFlag(command, flag, WithExample(type->help, flag, type->sample), edit_for)
        ->expected(0, 1)
        ->type_name("FIELDS")
        ->group("Stages, in the order given");
  }
}

PipelineSpec SpecFlags::AddTo(const PipelineSpec& spec) const {
  proto::PipelineSpec message = spec.message();
  if (!uris_.empty()) *SourceOf(message).mutable_uri() = {uris_.begin(), uris_.end()};
  for (const Edit& edit : edits_) edit(message);
  return PipelineSpec(message);
}

}  // namespace echopipe::cli
