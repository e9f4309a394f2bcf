#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/base/read_file.h>
#include <echopipe/base/replace_file.h>
#include <echopipe/cli/console.h>
#include <echopipe/cli/count_flag.h>
#include <echopipe/cli/index_command.h>
#include <echopipe/cli/interrupt.h>
#include <echopipe/cli/numbers.h>
#include <echopipe/cli/printable.h>
#include <echopipe/cli/spec_file.h>
#include <echopipe/cli/status_ticker.h>
#include <echopipe/io/formats/shard_index.h>
#include <echopipe/io/glob.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/io/index_shard.h>
#include <echopipe/io/open_source.h>
#include <echopipe/io/source_format.h>
#include <echopipe/pipeline/graph/cpus.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::cli {
namespace {

using internal::ShardIndex;

constexpr const char* kDescription = "Makes the indexes that a full shuffle of shards needs.";
constexpr const char* kFooter =
    "Reads each tar or TFRecord shard once and writes where its samples are beside it, as\n"
    "SHARD.echopipe-index. A shard whose index fits is passed over. Shards for a server are "
    "indexed\n"
    "before they are uploaded, with their indexes.\n\n"
    "  echopipe index 'shards/train-{000..127}.tar'\n"
    "  echopipe index --format tfrecord 'train-*-of-01024'\n";
constexpr std::string_view kIndex = "index";

struct Shard {
  std::string path;
  proto::Source::Format format = proto::Source::TAR;
  std::shared_ptr<const internal::ShardFormat> reader;
};

void CheckLocal(const std::string& uri) {
  for (const std::string& name : internal::ExpandBraces(uri)) {
    if (!internal::IsHttpUri(name)) continue;
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "an index is made where the shard's file is: index the shards before they "
                         "are uploaded, and upload the indexes beside them",
                 .where = name});
  }
}

// Of a spec that mixes them, the other sources need no index.
void AddShards(const proto::Source& source, Storage& storage, std::vector<Shard>* shards) {
  for (const std::string& uri : source.uri()) CheckLocal(uri);
  ValidateSource(source);
  std::vector<std::string> names;
  for (const std::string& uri : source.uri()) {
    std::ranges::move(internal::ExpandUri(uri, storage), std::back_inserter(names));
  }
  const proto::Source::Format format = internal::FormatOf(source, names);
  const std::shared_ptr<const internal::ShardFormat> reader =
      internal::ShardFormatOf(source, format);
  if (!reader) return;
  for (std::string& name : names) {
    shards->push_back({.path = std::move(name), .format = format, .reader = reader});
  }
}

/// Makes indexes, on several threads.
class Indexing {
 public:
  Indexing(std::vector<Shard> shards, Storage& storage, Console& console, std::stop_token stop)
      : shards_(std::move(shards)), storage_(storage), console_(console), stop_(std::move(stop)) {}

  void Run(int threads) {
    std::vector<std::jthread> workers;
    for (int i = 1; i < threads; ++i) workers.emplace_back([this] { Work(); });
    Work();
  }

  bool failed() const { return failed_ > 0; }

  std::string Text() const {
    std::string text = WithCommas(made_) + " of " + WithCommas(shards_.size()) + " shards indexed";
    if (samples_ > 0) {
      text += ", " + WithCommas(samples_) + (samples_ == 1 ? " sample, " : " samples, ") +
              Bytes(bytes_);
    }
    if (fit_ > 0) text += "; " + WithCommas(fit_) + " had an index that fits";
    if (failed_ > 0) text += "; " + WithCommas(failed_) + " failed";
    return text;
  }

 private:
  void Work() {
    for (size_t i = next_++; i < shards_.size() && !stop_.stop_requested(); i = next_++) {
      try {
        Index(shards_[i]);
      } catch (const std::exception& error) {
        if (stop_.stop_requested()) return;
        ++failed_;
        console_.ClearStatus();
        std::cerr << "echopipe: " + Printable(error.what()) + "\n";
      }
    }
  }

  void Index(const Shard& shard) {
    const std::string path = internal::IndexNameOf(shard.path);
    CheckOverwritable(path, std::string(kIndex), std::string(ShardIndex::kMagic));
    if (HasOneThatFits(shard)) {
      ++fit_;
      return;
    }
    const ShardIndex index = internal::IndexShard(
        shard.path, shard.format, *shard.reader, storage_, pool_, [&](uint64_t bytes) {
          bytes_ += bytes;
          if (!stop_.stop_requested()) return;
          throw Error({.code = ErrorCode::kStopped, .what = "interrupted", .where = shard.path});
        });
    ReplaceFile(path, index.ToBytes(path));
    samples_ += index.samples.size();
    ++made_;
  }

  // Whatever is wrong with it, a new one mends that.
  bool HasOneThatFits(const Shard& shard) {
    try {
      const std::string path = internal::IndexNameOf(shard.path);
      const ShardIndex index = ShardIndex::FromBytes(
          ReadWholeFile(path, std::string(kIndex), ShardIndex::kMaxBytes), path);
      return index.format == shard.format &&
             internal::FitToShards({&index, 1}, {&shard.path, 1}, storage_, pool_).at(0);
    } catch (const Error&) {
      return false;
    }
  }

  const std::vector<Shard> shards_;
  Storage& storage_;
  Console& console_;
  const std::stop_token stop_;
  BufferPool pool_;
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> made_{0};
  std::atomic<uint64_t> fit_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> samples_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace

IndexCommand::IndexCommand(CLI::App& app)
    : command_(app.add_subcommand("index", kDescription)),
      spec_flags_(*command_, SpecFlags::Parts::kRecords) {
  command_->footer(kFooter);
  command_->add_option("URI", uris_, "Shards, as --source names them.");
  command_->add_option("--spec", spec_file_,
                       "The file of a spec in protobuf's text format, or - for standard input: the "
                       "shards of its sources.");
  AddCountFlag(*command_, "--threads", threads_, {0, 1024},
               "Shards read at once. 0, the default: as many as there are CPUs.")
      ->group("Runtime");
  command_->add_flag("-q,--quiet", quiet_, "No progress.")->group("Output");
}

PipelineSpec IndexCommand::GivenSpec() const {
  proto::PipelineSpec message =
      spec_flags_.AddTo(spec_file_.empty() ? PipelineSpec() : ReadSpec(spec_file_)).message();
  for (const std::string& uri : uris_) {
    // "shards/*", as the shell expands it.
    if (internal::IsIndexName(uri)) continue;
    if (message.source_size() == 0) message.add_source();
    message.mutable_source(0)->add_uri(uri);
  }
  if (message.source_size() == 0) {
    throw Error({.code = ErrorCode::kInvalidArgument, .what = "no shard is given", .where = "URI"});
  }
  return PipelineSpec(message);
}

ExitCode IndexCommand::Run() {
  const int threads = threads_ > 0 ? threads_ : internal::AvailableCpus();
  const std::shared_ptr<Storage> storage = MakeLocalStorage(threads);
  const PipelineSpec spec = GivenSpec();
  std::vector<Shard> shards;
  for (const proto::Source& source : spec.message().source()) {
    AddShards(source, *storage, &shards);
  }
  if (shards.empty()) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "only tar and TFRecord shards have an index; the files of folders and "
                         "manifests are read one by one as they are",
                 .where = "source.uri"});
  }
  const Interrupt interrupt;
  Console console(quiet_);
  Indexing indexing(std::move(shards), *storage, console, interrupt.token());
  {
    const StatusTicker ticker(console, [&] { return indexing.Text(); });
    indexing.Run(threads);
  }
  if (interrupt.token().stop_requested()) std::cout << "Interrupted.\n";
  std::cout << indexing.Text() << "\n";
  if (interrupt.token().stop_requested()) return kInterrupted;
  return indexing.failed() ? kFailed : kOk;
}

}  // namespace echopipe::cli
