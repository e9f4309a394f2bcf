#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <echopipe/bench/batch_hash.h>
#include <echopipe/tests/support/random_echo.h>
#include <echopipe/tests/support/random_pipeline.h>
#include <echopipe/tests/support/shard_indexes.h>
#include <echopipe/tests/support/tar_builder.h>
#include <echopipe/tests/support/tfrecord_builder.h>

namespace echopipe::testing {
namespace {

using Objects = std::map<std::string, std::string>;

// One in so many; none at 0.
bool IsBad(RandomStream& random, uint32_t one_in) { return one_in > 0 && OneIn(random, one_in); }

// Records of a few bytes; some of them empty, which makes them bad.
std::string PutFolder(RandomStream& random, Objects& objects, uint64_t records,
                      uint32_t one_bad_in) {
  for (uint64_t i = 0; i < records; ++i) {
    objects["root/c" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg"] =
        IsBad(random, one_bad_in) ? "" : "record " + std::to_string(i);
  }
  static constexpr std::array kShuffles = {"", " shuffle { full {} }", " shuffle { window: 7 }"};
  return std::string("root'") + kShuffles[random.Below(kShuffles.size())];
}

/// How shards are read, and whether that needs their indexes.
struct ShardShuffle {
  std::string text;
  bool is_full = false;
};

ShardShuffle AnyShardShuffle(RandomStream& random) {
  static constexpr std::array kShuffles = {"", " shuffle { window: 1 }", " shuffle { window: 9 }",
                                           " shuffle { full {} }"};
  const uint32_t chosen = random.Below(kShuffles.size());
  return {.text = kShuffles[chosen], .is_full = chosen == 3};
}

// An index beside each shard. Where no full shuffle needs them, nothing is to look at them: they
// are of no use.
void AddIndexes(const ShardShuffle& shuffle, Objects& objects) {
  Objects indexes;
  for (const auto& [path, bytes] : objects) {
    indexes[internal::IndexNameOf(path)] = shuffle.is_full ? IndexBytes(path, bytes) : "no index";
  }
  objects.merge(indexes);
}

// Shards of unequal sizes; some samples lack their label or have a key again, which makes them bad.
std::string PutShards(RandomStream& random, Objects& objects, uint64_t records,
                      uint32_t one_bad_in) {
  uint64_t shard = 0;
  for (uint64_t i = 0; i < records; ++shard) {
    TarBuilder tar;
    for (uint64_t left = 1 + random.Below(12); left > 0 && i < records; --left, ++i) {
      const std::string key = "s" + std::to_string(one_bad_in > 0 && OneIn(random, 12) ? i / 2 : i);
      tar.AddFile(key + ".jpg", "record " + std::to_string(i));
      if (!IsBad(random, one_bad_in)) tar.AddFile(key + ".cls", std::to_string(i));
    }
    objects["s" + std::to_string(shard) + ".tar"] = tar.AddEnd().bytes();
  }
  const ShardShuffle shuffle = AnyShardShuffle(random);
  AddIndexes(shuffle, objects);
  return "s{0.." + std::to_string(shard - 1) + "}.tar'" + shuffle.text;
}

// The same as TFRecord; some records' data do not fit to their checksums, which makes them bad.
std::string PutTfRecords(RandomStream& random, Objects& objects, uint64_t records,
                         uint32_t one_bad_in) {
  uint64_t shard = 0;
  for (uint64_t i = 0; i < records; ++shard) {
    std::string bytes;
    for (uint64_t left = 1 + random.Below(12); left > 0 && i < records; --left, ++i) {
      TfRecordBuilder record;
      record.AddRecord(MakeExample("r" + std::to_string(i), "record " + std::to_string(i),
                                   static_cast<int64_t>(i)));
      bytes += record.bytes();
      if (IsBad(random, one_bad_in)) bytes.back() ^= 1;
    }
    objects["s" + std::to_string(shard) + ".tfrecord"] = bytes;
  }
  const ShardShuffle shuffle = AnyShardShuffle(random);
  AddIndexes(shuffle, objects);
  return "s{0.." + std::to_string(shard - 1) + "}.tfrecord'" + shuffle.text;
}

// A folder's files, named by a manifest.
std::string PutManifest(RandomStream& random, Objects& objects, uint64_t records,
                        uint32_t one_bad_in) {
  const std::string folder = PutFolder(random, objects, records, one_bad_in);
  const bool is_csv = OneIn(random, 2);
  std::string text = is_csv ? "path,label\n" : "";
  for (uint64_t i = 0; i < records; ++i) {
    const std::string label = std::to_string(i % 3);
    const std::string path = "root/c" + label + "/" + std::to_string(i) + ".jpg";
    text += is_csv ? path + "," + label + "\n"
                   : R"({"path": ")" + path + R"(", "label": )" + label + "}\n";
  }
  const std::string name = is_csv ? "list.csv" : "list.jsonl";
  objects[name] = text;
  return name + folder.substr(folder.find('\''));
}

std::string PutData(RandomStream& random, Objects& objects, uint64_t records, uint32_t one_bad_in) {
  static constexpr std::array kWays = {PutFolder, PutShards, PutTfRecords, PutManifest};
  return "uri: 'BASE" + kWays[random.Below(kWays.size())](random, objects, records, one_bad_in);
}

// Another source that the first is mixed with, below a folder of its own.
std::string PutMixed(RandomStream& random, Objects& objects, uint64_t world) {
  Objects others;
  const std::string text = PutData(random, others, world + random.Below(20), 0);
  for (auto& [path, bytes] : others) objects["more/" + path] = std::move(bytes);
  return "source { uri: 'BASEmore/" + text.substr(std::string_view("uri: 'BASE").size()) +
         Number("weight", 1 + random.Below(3)) + " } ";
}

std::string AnyEcho(RandomStream& random) {
  const char* factor = kEchoFactors[random.Below(kEchoFactors.size())];
  return RandomEcho(random, factor);
}

std::string AnyStage(RandomStream& random, bool bad) {
  switch (random.Below(6)) {
    case 0:
      return "stage { random_flip {} } ";
    case 4:
      return "stage { rand_augment {} } ";
    case 5:
      return "stage { color_jitter { brightness: 0.4 hue: 0.2 } } ";
    case 1:
      return "stage { random_crop { height: 6 width: 6 padding: 2 } } ";
    case 2:
      return AnyEcho(random);
    default:
      return std::string(OneIn(random, 2) ? "stage { filter { function: 'most' } } " : "") +
             (bad ? "stage { map { function: 'throws at some' } } " : "");
  }
}

std::vector<std::string> AnyStages(RandomStream& random, bool bad) {
  std::vector<std::string> stages = {"stage { map { function: 'pixels' } } "};
  for (uint32_t more = random.Below(6); more > 0; --more) stages.push_back(AnyStage(random, bad));
  if (OneIn(random, 3)) stages.emplace_back("stage { normalize {} } ");
  stages.push_back("stage { batch {" + Number("size", 1 + random.Below(12)) +
                   (OneIn(random, 3) ? " remainder: DROP" : "") +
                   (OneIn(random, 3) ? " across_epochs: true" : "") + " } } ");
  for (uint32_t echoes = random.Below(8) / 3; echoes > 0 && OneIn(random, 2); --echoes) {
    stages.push_back(AnyEcho(random));
  }
  return stages;
}

std::string AnyPolicy(RandomStream& random) {
  std::string policy = "bad_examples { policy: ";
  policy += OneIn(random, 2) ? "SKIP" : "REPLACE";
  if (OneIn(random, 3)) policy += Number("max_count", random.Below(12));
  if (OneIn(random, 3)) policy += " max_fraction: 0.2";
  return policy + " } ";
}

// [6, 8, 3] uint8 that differ with each record.
void MakePixels(Example& example) {
  const Tensor& bytes = example.Get("image");
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes().data()),
                              bytes.bytes().size());
  RandomStream random({.low = HashBytes(text), .high = 1});
  BufferPool pool;
  TensorBuilder pixels(DType::kUint8, {6, 8, 3}, pool);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels.data()[i] = static_cast<uint8_t>(random.Below(256));
  }
  example.Set("image", std::move(pixels).Finish());
}

}  // namespace

std::string RandomPipeline::Text(const std::string& base) const {
  constexpr std::string_view kBase = "BASE";
  std::string with_base = text;
  for (size_t at = 0; (at = with_base.find(kBase, at)) != std::string::npos; at += base.size()) {
    with_base.replace(at, kBase.size(), base);
  }
  return with_base;
}

bool OneIn(RandomStream& random, uint32_t n) { return random.Below(n) == 0; }

RandomPipeline MakeRandomPipeline(RandomStream& random) {
  return MakeRandomPipelineWith("", random);
}

RandomPipeline MakeRandomPipelineWith(const std::string& stage, RandomStream& random) {
  RandomPipeline made;
  made.rank.world = OneIn(random, 3) ? 1 + random.Below(3) : 1;
  made.rank.rank = random.Below(static_cast<uint32_t>(made.rank.world));
  const uint64_t records = 3 * made.rank.world + random.Below(60);
  const bool bad = OneIn(random, 3);
  const uint32_t one_bad_in = !bad ? 0 : OneIn(random, 4) ? 2 : 6;
  std::string& text = made.text;
  text = "source { " + PutData(random, made.objects, records, one_bad_in);
  text += Number("epochs", random.Below(4));
  if (OneIn(random, 5)) text += Number("take", records - random.Below(3));
  text += " } ";
  if (OneIn(random, 4)) text += PutMixed(random, made.objects, made.rank.world);
  text += Number("seed", random.Below(1000)) + " ";
  if (bad) text += AnyPolicy(random);
  std::vector<std::string> stages = AnyStages(random, bad);
  if (!stage.empty()) {
    const uint32_t place = random.Below(static_cast<uint32_t>(stages.size()) + 1);
    stages.insert(stages.begin() + place, stage);
  }
  for (const std::string& each : stages) text += each;
  if (OneIn(random, 4)) text += Number("steps_per_epoch", 1 + random.Below(5)) + " ";
  return made;
}

PipelineSpec SpecWithFunctions(const std::string& text) {
  return PipelineSpec::FromText(text)
      .WithMap("pixels", MakePixels)
      .WithMap("throws at some",
               [](Example& example) {
                 const Identity& identity = example.provenance().identity;
                 uint64_t hash = HashBytes(example.provenance().key, example.provenance().age);
                 for (const uint32_t use : identity.uses()) hash += 7 * use;
                 if (hash % 9 == 0) throw std::runtime_error("not this one");
               })
      .WithFilter("most", [](const Example& example) {
        return HashBytes(example.provenance().key) % 5 != 1;
      });
}

std::string HashOf(const Batch& batch) {
  BatchHash hash;
  hash.Add(batch);
  return hash.Hex() + (batch.end_of_epoch() ? " ends epoch " : " of epoch ") +
         std::to_string(batch.epoch());
}

}  // namespace echopipe::testing
