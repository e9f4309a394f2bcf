// A checkpoint's bytes, its file, and what a pipeline refuses to go on from.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <echopipe/base/random.h>
#include <echopipe/pipeline/checkpoint.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/proto/checkpoint.pb.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/fake_storage.h>
#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::ErrorOf;
using testing::FakeStorage;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadFile;
using ::testing::StartsWith;
using testing::TempFolder;

namespace fs = std::filesystem;
namespace pb = google::protobuf;

// ---- pipelines to take checkpoints of

using Files = std::map<std::string, std::string>;

// Forty pictures, two of which are none.
Files Pictures() {
  Files files;
  for (const auto& [name, bytes] : testing::MakeImages(40, 3)) files["photos/" + name] = bytes;
  files["photos/class-0/image-003.jpg"] = files["photos/class-1/image-010.jpg"] = "no picture";
  return files;
}

// Three shards of pictures.
Files Shards() {
  Files files;
  for (const char* name : {"a", "b", "c"}) {
    files[std::string("shards/") + name + ".tar"] = testing::MakeImageTar(14, 3);
  }
  return files;
}

std::shared_ptr<Storage> StorageOf(const Files& files) {
  auto storage = std::make_shared<FakeStorage>(FakeStorage::Mode::kImmediate);
  for (const auto& [name, bytes] : files) storage->Put(name, bytes);
  return storage;
}

const std::string kFolder = "source { uri: 'photos' shuffle { full {} } epochs: 3 } ";
// Every kind of place that a resident can have.
const std::string kStages =
    "seed: 5 bad_examples { policy: SKIP } "
    "stage { echo { factor: 1.5 shuffle_buffer: 6 spacing: 0 } } stage { decode {} } "
    "stage { echo { factor: 2.5 shuffle_buffer: 16 } } "
    "stage { random_crop { height: 8 width: 8 } } "
    "stage { batch { size: 4 } } stage { echo { factor: 2 shuffle_buffer: 3 } }";

PipelineSpec Spec(const std::string& source = kFolder, const std::string& stages = kStages) {
  return PipelineSpec::FromText(source + stages);
}

RuntimeOptions Options(const Files& files, int threads = 2) {
  return {.threads = threads, .storage = StorageOf(files)};
}

PipelineCheckpoint CheckpointAfter(int steps, const PipelineSpec& spec, const Files& files,
                                   int threads = 2) {
  const auto pipeline = Pipeline::Open(spec, Options(files, threads));
  for (int i = 0; i < steps; ++i) EXPECT_TRUE(pipeline->Next().has_value());
  return pipeline->Checkpoint();
}

const PipelineCheckpoint& Checkpoint() {
  static const PipelineCheckpoint checkpoint = CheckpointAfter(9, Spec(), Pictures());
  return checkpoint;
}

// ---- bytes

TEST(CheckpointBytesTest, BytesGoThereAndBack) {
  const std::string bytes = Checkpoint().ToBytes();
  const PipelineCheckpoint back = PipelineCheckpoint::FromBytes(bytes);
  EXPECT_EQ(back.ToBytes(), bytes);
  EXPECT_EQ(back.steps(), 9u);
  EXPECT_EQ(back.rank().rank, 0u);
  EXPECT_EQ(back.rank().world, 1u);
  EXPECT_THAT(bytes, StartsWith("echockpt"));
}

TEST(CheckpointBytesTest, BytesAreTheSameForTheSamePlaceHoweverItWasReached) {
  const std::string bytes = Checkpoint().ToBytes();
  EXPECT_EQ(CheckpointAfter(9, Spec(), Pictures(), 1).ToBytes(), bytes);
  const auto restored =
      Pipeline::Restore(Spec(), CheckpointAfter(4, Spec(), Pictures()), Options(Pictures()));
  for (int i = 4; i < 9; ++i) restored->Next();
  EXPECT_EQ(restored->Checkpoint().ToBytes(), bytes);
  EXPECT_NE(CheckpointAfter(8, Spec(), Pictures()).ToBytes(), bytes);
}

TEST(CheckpointBytesTest, NamesMayBeAnyBytes) {
  Files files = Pictures();
  for (const char* name : {"a", "b", "c", "d"}) {
    files[std::string("photos/class-2/\xff") + name + ".jpg"] = "no picture";
  }
  const std::string bytes = CheckpointAfter(9, Spec(), files).ToBytes();
  ASSERT_THAT(bytes, HasSubstr("class-2/\xff"));  // a resident that is bad
  EXPECT_EQ(PipelineCheckpoint::FromBytes(bytes).ToBytes(), bytes);
}

// protobuf neither writes nor reads strings that are not UTF-8.
void ExpectNoStrings(const pb::Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const pb::FieldDescriptor& field = *message.field(i);
    EXPECT_NE(field.type(), pb::FieldDescriptor::TYPE_STRING) << field.full_name();
  }
  for (int i = 0; i < message.nested_type_count(); ++i) ExpectNoStrings(*message.nested_type(i));
}

TEST(CheckpointBytesTest, NamesInTheSpecMayBeAnyBytes) {
  for (const pb::Descriptor* message :
       {proto::Checkpoint::descriptor(), proto::PipelineSpec::descriptor()}) {
    const pb::FileDescriptor& file = *message->file();
    for (int i = 0; i < file.message_type_count(); ++i) ExpectNoStrings(*file.message_type(i));
  }
  const PipelineSpec spec =
      Spec(kFolder, "stage { map { function: '\\377' } } " + kStages).WithMap("\xff", [](Example&) {
      });
  const std::string bytes = CheckpointAfter(1, spec, Pictures()).ToBytes();
  EXPECT_EQ(PipelineCheckpoint::FromBytes(bytes).ToBytes(), bytes);
}

TEST(CheckpointBytesTest, EveryTruncationIsRefused) {
  const std::string bytes = Checkpoint().ToBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Error error =
        ErrorOf([&] { PipelineCheckpoint::FromBytes(std::string_view(bytes).substr(0, size)); });
    ASSERT_EQ(error.code(), ErrorCode::kTruncated) << size;
  }
}

TEST(CheckpointBytesTest, EveryFlippedBitIsRefused) {
  std::string bytes = Checkpoint().ToBytes();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto flip = static_cast<char>(1u << bit % 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    const Error error = ErrorOf([&] { PipelineCheckpoint::FromBytes(bytes); });
    ASSERT_THAT(error.code(),
                AnyOf(ErrorCode::kCorrupt, ErrorCode::kTruncated, ErrorCode::kUnsupported))
        << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
}

TEST(CheckpointBytesTest, BytesBehindItAreRefused) {
  const Error error = ErrorOf([] { PipelineCheckpoint::FromBytes(Checkpoint().ToBytes() + "x"); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
}

TEST(CheckpointBytesTest, ANewerFormatIsRefusedByName) {
  std::string bytes = Checkpoint().ToBytes();
  bytes[8] = 2;
  const Error error = ErrorOf([&] { PipelineCheckpoint::FromBytes(bytes, "model.bin"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(StartsWith("model.bin: "), HasSubstr("newer version"),
                                  HasSubstr("format 2"), HasSubstr("at most 1")));
}

TEST(CheckpointBytesTest, OtherFilesAreToldFromDamagedCheckpoints) {
  for (const char* bytes : {"x", "PK", "echockpT and so on, for more than thirty-two bytes"}) {
    const Error error = ErrorOf([&] { PipelineCheckpoint::FromBytes(bytes); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("not a checkpoint"));
  }
}

TEST(CheckpointBytesTest, AHugeSizeInTheHeaderIsRefused) {
  std::string bytes = Checkpoint().ToBytes();
  for (const uint64_t size : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{bytes.size()}}) {
    std::memcpy(bytes.data() + 16, &size, sizeof(size));
    const Error error = ErrorOf([&] { PipelineCheckpoint::FromBytes(bytes); });
    EXPECT_EQ(error.code(), ErrorCode::kTruncated) << size;
  }
}

// The header in front of any bytes, with their checksum.
std::string WithHeader(const std::string& payload) {
  std::string bytes = Checkpoint().ToBytes().substr(0, 32) + payload;
  const uint64_t words[] = {payload.size(), HashBytes(payload)};
  std::memcpy(bytes.data() + 16, words, sizeof(words));
  return bytes;
}

TEST(CheckpointBytesTest, AMessageThatIsNoneIsRefusedWithARightChecksumToo) {
  PipelineCheckpoint::FromBytes(WithHeader(Checkpoint().ToBytes().substr(32)));
  const Error error = ErrorOf([] { PipelineCheckpoint::FromBytes(WithHeader("\xff\xff\xff")); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
}

// ---- files

// Looks like one at its beginning: anything else would be left alone.
constexpr const char* kOld = "echockpt, the old one";

class CheckpointFileTest : public ::testing::Test {
 protected:
  ErrorCode CodeOfLoad(const std::string& path) const {
    const Error error = ErrorOf([&] { PipelineCheckpoint::Load(path); });
    EXPECT_THAT(error.what(), StartsWith(path + ": "));
    return error.code();
  }
  // Of a Save() that must leave what was at `path_`, and nothing beside it.
  ErrorCode CodeOfSave() const {
    const Error error = ErrorOf([&] { Checkpoint().Save(path_); });
    EXPECT_THAT(error.what(), StartsWith(path_ + ": "));
    EXPECT_EQ(ReadFile(path_), kOld);
    return error.code();
  }
  bool TemporaryIsThere() const { return fs::exists(fs::symlink_status(path_ + ".tmp")); }

  TempFolder folder_;
  std::string path_ = folder_.Write("run.ckpt", kOld);
};

TEST_F(CheckpointFileTest, AFileHoldsTheBytesAndNothingIsLeftBeside) {
  Checkpoint().Save(path_);
  EXPECT_EQ(ReadFile(path_), Checkpoint().ToBytes());
  EXPECT_EQ(PipelineCheckpoint::Load(path_).ToBytes(), Checkpoint().ToBytes());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(CheckpointFileTest, ANameWithoutAFolderIsInTheCurrentOne) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  Checkpoint().Save("bare.ckpt");
  EXPECT_EQ(PipelineCheckpoint::Load("bare.ckpt").steps(), 9u);
  fs::current_path(before);
}

TEST_F(CheckpointFileTest, WhatIsNoFileIsRefused) {
  EXPECT_EQ(CodeOfLoad(folder_.Path("none")), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOfLoad(folder_.path()), ErrorCode::kIo);
  EXPECT_EQ(CodeOfLoad("/dev/null"), ErrorCode::kIo);
  EXPECT_EQ(CodeOfLoad(path_ + "/below"), ErrorCode::kIo);
  const std::string fifo = folder_.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(CodeOfLoad(fifo), ErrorCode::kIo);
}

TEST_F(CheckpointFileTest, AnEmptyFileOneOfSomethingElseAndOneTooLargeAreRefused) {
  EXPECT_EQ(CodeOfLoad(folder_.Write("empty", "")), ErrorCode::kTruncated);
  EXPECT_EQ(CodeOfLoad(folder_.Write("text", "not one")), ErrorCode::kCorrupt);
  fs::resize_file(path_, (uint64_t{1} << 30) + 1);  // a hole: takes no place
  EXPECT_EQ(CodeOfLoad(path_), ErrorCode::kLimitExceeded);
}

TEST_F(CheckpointFileTest, ATemporaryFileLeftByAKilledRunIsReplaced) {
  folder_.Write("run.ckpt.tmp", std::string(1 << 20, 'x'));
  Checkpoint().Save(path_);
  EXPECT_EQ(ReadFile(path_), Checkpoint().ToBytes());
  EXPECT_FALSE(TemporaryIsThere());
}

TEST_F(CheckpointFileTest, TheOldFileStaysWhenTheDiskIsFull) {
  // The nearest to a full disk that a test can have: files must not grow beyond 100 bytes.
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low = {.rlim_cur = 100, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &low);
  const ErrorCode code = CodeOfSave();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_FALSE(TemporaryIsThere());
}

TEST_F(CheckpointFileTest, TheOldFileStaysWhenTheTemporaryOneCannotBeMade) {
  fs::create_directory(path_ + ".tmp");
  EXPECT_EQ(CodeOfSave(), ErrorCode::kIo);
}

TEST_F(CheckpointFileTest, ALinkInThePlaceOfTheTemporaryFileIsNotFollowed) {
  const std::string precious = folder_.Write("precious", "data");
  fs::create_symlink(precious, path_ + ".tmp");
  EXPECT_EQ(CodeOfSave(), ErrorCode::kIo);
  EXPECT_EQ(ReadFile(precious), "data");
}

TEST_F(CheckpointFileTest, AFileOfSomethingElseIsLeftAlone) {
  const std::string spec = folder_.Write("spec.txt", "source { uri: 'photos' }");
  EXPECT_EQ(ErrorOf([&] { Checkpoint().Save(spec); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(spec), "source { uri: 'photos' }");
  const std::string empty = folder_.Write("empty.ckpt", "");
  Checkpoint().Save(empty);
  EXPECT_EQ(PipelineCheckpoint::Load(empty).steps(), 9u);
}

TEST_F(CheckpointFileTest, AFolderInItsPlaceStaysAndNothingIsLeftBeside) {
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(ErrorOf([&] { Checkpoint().Save(path_); }).code(), ErrorCode::kIo);
  EXPECT_TRUE(fs::is_directory(path_));
  EXPECT_FALSE(TemporaryIsThere());
}

TEST_F(CheckpointFileTest, AMissingFolderIsNamed) {
  const std::string path = folder_.Path("none") + "/run.ckpt";
  const Error error = ErrorOf([&] { Checkpoint().Save(path); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr(path));
}

// ---- what a pipeline refuses

std::string Refusal(const PipelineSpec& spec, const PipelineCheckpoint& checkpoint,
                    const Files& files, const Rank& rank = {}) {
  const Error error = ErrorOf([&] { Pipeline::Restore(spec, checkpoint, Options(files), rank); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  return error.what();
}

// Of the checkpoint with one change to the text of its spec.
std::string RefusalWith(const std::string& then, const std::string& now) {
  std::string text = kFolder + kStages;
  const size_t at = text.find(then);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, then.size(), now);
  return Refusal(PipelineSpec::FromText(text), Checkpoint(), Pictures());
}

TEST(RestoreRefusesTest, AnotherSpecWithWhatDiffers) {
  EXPECT_THAT(RefusalWith("size: 4", "size: 5"),
              AllOf(HasSubstr("another spec"), HasSubstr("batch.size"), HasSubstr("4 -> 5")));
  EXPECT_THAT(RefusalWith("epochs: 3", "epochs: 4"),
              AllOf(HasSubstr("epochs"), HasSubstr("3 -> 4")));
  EXPECT_THAT(RefusalWith("seed: 5", "seed: 6"), AllOf(HasSubstr("seed"), HasSubstr("5 -> 6")));
  EXPECT_THAT(RefusalWith("factor: 2.5", "factor: 3"),
              AllOf(HasSubstr("stage[2].echo.factor"), HasSubstr("2.5 -> 3")));
  EXPECT_THAT(RefusalWith("policy: SKIP", "policy: FAIL"), HasSubstr("policy"));
  EXPECT_THAT(RefusalWith("stage { decode {} }", "stage { decode {} } stage { random_flip {} }"),
              HasSubstr("stage"));
  EXPECT_THAT(RefusalWith("stage { random_crop { height: 8 width: 8 } }",
                          "stage { center_crop { height: 8 width: 8 } }"),
              HasSubstr("stage[3].center_crop"));
  EXPECT_THAT(RefusalWith("full {}", "window: 4"), HasSubstr("shuffle"));
}

TEST(RestoreRefusesTest, AnotherRankOrWorld) {
  EXPECT_THAT(Refusal(Spec(), Checkpoint(), Pictures(), {.rank = 0, .world = 2}),
              AllOf(HasSubstr("rank 0 of 2"), HasSubstr("rank 0 of 1")));
  const auto pipeline = Pipeline::Open(Spec(), Options(Pictures()), {.rank = 1, .world = 2});
  EXPECT_THAT(Refusal(Spec(), pipeline->Checkpoint(), Pictures(), {.rank = 0, .world = 2}),
              HasSubstr("rank 1 of 2"));
}

TEST(RestoreRefusesTest, AFolderWithAnotherListing) {
  const Files files = Pictures();
  Files added = files;
  added["photos/class-2/image-999.jpg"] = files.begin()->second;
  Files removed = files;
  removed.erase(removed.begin());
  Files renamed = removed;
  renamed["photos/class-0/another.jpg"] = files.begin()->second;
  Files moved = removed;
  moved["photos/class-1/image-000.jpg"] = files.begin()->second;
  for (const Files& changed : {added, removed, renamed, moved}) {
    EXPECT_THAT(Refusal(Spec(), Checkpoint(), changed),
                AllOf(HasSubstr("other records"), HasSubstr("photos")));
  }
  Pipeline::Restore(Spec(), Checkpoint(), Options(files));
}

TEST(RestoreRefusesTest, OtherShards) {
  const PipelineSpec spec = Spec("source { uri: 'shards/*.tar' shuffle { window: 8 } } ");
  const Files files = Shards();
  const PipelineCheckpoint checkpoint = CheckpointAfter(9, spec, files);
  Files added = files;
  added["shards/d.tar"] = files.begin()->second;
  Files removed = files;
  removed.erase("shards/a.tar");
  Files renamed = removed;
  renamed["shards/d.tar"] = files.begin()->second;
  for (const Files& changed : {added, removed, renamed}) {
    EXPECT_THAT(Refusal(spec, checkpoint, changed), HasSubstr("other records"));
  }
  Pipeline::Restore(spec, checkpoint, Options(files));
}

// ---- hostile checkpoints

/// Changes a message at random: counts, columns, numbers, nested messages.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(HashToKey(std::vector<uint64_t>{seed})) {}

  void Mutate(pb::Message* message) {
    const pb::Descriptor& type = *message->GetDescriptor();
    if (type.field_count() == 0) return;
    const pb::FieldDescriptor& field =
        *type.field(static_cast<int>(Below(static_cast<uint32_t>(type.field_count()))));
    if (field.name() == "spec") return;  // another one is refused as such
    if (field.is_repeated()) {
      MutateRepeated(message, field);
    } else if (field.message_type() != nullptr) {
      const pb::Reflection& reflection = *message->GetReflection();
      if (Below(20) == 0) return reflection.ClearField(message, &field);
      Mutate(reflection.MutableMessage(message, &field));
    } else {
      SetScalar(message, field);
    }
  }
  uint32_t Below(uint32_t n) { return random_.Below(n); }

 private:
  uint64_t Number(uint64_t old) {
    const uint64_t edges[] = {0,
                              1,
                              old + 1,
                              old - 1,
                              2 * old,
                              random_.Below(64),
                              (uint64_t{1} << 31),
                              (uint64_t{1} << 32) - 1,
                              (uint64_t{1} << 53),
                              (uint64_t{1} << 63),
                              ~uint64_t{0},
                              (uint64_t{random_.Next()} << 32) + random_.Next()};
    return edges[Below(static_cast<uint32_t>(std::size(edges)))];
  }

  void SetScalar(pb::Message* message, const pb::FieldDescriptor& field) {
    const pb::Reflection& reflection = *message->GetReflection();
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        return reflection.SetUInt64(message, &field,
                                    Number(reflection.GetUInt64(*message, &field)));
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(message, &field, !reflection.GetBool(*message, &field));
      default:
        return reflection.SetString(message, &field, std::string(Below(9), '\xff'));
    }
  }

  void MutateRepeated(pb::Message* message, const pb::FieldDescriptor& field) {
    const pb::Reflection& reflection = *message->GetReflection();
    const int size = reflection.FieldSize(*message, &field);
    if (Below(3) == 0) return MutateRow(message, size);
    if (size == 0 || Below(10) == 0) return AddElement(message, field);
    const auto i = static_cast<int>(Below(static_cast<uint32_t>(size)));
    if (Below(10) == 0) return reflection.RemoveLast(message, &field);
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        return Mutate(reflection.MutableRepeatedMessage(message, &field, i));
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetRepeatedBool(message, &field, i,
                                          !reflection.GetRepeatedBool(*message, &field, i));
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        return reflection.SetRepeatedUInt32(
            message, &field, i,
            static_cast<uint32_t>(Number(reflection.GetRepeatedUInt32(*message, &field, i))));
      default:
        return reflection.SetRepeatedUInt64(
            message, &field, i, Number(reflection.GetRepeatedUInt64(*message, &field, i)));
    }
  }

  void AddElement(pb::Message* message, const pb::FieldDescriptor& field) {
    const pb::Reflection& reflection = *message->GetReflection();
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        return Mutate(reflection.AddMessage(message, &field));
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        return reflection.AddBool(message, &field, true);
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        return reflection.AddUInt32(message, &field, static_cast<uint32_t>(Number(7)));
      default:
        return reflection.AddUInt64(message, &field, Number(7));
    }
  }

  // The same in all columns of this length, so that they still fit together.
  void MutateRow(pb::Message* message, int size) {
    if (size == 0) return;
    const pb::Reflection& reflection = *message->GetReflection();
    const auto i = static_cast<int>(Below(static_cast<uint32_t>(size)));
    const bool remove = Below(2) == 0;
    for (int column = 0; column < message->GetDescriptor()->field_count(); ++column) {
      const pb::FieldDescriptor& field = *message->GetDescriptor()->field(column);
      if (!field.is_repeated() || reflection.FieldSize(*message, &field) != size) continue;
      reflection.SwapElements(message, &field, i, size - 1);
      if (remove) reflection.RemoveLast(message, &field);
    }
  }

  RandomStream random_;
};

struct NamedSource {
  std::string name;
  std::string fields;
  std::string policy = "SKIP";
};

class HostileCheckpointTest : public ::testing::TestWithParam<NamedSource> {
 protected:
  static constexpr int kMutants = 1000;

  static Files Data() {
    Files files = Pictures();
    files.merge(Shards());
    return files;
  }
};

// Either it is refused, or it gives batches, errors or an end: what they are is its maker's affair.
TEST_P(HostileCheckpointTest, IsRefusedOrRuns) {
  std::string stages = kStages;
  stages.replace(stages.find("SKIP"), 4, GetParam().policy);
  const PipelineSpec spec = Spec("source { " + GetParam().fields + " epochs: 2 } ", stages);
  const std::shared_ptr<Storage> storage = StorageOf(Data());
  const PipelineCheckpoint checkpoint = CheckpointAfter(9, spec, Data());
  int ran = 0;
  for (uint64_t seed = 0; seed < kMutants; ++seed) {
    SCOPED_TRACE("mutant " + std::to_string(seed));
    Mutator mutator(seed);
    proto::Checkpoint mutant = checkpoint.message();
    for (uint32_t i = mutator.Below(3); i < 3; ++i) mutator.Mutate(&mutant);
    const std::string bytes = PipelineCheckpoint(mutant).ToBytes();
    try {
      const auto pipeline = Pipeline::Restore(spec, PipelineCheckpoint::FromBytes(bytes),
                                              {.threads = 2, .storage = storage});
      ++ran;
      for (int step = 0; step < 20 && pipeline->Next(); ++step) continue;
      pipeline->Checkpoint();
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    }
  }
  EXPECT_GT(ran, kMutants / 50);
  EXPECT_LT(ran, kMutants);
}

std::string NameOf(const ::testing::TestParamInfo<NamedSource>& source) {
  return source.param.name;
}

const NamedSource kSources[] = {{"Folder", "uri: 'photos' shuffle { full {} }"},
                                {"FolderWindow", "uri: 'photos' shuffle { window: 12 }"},
                                {"FolderReplacing", "uri: 'photos' shuffle { full {} }", "REPLACE"},
                                {"ShardsWindow", "uri: 'shards/*.tar' shuffle { window: 8 }"}};

INSTANTIATE_TEST_SUITE_P(Sources, HostileCheckpointTest, ::testing::ValuesIn(kSources), NameOf);

}  // namespace
}  // namespace echopipe
