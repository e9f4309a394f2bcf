#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <echopipe/base/error.h>
#include <echopipe/base/mutex.h>
#include <echopipe/cli/count_flag.h>
#include <echopipe/cli/inspect_command.h>
#include <echopipe/cli/numbers.h>
#include <echopipe/cli/plan_report.h>
#include <echopipe/cli/printable.h>
#include <echopipe/pipeline/graph/bad_examples.h>
#include <echopipe/pipeline/stages/image_codec.h>

namespace echopipe::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kDescription = "Tells what a source holds, or how a pipeline would run.";
constexpr const char* kFooter =
    "Reads every record once, and of its image the header alone; to decode them all: verify.\n"
    "With --plan it reads a few examples for their sizes, if they are on this machine.\n\n"
    "  echopipe inspect --source photos/\n"
    "  echopipe inspect --source 'shards/train-{000..127}.tar' --json\n"
    "  echopipe inspect spec.txt --plan\n";

constexpr const char* kImage = "image";

std::string NameOf(internal::ImageInfo::Format format) {
  switch (format) {
    case internal::ImageInfo::Format::kJpeg:
      return "JPEG";
    case internal::ImageInfo::Format::kPng:
      return "PNG";
    case internal::ImageInfo::Format::kWebp:
      return "WebP";
    case internal::ImageInfo::Format::kBmp:
      break;
  }
  return "BMP";
}

std::string NameOf(int channels) {
  constexpr std::array kNames = {"grey", "grey and alpha", "colour", "four channels"};
  return kNames.at(static_cast<size_t>(channels) - 1);
}

/// How often each value came. Bounded by the values there can be.
template <class Value>
class Tally {
 public:
  void Add(const Value& value) { ++counts_[value]; }
  bool empty() const { return counts_.empty(); }
  const std::map<Value, uint64_t>& counts() const { return counts_; }
  const Value& least() const { return counts_.begin()->first; }
  const Value& most() const { return counts_.rbegin()->first; }
  /// The lower one of an even number. Precondition: not empty.
  const Value& median() const {
    uint64_t all = 0;
    for (const auto& [value, count] : counts_) all += count;
    uint64_t seen = 0;
    for (const auto& [value, count] : counts_) {
      seen += count;
      if (2 * seen >= all) return value;
    }
    return most();
  }
  /// The least and the largest of the counts. Precondition: not empty.
  std::pair<uint64_t, uint64_t> count_range() const {
    const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [least, most] = std::ranges::minmax_element(counts_, by_count);
    return {least->second, most->second};
  }

 private:
  std::map<Value, uint64_t> counts_;
};

/// An example as a person is shown it.
struct Sight {
  std::string name;
  std::optional<int64_t> label = {};
  std::string image = {};  // "JPEG 500 x 375", or what is wrong with it
  std::vector<std::string> members = {};
};

/// What an image's header says; neither, where there is no image.
struct Header {
  std::optional<internal::ImageInfo> info = {};
  std::string error = {};
};

Header HeaderOf(const Tensor& image) {
  try {
    return {.info = internal::ReadImageInfo(image.bytes(), {})};
  } catch (const Error& error) {
    return {.error = error.what()};
  }
}

std::string TextOf(const internal::ImageInfo& info) {
  return NameOf(info.format) + " " + std::to_string(info.width) + " x " +
         std::to_string(info.height) + ", " + NameOf(info.channels);
}

/// What examples hold. Threads: Add() from any.
class Contents {
 public:
  explicit Contents(uint64_t first) : first_(first) {}

  void Add(const Example& example);
  void AddBad() {
    MutexLock lock(mutex_);
    ++bad_;
  }

  std::string Text(const PipelineStats& stats) const;
  std::string Json(const PipelineStats& stats, bool complete) const;

 private:
  void AddHeader(const Header& header) ECHOPIPE_REQUIRES(mutex_);

  const uint64_t first_;
  mutable Mutex mutex_;
  uint64_t bad_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t unlabelled_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  uint64_t unknown_ ECHOPIPE_GUARDED_BY(mutex_) = 0;  // images whose header cannot be read
  Tally<std::string> formats_ ECHOPIPE_GUARDED_BY(mutex_);
  Tally<std::string> colors_ ECHOPIPE_GUARDED_BY(mutex_);
  Tally<int> widths_ ECHOPIPE_GUARDED_BY(mutex_);
  Tally<int> heights_ ECHOPIPE_GUARDED_BY(mutex_);
  Tally<int64_t> labels_ ECHOPIPE_GUARDED_BY(mutex_);
  Tally<std::string> members_ ECHOPIPE_GUARDED_BY(mutex_);
  std::map<uint64_t, Sight> sights_ ECHOPIPE_GUARDED_BY(mutex_);  // the first, by ordinal
};

void Contents::Add(const Example& example) {
  // Headers are read in parallel.
  const Tensor* image = example.Find(kImage);
  const Header header =
      image != nullptr && image->dtype() == DType::kBytes ? HeaderOf(*image) : Header();
  const Provenance& from = example.provenance();
  MutexLock lock(mutex_);
  AddHeader(header);
  if (example.label()) {
    labels_.Add(*example.label());
  } else {
    ++unlabelled_;
  }
  const uint64_t ordinal = from.identity.ordinal;
  const bool is_shown =
      first_ > 0 && (sights_.size() < first_ || ordinal < sights_.rbegin()->first);
  Sight sight;
  for (const Example::Feature& feature : example.features()) {
    if (feature.name == kImage) continue;
    members_.Add(feature.name);
    if (is_shown) sight.members.push_back(feature.name);
  }
  if (!is_shown) return;
  sight.name = internal::RecordName(*from.uri, from.key);
  sight.label = example.label();
  sight.image = header.info ? TextOf(*header.info) : header.error;
  sights_.emplace(ordinal, std::move(sight));
  if (sights_.size() > first_) sights_.erase(std::prev(sights_.end()));
}

void Contents::AddHeader(const Header& header) {
  if (!header.error.empty()) ++unknown_;
  if (!header.info) return;
  formats_.Add(NameOf(header.info->format));
  colors_.Add(NameOf(header.info->channels));
  widths_.Add(header.info->width);
  heights_.Add(header.info->height);
}

// "JPEG 498, PNG 2".
std::string Listed(const Tally<std::string>& tally) {
  std::string text;
  for (const auto& [value, count] : tally.counts()) {
    text += (text.empty() ? "" : ", ") + value + " " + WithCommas(count);
  }
  return text;
}

// "3 to 5", or "3".
template <class Number>
std::string Range(Number least, Number most) {
  const std::string text = std::to_string(least);
  return least == most ? text : text + " to " + std::to_string(most);
}

std::string Spread(const Tally<int>& tally) {
  const std::string range = Range(tally.least(), tally.most());
  return tally.counts().size() < 3 ? range : range + ", median " + std::to_string(tally.median());
}

std::string Line(const std::string& name, const std::string& text) {
  return name + std::string(10 - name.size(), ' ') + text + "\n";
}

std::string Contents::Text(const PipelineStats& stats) const {
  MutexLock lock(mutex_);
  std::string text = Line("records", WithCommas(stats.records) + ", " + Bytes(stats.bytes_read));
  if (bad_ > 0) text += Line("bad", WithCommas(bad_) + " cannot be read; verify names them");
  if (!formats_.empty()) {
    text += Line("images", Listed(formats_));
    text += Line("", Listed(colors_));
    text += Line("width", Spread(widths_)) + Line("height", Spread(heights_));
  }
  if (unknown_ > 0) {
    text += Line("unknown", WithCommas(unknown_) + " are no images that are read here, or broken");
  }
  if (!labels_.empty()) {
    const auto [least, most] = labels_.count_range();
    text += Line("labels", WithCommas(labels_.counts().size()) + ": " +
                               Range(labels_.least(), labels_.most()) +
                               "; records of each: " + Range(least, most));
  }
  if (unlabelled_ > 0) text += Line("", WithCommas(unlabelled_) + " without a label");
  if (!members_.empty()) text += Line("members", Listed(members_));
  for (const auto& [ordinal, sight] : sights_) {
    const std::string label = sight.label ? "label " + std::to_string(*sight.label) : "no label";
    text += Line(ordinal == sights_.begin()->first ? "first" : "",
                 Printable(sight.name) + ": " + label +
                     (sight.image.empty() ? "" : ", " + Printable(sight.image)));
  }
  return text;
}

ordered_json SpreadJson(const Tally<int>& tally) {
  if (tally.empty()) return nullptr;
  return {{"least", tally.least()}, {"median", tally.median()}, {"most", tally.most()}};
}

std::string Contents::Json(const PipelineStats& stats, bool complete) const {
  MutexLock lock(mutex_);
  ordered_json labels = ordered_json::object();
  for (const auto& [label, count] : labels_.counts()) labels[std::to_string(label)] = count;
  ordered_json first = ordered_json::array();
  for (const auto& [ordinal, sight] : sights_) {
    first.push_back({{"name", sight.name},
                     {"label", sight.label ? ordered_json(*sight.label) : ordered_json()},
                     {"image", sight.image},
                     {"members", sight.members}});
  }
  const ordered_json json = {{"records", stats.records},       {"bytes_read", stats.bytes_read},
                             {"complete", complete},           {"bad_count", bad_},
                             {"formats", formats_.counts()},   {"colors", colors_.counts()},
                             {"unknown_images", unknown_},     {"width", SpreadJson(widths_)},
                             {"height", SpreadJson(heights_)}, {"labels", std::move(labels)},
                             {"unlabelled", unlabelled_},      {"members", members_.counts()},
                             {"first", std::move(first)}};
  // Names of files need not be UTF-8, and may hold what a terminal takes for commands.
  return json.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace

InspectCommand::InspectCommand(CLI::App& app)
    : command_(app.add_subcommand("inspect", kDescription)), pass_(*command_) {
  command_->footer(kFooter);
  AddCountFlag(*command_, "--first", first_, {0, 1000}, "Show so many examples.")
      ->default_str(std::to_string(first_))
      ->group("Output");
  command_
      ->add_flag("--plan", plan_,
                 "Tell how the spec's pipeline would run: segments, echo points, buffers, windows, "
                 "and about how much memory they take.")
      ->group("Output");
  command_->add_flag("--json", json_, "One JSON object, instead of lines.")->group("Output");
}

ExitCode InspectCommand::Run() {
  if (plan_) {
    const PlanReport report(pass_.given_spec(), pass_.runtime());
    std::cout << (json_ ? report.Json() + "\n" : report.Text());
    return kOk;
  }
  Contents contents(first_);
  const PassResult result = pass_.Run(
      SourcePass::Depth::kRead, {.look = [&](const Example& example) { contents.Add(example); },
                                 .on_bad = [&](const BadExample&) { contents.AddBad(); }});
  const bool is_interrupted = result.end == PassResult::End::kInterrupted;
  if (json_) {
    std::cout << contents.Json(result.stats, result.end == PassResult::End::kData) << "\n";
  } else {
    if (is_interrupted) std::cout << "Interrupted; so far:\n";
    std::cout << contents.Text(result.stats);
  }
  if (result.error) {
    std::cerr << "echopipe: " << Printable(result.error->what()) << "\n";
    return kFailed;
  }
  return is_interrupted ? kInterrupted : kOk;
}

}  // namespace echopipe::cli
