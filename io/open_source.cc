#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <echopipe/base/random.h>
#include <echopipe/io/file_source.h>
#include <echopipe/io/formats/image_folder.h>
#include <echopipe/io/formats/manifest.h>
#include <echopipe/io/glob.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/io/indexed_shards.h>
#include <echopipe/io/indexed_source.h>
#include <echopipe/io/mixed_source.h>
#include <echopipe/io/open_source.h>
#include <echopipe/io/shard_source.h>
#include <echopipe/io/source_format.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe {
namespace {

using internal::EpochOptions;

// Their order takes memory for each; far above any real use.
constexpr uint64_t kMaxWindow = 100'000'000;
constexpr uint64_t kMaxEpochs = uint64_t{1} << 32;
// Over a network it would take too long to ask for more shards.
constexpr size_t kMostShardsAskedFor = 1000;
constexpr size_t kMostShardsNamed = 3;
constexpr int kMostUrisNamed = 3;
constexpr size_t kMostSources = 64;
constexpr uint32_t kMaxWeight = 1'000'000;

[[noreturn]] void ThrowField(const std::string& field, std::string what, std::string got = {},
                             std::string wanted = {}) {
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = std::move(what),
               .where = field,
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

// "s3://..." is no folder called "s3:".
void CheckScheme(const std::string& uri) {
  const size_t end = uri.find("://");
  const auto is_letter = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
  };
  if (end == std::string::npos || end == 0 || internal::IsHttpUri(uri)) return;
  if (!std::all_of(uri.begin(), uri.begin() + static_cast<std::ptrdiff_t>(end), is_letter)) return;
  ThrowField("source.uri", "no such scheme", uri, "http://, https:// or a path");
}

EpochOptions EpochsOf(const proto::Source& spec, const SourceOptions& options) {
  EpochOptions epochs{.seed = options.seed,
                      .epochs = spec.has_epochs() ? spec.epochs() : 1,
                      .take = spec.take(),
                      .shard = options.shard};
  if (spec.shuffle().has_full()) epochs.shuffle = EpochOptions::Shuffle::kFull;
  if (spec.shuffle().kind_case() == proto::Shuffle::kWindow) {
    epochs.shuffle = EpochOptions::Shuffle::kWindow;
    epochs.window = spec.shuffle().window();
  }
  return epochs;
}

void CheckOptions(const proto::Source& spec, const SourceOptions& options) {
  const Shard& shard = options.shard;
  if (shard.world == 0 || shard.rank >= shard.world) {
    ThrowField("rank", "out of range", std::to_string(shard.rank),
               "less than the world's " + std::to_string(shard.world));
  }
  if (options.limits.reads_in_flight < 1) {
    ThrowField("reads_in_flight", "out of range", std::to_string(options.limits.reads_in_flight),
               "at least 1");
  }
  if (options.limits.bytes_in_flight < 1) {
    ThrowField("bytes_in_flight", "out of range", "0", "at least 1");
  }
  if (spec.take() != 0 && spec.take() < shard.world) {
    ThrowField("source.take", "fewer records than there are ranks", std::to_string(spec.take()),
               "at least " + std::to_string(shard.world));
  }
}

// The window's own part of a state is checked where the window is restored.
void CheckState(const SourceState& state, uint64_t files, uint64_t shards) {
  const auto check = [](bool possible, std::string what) {
    if (!possible) ThrowField("source state", std::move(what));
  };
  check(state.residents.size() == state.window.drawable.size(),
        "the residents do not fit to the window");
  check(state.window.blocked.empty(), "a shuffle window blocks no item");
  check(state.mixed.empty(), "one of several sources");
  check(state.late.empty() || shards == 0, "shards are read in order");
  check(state.shard <= shards, "no such shard");
  check(state.shard < shards || state.byte_offset == 0, "no such shard");
  for (const SourceState::Resident& resident : state.residents) {
    check(resident.place.file < files, "no such file");
  }
}

std::vector<std::string> ExpandAll(const proto::Source& spec, Storage& storage) {
  std::vector<std::string> names;
  for (const std::string& uri : spec.uri()) {
    std::vector<std::string> expanded = internal::ExpandUri(uri, storage);
    std::move(expanded.begin(), expanded.end(), std::back_inserter(names));
  }
  return names;
}

// Shards that a pattern has found are there.
void CheckShardsAreThere(const proto::Source& spec, Storage& storage) {
  std::vector<std::string> names;
  for (const std::string& uri : spec.uri()) {
    std::vector<std::string> plain = internal::PlainNames(uri);
    std::move(plain.begin(), plain.end(), std::back_inserter(names));
  }
  if (names.size() > kMostShardsAskedFor) return;
  const std::vector<Result<uint64_t>> sizes = storage.Sizes(names);
  std::vector<std::string> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    if (sizes[i].ok()) continue;
    const Error& error = sizes[i].error();
    if (error.code() == ErrorCode::kUnavailable) throw error;
    if (error.code() == ErrorCode::kNotFound) missing.push_back(names[i]);
  }
  if (missing.empty()) return;
  std::string named = missing[0];
  for (size_t i = 1; i < std::min(missing.size(), kMostShardsNamed); ++i)
    named += ", " + missing[i];
  if (missing.size() > kMostShardsNamed) named += ", ...";
  throw Error({.code = ErrorCode::kNotFound,
               .what = std::to_string(missing.size()) + " of " + std::to_string(names.size()) +
                       " shards are not there: " + named,
               .where = "source.uri"});
}

// As a shell takes it for one word.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// What makes the indexes of the spec's shards, as errors say it.
std::string IndexCommand(const proto::Source& spec, proto::Source::Format format) {
  if (std::ranges::any_of(spec.uri(), internal::IsHttpUri)) {
    return "the indexes that \"echopipe index\" makes before the shards are uploaded, beside them";
  }
  std::string command = "echopipe index";
  if (spec.format() != proto::Source::AUTO) {
    command += format == proto::Source::TAR ? " --format tar" : " --format tfrecord";
  }
  for (int i = 0; i < std::min(spec.uri_size(), kMostUrisNamed); ++i) {
    command += " " + Quoted(spec.uri(i));
  }
  if (spec.uri_size() > kMostUrisNamed) command += " ...";
  return command;
}

// "photos/: 500 images in 500 classes; passed over: 2 hidden, 1 of another kind"
std::string Describe(const internal::FolderListing& listing, const std::string& name) {
  const internal::PassedOver& over = listing.passed_over();
  std::string text = name + ": " + std::to_string(listing.size()) + " images";
  if (!listing.classes().empty()) {
    text += " in " + std::to_string(listing.classes().size()) + " classes";
  }
  const std::pair<uint64_t, const char*> counts[] = {{over.hidden, "hidden"},
                                                     {over.foreign, "of another kind"},
                                                     {over.in_root, "beside the class folders"},
                                                     {over.dangling, "links that lead nowhere"},
                                                     {over.cycles, "links in a circle"}};
  std::string passed;
  for (const auto& [count, what] : counts) {
    if (count > 0) passed += (passed.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  }
  return passed.empty() ? text : text + "; passed over: " + passed;
}

std::unique_ptr<const internal::FileListing> ListFiles(
    const proto::Source& spec, proto::Source::Format format, const std::vector<std::string>& names,
    Storage& storage, const std::function<void(std::string_view)>& log) {
  const std::string name = names[0] + (names.size() > 1 ? ", ..." : "");
  if (format == proto::Source::MANIFEST) {
    auto listing = std::make_unique<internal::ManifestListing>(
        internal::ReadManifests(names, internal::ColumnsOf(spec), storage));
    if (log) log(name + ": " + std::to_string(listing->size()) + " files");
    return listing;
  }
  auto listing = std::make_unique<internal::FolderListing>(
      internal::ListImageFolders(names, spec.folder().classes(), storage));
  if (log) log(Describe(*listing, name));
  return listing;
}

// Of one of several sources: its share of the limits, and an order of its own.
SourceOptions PartOptions(const SourceOptions& options, size_t index, size_t parts) {
  SourceOptions part = options;
  if (index > 0) part.seed = HashToKey(std::array<uint64_t, 2>{options.seed, index}).low;
  part.limits.reads_in_flight =
      std::max(1, options.limits.reads_in_flight / static_cast<int>(parts));
  part.limits.bytes_in_flight = std::max<uint64_t>(1, options.limits.bytes_in_flight / parts);
  if (options.start) part.start = options.start->mixed[index];
  return part;
}

}  // namespace

void ValidateSource(const proto::Source& spec) {
  if (spec.uri().empty()) ThrowField("source.uri", "no uri is given");
  std::vector<std::string> names;
  for (const std::string& uri : spec.uri()) {
    if (uri.empty()) ThrowField("source.uri", "a uri is empty");
    CheckScheme(uri);
    try {
      std::vector<std::string> expanded = internal::ExpandBraces(uri);
      std::move(expanded.begin(), expanded.end(), std::back_inserter(names));
    } catch (const Error& error) {
      ThrowField("source.uri", error.details().what, uri, error.details().wanted);
    }
  }
  if (!proto::Source::Format_IsValid(spec.format())) {
    ThrowField("source.format", "no such format", std::to_string(spec.format()));
  }
  internal::FormatOf(spec, names);
  if (spec.shuffle().kind_case() == proto::Shuffle::kWindow &&
      (spec.shuffle().window() < 1 || spec.shuffle().window() > kMaxWindow)) {
    ThrowField("source.shuffle.window", "out of range", std::to_string(spec.shuffle().window()),
               "1 to " + std::to_string(kMaxWindow));
  }
  if (spec.epochs() > kMaxEpochs) {
    ThrowField("source.epochs", "out of range", std::to_string(spec.epochs()),
               "0 to " + std::to_string(kMaxEpochs));
  }
  if (spec.take() > uint64_t{1} << 62) {
    ThrowField("source.take", "out of range", std::to_string(spec.take()), "0 to 2^62");
  }
  for (const proto::Source::Format format : {proto::Source::TAR, proto::Source::TFRECORD}) {
    internal::ShardFormatOf(spec, format);
  }
  internal::ColumnsOf(spec);
  if (spec.has_weight() && (spec.weight() < 1 || spec.weight() > kMaxWeight)) {
    ThrowField("source.weight", "out of range", std::to_string(spec.weight()),
               "1 to " + std::to_string(kMaxWeight));
  }
}

void ValidateSources(std::span<const proto::Source* const> specs) {
  if (specs.empty()) ThrowField("source", "a pipeline has a source", "none", "one or more");
  if (specs.size() > kMostSources) {
    ThrowField("source", "too many sources", std::to_string(specs.size()),
               "at most " + std::to_string(kMostSources));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    try {
      ValidateSource(*specs[i]);
      if (i > 0 && specs[i]->has_epochs()) {
        ThrowField("source.epochs",
                   "epochs are the first source's; the others begin anew as needed",
                   std::to_string(specs[i]->epochs()), "none");
      }
    } catch (const Error& error) {
      throw error.Within("source[" + std::to_string(i) + "]");
    }
  }
}

std::unique_ptr<Source> OpenSource(const proto::Source& spec, std::shared_ptr<Storage> storage,
                                   BufferPool& pool, SourceOptions options) {
  ValidateSource(spec);
  CheckOptions(spec, options);
  std::vector<std::string> names = ExpandAll(spec, *storage);
  const proto::Source::Format format = internal::FormatOf(spec, names);
  const EpochOptions epochs = EpochsOf(spec, options);
  const SourceState start = options.start.value_or(SourceState{});
  if (std::unique_ptr<const internal::ShardFormat> shards = internal::ShardFormatOf(spec, format)) {
    CheckShardsAreThere(spec, *storage);
    if (epochs.shuffle == EpochOptions::Shuffle::kFull) {
      CheckState(start, names.size(), 0);
      internal::IndexedShards indexed = internal::LoadIndexedShards(
          std::move(names), format, IndexCommand(spec, format), *storage);
      return std::make_unique<internal::IndexedSource>(
          std::move(indexed), std::move(shards), epochs, options.order, start, std::move(storage),
          pool, options.limits, std::move(options.wake));
    }
    CheckState(start, names.size(), names.size());
    return std::make_unique<internal::ShardSource>(std::move(names), std::move(shards), epochs,
                                                   start, std::move(storage), pool, options.limits,
                                                   std::move(options.wake));
  }
  std::unique_ptr<const internal::FileListing> listing =
      ListFiles(spec, format, names, *storage, options.log);
  CheckState(start, listing->size(), 0);
  return std::make_unique<internal::FileSource>(std::move(listing), epochs, options.order, start,
                                                options.max_record_bytes, std::move(storage), pool,
                                                options.limits, std::move(options.wake));
}

std::unique_ptr<Source> OpenSources(std::span<const proto::Source* const> specs,
                                    const std::shared_ptr<Storage>& storage, BufferPool& pool,
                                    SourceOptions options) {
  ValidateSources(specs);
  if (specs.size() == 1) return OpenSource(*specs[0], storage, pool, std::move(options));
  const SourceState start = options.start.value_or(SourceState{});
  if (options.start && start.mixed.size() != specs.size()) {
    ThrowField("source state", "of another number of sources", std::to_string(start.mixed.size()),
               std::to_string(specs.size()));
  }
  std::vector<internal::MixedSource::Part> parts;
  for (size_t i = 0; i < specs.size(); ++i) {
    proto::Source spec = *specs[i];
    if (i > 0) spec.set_epochs(0);
    parts.push_back(
        {.source = OpenSource(spec, storage, pool, PartOptions(options, i, specs.size())),
         .weight = spec.has_weight() ? spec.weight() : 1});
  }
  return std::make_unique<internal::MixedSource>(std::move(parts), options.seed, options.shard,
                                                 start);
}

}  // namespace echopipe
