#include <algorithm>
#include <string_view>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/io/formats/tf_example.h>
#include <echopipe/io/formats/webdataset.h>
#include <echopipe/io/source_format.h>

namespace echopipe::internal {
namespace {

[[noreturn]] void ThrowField(std::string field, std::string what, std::string got = {},
                             std::string wanted = {}) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = std::move(what),
               .where = std::move(field),
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool IsCompressed(std::string_view name) {
  constexpr std::string_view kEndings[] = {".tar.gz", ".tgz",         ".tar.zst",     ".tar.bz2",
                                           ".tar.xz", ".tfrecord.gz", ".tfrecords.gz"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// "train.tfrecord-00003-of-00128" -> "train.tfrecord"; TensorFlow's tools name shards so.
std::string_view WithoutCount(std::string_view name) {
  const auto without_digits = [](std::string_view text) {
    return text.substr(0, text.find_last_not_of("0123456789") + 1);
  };
  std::string_view rest = without_digits(name);
  if (rest.size() == name.size() || !rest.ends_with("-of-")) return name;
  const std::string_view number = rest.substr(0, rest.size() - 4);
  rest = without_digits(number);
  return rest.size() < number.size() && rest.ends_with('-') ? rest.substr(0, rest.size() - 1)
                                                            : name;
}

proto::Source::Format FormatOf(const proto::Source& spec, const std::string& name) {
  if (spec.format() != proto::Source::AUTO) return spec.format();
  if (IsCompressed(name)) {
    ThrowField("source.uri", "compressed shards are not read", name,
               "a name that ends in .tar or .tfrecord");
  }
  if (name.ends_with(".tar")) return proto::Source::TAR;
  const std::string_view plain = WithoutCount(name);
  if (plain.ends_with(".tfrecord") || plain.ends_with(".tfrecords")) return proto::Source::TFRECORD;
  return IsManifestName(name) ? proto::Source::MANIFEST : proto::Source::IMAGE_FOLDER;
}

std::string_view NameOf(proto::Source::Format format) {
  switch (format) {
    case proto::Source::TAR:
      return "tar shards";
    case proto::Source::TFRECORD:
      return "TFRecord shards";
    case proto::Source::MANIFEST:
      return "manifests";
    default:
      return "folders";
  }
}

std::vector<std::string> SplitExtensions(const std::string& field, const std::string& list) {
  std::vector<std::string> extensions;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(';', begin), list.size());
    extensions.push_back(Lower(list.substr(begin, end - begin)));
    if (extensions.back().empty()) ThrowField(field, "an extension is empty", list, "jpg;jpeg;png");
    begin = end + 1;
  }
  return extensions;
}

SampleMembers MembersOf(const proto::TarMembers& spec) {
  SampleMembers members;
  if (!spec.image().empty()) members.image = SplitExtensions("source.tar.image", spec.image());
  if (!spec.label().empty()) members.label = spec.label() == "-" ? "" : Lower(spec.label());
  const auto& image = members.image;
  if (std::find(image.begin(), image.end(), members.label) != image.end()) {
    ThrowField("source.tar.label", "the label member is an image member too", members.label);
  }
  return members;
}

ExampleFeatures FeaturesOf(const proto::TfRecordFeatures& spec) {
  ExampleFeatures features;
  if (!spec.image().empty()) features.image = spec.image();
  if (!spec.label().empty()) features.label = spec.label() == "-" ? "" : spec.label();
  if (!spec.key().empty()) features.key = spec.key();
  if (features.label == features.image) {
    ThrowField("source.tfrecord.label", "the label is the image too", features.label);
  }
  if (features.key == features.image) {
    ThrowField("source.tfrecord.key", "the key is the image too", features.image);
  }
  return features;
}

}  // namespace

proto::Source::Format FormatOf(const proto::Source& spec, const std::vector<std::string>& names) {
  const proto::Source::Format format = FormatOf(spec, names.at(0));
  for (const std::string& name : names) {
    const proto::Source::Format other = FormatOf(spec, name);
    if (other == format) continue;
    ThrowField(
        "source.uri",
        std::string(NameOf(format)) + " and " + std::string(NameOf(other)) + " in one source",
        names[0] + " and " + name);
  }
  for (const std::string& name : names) {
    if (format != proto::Source::MANIFEST || IsManifestName(name)) continue;
    ThrowField("source.uri", "no manifest", name, "a name that ends in .csv or .jsonl");
  }
  return format;
}

std::unique_ptr<const ShardFormat> ShardFormatOf(const proto::Source& spec,
                                                 proto::Source::Format format) {
  switch (format) {
    case proto::Source::TAR:
      return std::make_unique<WebDatasetFormat>(MembersOf(spec.tar()));
    case proto::Source::TFRECORD:
      return std::make_unique<TfExampleFormat>(FeaturesOf(spec.tfrecord()));
    default:
      return nullptr;
  }
}

ManifestColumns ColumnsOf(const proto::Source& spec) {
  ManifestColumns columns;
  if (!spec.manifest().path().empty()) columns.path = spec.manifest().path();
  const std::string& label = spec.manifest().label();
  if (!label.empty()) columns.label = label == "-" ? "" : label;
  if (columns.label == columns.path) {
    ThrowField("source.manifest.label", "the label is the path too", columns.path);
  }
  return columns;
}

}  // namespace echopipe::internal
