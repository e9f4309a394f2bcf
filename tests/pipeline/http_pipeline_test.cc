// Data behind a server gives the batches that it gives as files.

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/image_data.h>
#include <echopipe/tests/support/nginx_server.h>
#include <echopipe/tests/support/shard_indexes.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::testing {
namespace {

/// How a server lists its folders.
enum class Way { kHtml, kJson, kManifest };

std::string NameOf(Way way) {
  if (way == Way::kManifest) return "Manifest";
  return way == Way::kHtml ? "Html" : "Json";
}

/// What a source says, with "BASE" for the folder's path or the server's uri.
struct Data {
  std::string name;
  std::string source;
  bool is_listed = true;  // else its uris name all shards
};

void PrintTo(const Data& data, std::ostream* out) { *out << data.name; }

const Data kData[] = {
    {"FolderInOrder", "uri: 'BASE/photos'"},
    {"FolderFullShuffle", "uri: 'BASE/photos/' shuffle { full {} } epochs: 2"},
    {"FolderWindow", "uri: 'BASE/photos' shuffle { window: 10 } epochs: 2"},
    {"FoldersByGlob", "uri: 'BASE/p*s' shuffle { full {} }"},
    {"ShardsByBraces", "uri: 'BASE/shards/part {0..4}.tar' shuffle { window: 10 } epochs: 2",
     false},
    {"ShardsByGlob", "uri: 'BASE/shards/part*.tar' shuffle { window: 10 } epochs: 2"},
    {"ShardsByIndex", "uri: 'BASE/shards/part {0..4}.tar' shuffle { full {} } epochs: 2", false},
    {"TfRecordsByIndex", "uri: 'BASE/shards/part*.tfrecord' shuffle { full {} }"},
    {"TfRecordsByBraces",
     "uri: 'BASE/shards/part {0..4}.tfrecord' shuffle { window: 10 } epochs: 2", false},
    {"TfRecordsByGlob", "uri: 'BASE/shards/part*.tfrecord' shuffle { window: 10 }"},
    {"Csv", "uri: 'BASE/files.csv' shuffle { full {} } epochs: 2", false},
    {"JsonLinesByGlob", "uri: 'BASE/f*.jsonl' shuffle { window: 10 }"},
    {"ShardsByList", "uri: 'BASE/shards/part {3,0}.tar' uri: 'BASE/shards/part 2.tar'", false},
};

/// Photos and shards of them, under names that have to be encoded on their way to a server.
class ServedFolder {
 public:
  explicit ServedFolder(Way way) {
    std::map<int64_t, TarBuilder> shards;
    std::map<int64_t, TfRecordBuilder> records;
    std::string csv = "path,label\n";
    std::string json;
    for (const auto& [key, bytes] : MakeImages(60, 5)) {
      const int64_t label = LabelIn(key);
      const std::string photo =
          "photos/class #" + std::to_string(label) + "/100% a&b+'" + key.substr(8) + "?.jpg";
      Write(photo, bytes);
      csv += photo + "," + std::to_string(label) + "\n";
      json += R"({"path": ")" + photo + R"(", "label": )" + std::to_string(label) + "}\n";
      records[label].AddRecord(MakeExample(key, bytes, label));
      const std::string sample = key.substr(0, key.size() - 4);
      shards[label].AddFile(sample + ".jpg", bytes).AddFile(sample + ".cls", std::to_string(label));
    }
    for (auto& [number, shard] : shards) {
      WriteShard("shards/part " + std::to_string(number) + ".tar", shard.AddEnd().bytes());
    }
    for (auto& [number, shard] : records) {
      WriteShard("shards/part " + std::to_string(number) + ".tfrecord", shard.bytes());
    }
    Write("files.csv", csv);
    Write("files.jsonl", json);
    if (way == Way::kManifest) folder_.Write("manifest.txt", manifest_);
  }
  std::string path() const { return folder_.path().string(); }

 private:
  void Write(const std::string& name, const std::string& bytes) {
    folder_.Write(name, bytes);
    manifest_ += name + "\n";
  }
  void WriteShard(const std::string& name, const std::string& bytes) {
    Write(name, bytes);
    Write(internal::IndexNameOf(name), IndexBytes(name, bytes));
  }

  TempFolder folder_;
  std::string manifest_;
};

PipelineSpec Spec(std::string source, const std::string& base) {
  for (size_t at = 0; (at = source.find("BASE", at)) != std::string::npos;) {
    source.replace(at, 4, base);
  }
  return PipelineSpec::FromText(
      "seed: 7 source { " + source +
      " } stage { decode {} } stage { echo { factor: 2.5 shuffle_buffer: 24 } } "
      "stage { random_resized_crop { height: 16 width: 16 } } stage { random_flip {} } "
      "stage { normalize {} } stage { batch { size: 8 } } stage { echo { factor: 1.5 } }");
}

std::string HashOf(const PipelineSpec& spec) {
  const auto pipeline = Pipeline::Open(spec, {.threads = 2, .reads_in_flight = 8});
  BatchHash hash;
  for (const Batch& batch : *pipeline) hash.Add(batch);
  return hash.Hex();
}

NginxServer::Listing ListingOf(Way way) {
  if (way == Way::kManifest) return NginxServer::Listing::kOff;
  return way == Way::kHtml ? NginxServer::Listing::kHtml : NginxServer::Listing::kJson;
}

class HttpPipelineTest : public ::testing::TestWithParam<std::tuple<Way, Data>> {
 protected:
  void SetUp() override {
    if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
  }
};

TEST_P(HttpPipelineTest, GivesTheBatchesThatFilesGive) {
  const auto& [way, data] = GetParam();
  const ServedFolder folder(way);
  const NginxServer server({.root = folder.path(), .listing = ListingOf(way)});
  EXPECT_EQ(HashOf(Spec(data.source, server.url())), HashOf(Spec(data.source, folder.path())));
  std::set<std::string> listings;
  for (const AccessedRequest& request : server.Requests()) {
    const bool is_page = request.uri.ends_with("/");
    if (is_page || request.uri.ends_with("manifest.txt")) {
      if (request.status == 200) listings.insert(is_page ? "pages" : "manifest");
    } else {
      EXPECT_TRUE(request.status == 200 || request.status == 206) << request.uri;
    }
  }
  const std::string listing = way == Way::kManifest ? "manifest" : "pages";
  EXPECT_EQ(listings, data.is_listed ? std::set{listing} : std::set<std::string>());
}

INSTANTIATE_TEST_SUITE_P(, HttpPipelineTest,
                         ::testing::Combine(::testing::Values(Way::kHtml, Way::kJson,
                                                              Way::kManifest),
                                            ::testing::ValuesIn(kData)),
                         [](const auto& test) {
                           return NameOf(std::get<Way>(test.param)) +
                                  std::get<Data>(test.param).name;
                         });

// ---- Real data

class HttpRealDataTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (NginxProgram().empty()) GTEST_SKIP() << kNoNginx;
    if (TestData().empty()) GTEST_SKIP() << kNoTestData;
  }

  void ExpectTheSame(const std::string& source) {
    const NginxServer server({.root = folder_.path(), .listing = ListingOf(GetParam())});
    EXPECT_EQ(HashOf(Spec(source, server.url())), HashOf(Spec(source, folder_.path().string())));
    EXPECT_GE(server.Requests().size(), 10u);
  }

  TempFolder folder_;  // links into the data
};

TEST_P(HttpRealDataTest, PhotosGiveTheBatchesThatFilesGive) {
  std::vector<std::filesystem::path> classes(
      std::filesystem::directory_iterator(TestData() / "photos"), {});
  std::ranges::sort(classes);
  ASSERT_GE(classes.size(), 40u);
  std::string manifest;
  folder_.Write("photos/.keep", "");
  for (size_t i = 0; i < 40; ++i) {
    const std::string name = classes[i].filename();
    std::filesystem::create_directory_symlink(classes[i], folder_.Path("photos/" + name));
    for (const auto& photo : std::filesystem::directory_iterator(classes[i])) {
      manifest += name + "/" + photo.path().filename().string() + "\n";
    }
  }
  if (GetParam() == Way::kManifest) folder_.Write("photos/manifest.txt", manifest);
  ExpectTheSame("uri: 'BASE/photos' shuffle { full {} }");
}

TEST_P(HttpRealDataTest, CifarShardsGiveTheBatchesThatFilesGive) {
  std::string manifest;
  for (const char* name : {"test-00.tar", "test-01.tar"}) {
    std::filesystem::create_symlink(TestData() / "cifar10" / name, folder_.Path(name));
    manifest += std::string(name) + "\n";
  }
  if (GetParam() == Way::kManifest) folder_.Write("manifest.txt", manifest);
  ExpectTheSame("uri: 'BASE/test-*.tar' shuffle { window: 1000 } epochs: 2 take: 2000");
}

INSTANTIATE_TEST_SUITE_P(, HttpRealDataTest,
                         ::testing::Values(Way::kHtml, Way::kJson, Way::kManifest),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace echopipe::testing
