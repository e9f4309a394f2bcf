// The same data in another format gives the same examples.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/random.h>
#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/image_data.h>
#include <echopipe/tests/support/shard_indexes.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::testing {
namespace {

using ::testing::SizeIs;

constexpr int kImages = 60;
constexpr int kClasses = 5;
constexpr size_t kShards = 4;

/// One set of pictures as a folder, as shards with their indexes and as manifests. Keys are paths,
/// but in tar shards without the extension; the "short" TFRecords and manifest rows have keys like
/// these.
class SameData {
 public:
  SameData() {
    std::vector<TarBuilder> tars(kShards);
    std::vector<TfRecordBuilder> records(kShards);
    std::vector<TfRecordBuilder> short_records(kShards);
    std::string csv = "path,label\n";
    std::string json;
    size_t i = 0;
    for (const auto& [key, bytes] : MakeImages(kImages, kClasses)) {
      const size_t shard = i++ * kShards / kImages;
      const std::string label = std::to_string(LabelIn(key));
      const std::string sample = key.substr(0, key.size() - 4);
      folder_.Write("folder/" + key, bytes);
      tars[shard].AddFile(key, bytes).AddFile(sample + ".cls", label);
      records[shard].AddRecord(MakeExample(key, bytes, LabelIn(key)));
      short_records[shard].AddRecord(MakeExample(sample, bytes, LabelIn(key)));
      csv += key + "," + label + "\n";
      json += R"({"label": )" + label + R"(, "path": ")" + key + "\"}\n";
    }
    for (size_t shard = 0; shard < kShards; ++shard) {
      const std::string number = std::to_string(shard);
      WriteShard(number + ".tar", tars[shard].AddEnd().bytes());
      WriteShard(number + ".tfrecord", records[shard].bytes());
      WriteShard("short-" + number + ".tfrecord", short_records[shard].bytes());
    }
    folder_.Write("folder/files.csv", csv);
    folder_.Write("folder/files.jsonl", json);
  }

  void WriteShard(const std::string& name, const std::string& bytes) const {
    folder_.Write(name, bytes);
    folder_.Write(internal::IndexNameOf(name), IndexBytes(name, bytes));
  }
  std::string Uri(const std::string& name) const { return "uri: '" + folder_.Path(name) + "'"; }
  std::string Folder() const { return Uri("folder"); }
  std::string Tars() const { return Uri("{0..3}.tar"); }
  std::string TfRecords() const { return Uri("{0..3}.tfrecord"); }
  std::string ShortTfRecords() const { return Uri("short-{0..3}.tfrecord"); }
  std::string Csv() const { return Uri("folder/files.csv"); }
  std::string JsonLines() const { return Uri("folder/files.jsonl"); }

 private:
  TempFolder folder_;
};

std::unique_ptr<Pipeline> Open(const std::string& source, const std::string& stages,
                               const Rank& rank = {}) {
  return Pipeline::Open(
      PipelineSpec::FromText("seed: 5 source { " + source + " } stage { decode {} } " + stages),
      {.threads = 2}, rank);
}

/// By key without extension: the label and a hash of the pixels.
std::map<std::string, std::pair<int64_t, uint64_t>> ExamplesOf(const std::string& source) {
  std::map<std::string, std::pair<int64_t, uint64_t>> examples;
  const auto pipeline =
      Open(source, "stage { resize { height: 30 width: 30 } } stage { batch { size: 1 } }");
  for (const Batch& batch : *pipeline) {
    std::string key = batch.provenance(0).key;
    if (key.ends_with(".jpg")) key.resize(key.size() - 4);
    const auto pixels = batch.Get("image").bytes();
    const uint64_t hash = HashBytes({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
    EXPECT_TRUE(examples.emplace(key, std::pair(batch.labels()[0], hash)).second) << key;
  }
  return examples;
}

TEST(SameDataTest, EveryFormatGivesTheSameKeysLabelsAndPixels) {
  const SameData data;
  const auto expected = ExamplesOf(data.Folder());
  ASSERT_THAT(expected, SizeIs(kImages));
  for (const std::string& source : {data.Tars(), data.TfRecords(), data.Csv(), data.JsonLines()}) {
    EXPECT_EQ(ExamplesOf(source), expected) << source;
    EXPECT_EQ(ExamplesOf(source + " shuffle { window: 20 }"), expected) << source;
  }
  for (const std::string& source : {data.Tars(), data.TfRecords(), data.Csv(), data.JsonLines()}) {
    EXPECT_EQ(ExamplesOf(source + " shuffle { full {} }"), expected) << source;
  }
}

/// Of all batches, with their order, echoes and augmentations.
std::string HashOf(const std::string& source, const Rank& rank) {
  const auto pipeline =
      Open(source + " epochs: 2",
           "stage { echo { factor: 2.5 shuffle_buffer: 24 } } "
           "stage { random_resized_crop { height: 16 width: 16 } } stage { random_flip {} } "
           "stage { batch { size: 8 } } stage { echo { factor: 1.5 } }",
           rank);
  BatchHash hash;
  for (const Batch& batch : *pipeline) hash.Add(batch);
  return hash.Hex();
}

TEST(SameDataTest, FormatsOfTheSameKindGiveTheSameBatches) {
  const SameData data;
  for (const Rank& rank : {Rank{}, Rank{.rank = 1, .world = 3}}) {
    for (const char* shuffle : {"", " shuffle { full {} }", " shuffle { window: 10 }"}) {
      const std::string folder = HashOf(data.Folder() + shuffle, rank);
      EXPECT_EQ(HashOf(data.Csv() + shuffle, rank), folder) << shuffle;
      EXPECT_EQ(HashOf(data.JsonLines() + shuffle, rank), folder) << shuffle;
      const std::string tars = HashOf(data.Tars() + shuffle, rank);
      EXPECT_EQ(HashOf(data.ShortTfRecords() + shuffle, rank), tars) << shuffle;
      EXPECT_NE(HashOf(data.TfRecords() + shuffle, rank), tars) << shuffle;
    }
  }
}

// ---- Real data

TEST(SameRealDataTest, CifarGivesTheSameBatchesFromTarAndTfRecord) {
  if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  const std::string tar = (TestData() / "cifar10" / "test-00.tar").string();
  const auto pipeline = Pipeline::Open(
      PipelineSpec::FromText("source { uri: '" + tar + "' } stage { batch { size: 1 } }"));
  TfRecordBuilder records;
  for (const Batch& batch : *pipeline) {
    const auto image = batch.bytes_features()[0].values[0].bytes();
    records.AddRecord(MakeExample(
        batch.provenance(0).key,
        std::string(reinterpret_cast<const char*>(image.data()), image.size()), batch.labels()[0]));
  }
  TempFolder folder;
  const std::string copy = folder.Write("cifar.tfrecord", records.bytes());
  EXPECT_EQ(HashOf("uri: '" + copy + "' shuffle { window: 500 }", {}),
            HashOf("uri: '" + tar + "' shuffle { window: 500 }", {}));
}

}  // namespace
}  // namespace echopipe::testing
