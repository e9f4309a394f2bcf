#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/io/open_source.h>
#include <echopipe/io/source.h>
#include <echopipe/proto/pipeline.pb.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/tar_builder.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::testing {

inline proto::Source ParseSpec(const std::string& text) {
  proto::Source spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

/// "epoch.ordinal key label=1 image=..." and "END" for the last of an epoch, or the error's code.
inline std::string Describe(const SourceItem& item) {
  std::string text =
      std::to_string(item.epoch) + "." + std::to_string(item.ordinal) + " " + item.key;
  if (item.error) text += " " + std::string(ToString(item.error->code()));
  if (item.record) {
    if (item.record->label) text += " label=" + std::to_string(*item.record->label);
    for (const Record::Member& member : item.record->members) {
      const std::span<const uint8_t> bytes = member.bytes->bytes();
      const std::string data(bytes.begin(), bytes.end());
      text += " " + member.name + "=" +
              (data.size() < 40 ? data
                                : std::to_string(std::hash<std::string>()(data)) + "#" +
                                      std::to_string(data.size()));
    }
  }
  if (item.ends_epoch) text += " END";
  return text;
}

/// A source over a gated storage, whose reads complete in random order.
class SourceHarness {
 public:
  SourceHarness(const proto::Source& spec, std::shared_ptr<FakeStorage> storage,
                SourceOptions options, uint64_t completion_seed = 0)
      : SourceHarness(std::vector{spec}, std::move(storage), std::move(options), completion_seed) {}

  /// Several are mixed.
  SourceHarness(const std::vector<proto::Source>& specs, std::shared_ptr<FakeStorage> storage,
                SourceOptions options, uint64_t completion_seed = 0)
      : storage_(std::move(storage)),
        limits_(options.limits),
        random_({.low = completion_seed, .high = 7}),
        in_order_(completion_seed == 0) {
    options.wake = [this] { ++wakes_; };
    std::vector<const proto::Source*> pointers;
    for (const proto::Source& spec : specs) pointers.push_back(&spec);
    source_ = OpenSources(pointers, storage_, pool_, std::move(options));
  }

  Source& source() { return *source_; }
  BufferPool& pool() { return pool_; }
  int wakes() const { return wakes_; }
  const std::optional<Error>& error() const { return error_; }
  /// The most bytes that a single item had.
  uint64_t largest() const { return largest_; }

  /// Polls for up to `wanted` at a time until `count` items have come, or the end, or an error.
  std::vector<std::string> Take(uint64_t count, uint64_t wanted = 8) {
    std::vector<std::string> texts;
    while (texts.size() < count && !source_->AtEnd() && !error_) {
      const std::vector<SourceItem> items =
          PollOnce(std::min<uint64_t>(wanted, count - texts.size()));
      for (const SourceItem& item : items) texts.push_back(Describe(item));
      if (items.empty() && !error_ && !source_->AtEnd() && !CompleteOne()) {
        ADD_FAILURE() << "the source waits, but for no read";
        break;
      }
    }
    return texts;
  }
  std::vector<std::string> TakeAll() { return Take(~uint64_t{0}); }

  std::vector<SourceItem> PollOnce(uint64_t wanted) {
    std::vector<SourceItem> items;
    try {
      source_->Poll(wanted, &items);
    } catch (const Error& error) {
      EXPECT_TRUE(items.empty());
      error_ = error;
    }
    EXPECT_LE(items.size(), wanted);
    for (const SourceItem& item : items) {
      EXPECT_EQ(item.record == nullptr, item.error.has_value());
      if (item.record) largest_ = std::max<uint64_t>(largest_, item.record->size());
    }
    const SourceCounters counters = source_->counters();
    EXPECT_LE(counters.peak_reads_in_flight, static_cast<uint64_t>(limits_.reads_in_flight));
    return items;
  }

  bool CompleteOne() {
    const std::vector<FakeStorage::PendingRead> reads = storage_->pending();
    if (reads.empty()) return false;
    const size_t chosen = in_order_ ? 0 : random_.Below(static_cast<uint32_t>(reads.size()));
    return storage_->Complete(reads[chosen].id);
  }

 private:
  BufferPool pool_;
  std::shared_ptr<FakeStorage> storage_;
  SourceLimits limits_;
  RandomStream random_;
  bool in_order_;
  int wakes_ = 0;
  uint64_t largest_ = 0;
  std::optional<Error> error_;
  std::unique_ptr<Source> source_;
};

inline std::shared_ptr<FakeStorage> GatedStorage() {
  return std::make_shared<FakeStorage>(FakeStorage::Mode::kGated);
}

/// Files root/<class>/<i>.jpg in three classes, of unequal sizes.
inline void PutFolder(FakeStorage& storage, int files, size_t large_every = 0) {
  for (int i = 0; i < files; ++i) {
    const bool large = large_every != 0 && static_cast<size_t>(i) % large_every == 0;
    storage.Put(std::string("root/c") + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg",
                std::string("file ") + std::to_string(i) +
                    std::string(large ? 300'000 : static_cast<size_t>(i * 37 % 100), '.'));
  }
}

/// The same, and manifests of the files in two halves: root/0.csv and root/1.jsonl. Reads of these
/// complete at once.
inline void PutManifests(FakeStorage& storage, int files, size_t large_every = 0) {
  PutFolder(storage, files, large_every);
  std::string csv = "path,label,n\n";
  std::string json;
  for (int i = 0; i < files; ++i) {
    const std::string label = std::to_string(i % 3);
    const std::string n = std::to_string(i);
    const std::string path = std::string("c") + label + "/" + n + ".jpg";
    if (2 * i < files) {
      csv += path + "," + label + "," + n + "\n";
    } else {
      json += R"({"path": ")" + path + R"(", "label": )" + label + R"(, "n": )" + n + "}\n";
    }
  }
  storage.Put("root/0.csv", csv);
  storage.Put("root/1.jsonl", json);
  storage.OpenGateFor("root/0.csv");
  storage.OpenGateFor("root/1.jsonl");
}

/// Shards s0.tar, s1.tar, ... of 0, 1, 2, ... samples until there are `samples`; big ones have a
/// member of 100,000 bytes.
inline int PutShards(FakeStorage& storage, int samples, int big_every = 0) {
  int shard = 0;
  for (int i = 0; i < samples || shard == 0; ++shard) {
    TarBuilder tar;
    for (int k = 0; k < shard && i < samples; ++k, ++i) {
      const std::string key = std::string("s") + std::to_string(i);
      const bool big = big_every != 0 && i % big_every == 0;
      tar.AddFile(key + ".jpg",
                  std::string("sample ") + std::to_string(i) +
                      std::string(big ? 100'000 : static_cast<size_t>(i * 131 % 1500), '.'));
      tar.AddFile(key + ".cls", std::to_string(i));
      if (i % 4 == 0) tar.AddFile("dir/.hidden", "h");
    }
    storage.Put(std::string("s") + std::to_string(shard) + ".tar", tar.AddEnd().bytes());
  }
  return shard;
}

/// The same as TFRecord shards: s0.tfrecord, ...
inline int PutTfRecords(FakeStorage& storage, int samples, int big_every = 0) {
  int shard = 0;
  for (int i = 0; i < samples || shard == 0; ++shard) {
    TfRecordBuilder records;
    for (int k = 0; k < shard && i < samples; ++k, ++i) {
      const bool big = big_every != 0 && i % big_every == 0;
      records.AddRecord(
          MakeExample(std::string("s") + std::to_string(i),
                      std::string("sample ") + std::to_string(i) +
                          std::string(big ? 100'000 : static_cast<size_t>(i * 131 % 1500), '.'),
                      i));
    }
    storage.Put(std::string("s") + std::to_string(shard) + ".tfrecord", records.bytes());
  }
  return shard;
}

}  // namespace echopipe::testing
