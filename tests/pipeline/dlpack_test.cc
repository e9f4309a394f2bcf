#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>

#include <echopipe/pipeline/dlpack.h>
#include <echopipe/pipeline/pipeline.h>
#include <echopipe/tests/support/image_data.h>

namespace echopipe {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::TempFolder;
using testing::WriteImages;

struct CallDeleter {
  void operator()(DLManagedTensor* managed) const { managed->deleter(managed); }
};
using Exported = std::unique_ptr<DLManagedTensor, CallDeleter>;

Exported Export(const Tensor& tensor) { return Exported(ToDlpack(tensor)); }
Exported Export(const Batch& batch) { return Exported(ToDlpack(batch, "image")); }

const uint8_t* DataOf(const Exported& exported) {
  return static_cast<const uint8_t*>(exported->dl_tensor.data);
}

std::vector<uint8_t> BytesOf(const Exported& exported) {
  const DLTensor& tensor = exported->dl_tensor;
  int64_t bytes = tensor.dtype.bits / 8;
  for (int axis = 0; axis < tensor.ndim; ++axis) bytes *= tensor.shape[axis];
  return {DataOf(exported), DataOf(exported) + bytes};
}

bool IsAligned(const Exported& exported) {
  return reinterpret_cast<uintptr_t>(exported->dl_tensor.data) % 64 == 0;
}

Tensor MakeTensor(DType dtype, const Shape& shape, BufferPool& pool) {
  TensorBuilder builder(dtype, shape, pool);
  for (size_t i = 0; i < builder.size(); ++i) builder.data()[i] = static_cast<uint8_t>(i);
  return std::move(builder).Finish();
}

struct TypeCase {
  DType dtype;
  DLDataTypeCode code;
  int bits;
};

class DlpackTypes : public ::testing::TestWithParam<TypeCase> {};

TEST_P(DlpackTypes, FieldsTellTheTensor) {
  BufferPool pool;
  const Tensor tensor = MakeTensor(GetParam().dtype, {2, 5, 3}, pool);
  const std::vector<uint8_t> bytes(tensor.bytes().begin(), tensor.bytes().end());
  const Exported exported = Export(tensor);
  const DLTensor& fields = exported->dl_tensor;
  EXPECT_EQ(fields.device.device_type, kDLCPU);
  EXPECT_EQ(fields.device.device_id, 0);
  EXPECT_EQ(fields.dtype.code, GetParam().code);
  EXPECT_EQ(fields.dtype.bits, GetParam().bits);
  EXPECT_EQ(fields.dtype.lanes, 1);
  EXPECT_EQ(fields.byte_offset, 0u);
  ASSERT_EQ(fields.ndim, 3);
  EXPECT_THAT(std::vector<int64_t>(fields.shape, fields.shape + 3), ElementsAre(2, 5, 3));
  EXPECT_THAT(std::vector<int64_t>(fields.strides, fields.strides + 3), ElementsAre(15, 3, 1));
  EXPECT_EQ(BytesOf(exported), bytes);
}

INSTANTIATE_TEST_SUITE_P(All, DlpackTypes,
                         ::testing::Values(TypeCase{DType::kUint8, kDLUInt, 8},
                                           TypeCase{DType::kInt64, kDLInt, 64},
                                           TypeCase{DType::kFloat16, kDLFloat, 16},
                                           TypeCase{DType::kFloat32, kDLFloat, 32}),
                         [](const auto& type) { return std::string(ToString(type.param.dtype)); });

TEST(DlpackTest, EncodedBytesAreNumbersAndAScalarHasNoAxes) {
  BufferPool pool;
  const Exported bytes = Export(MakeTensor(DType::kBytes, {7}, pool));
  EXPECT_EQ(bytes->dl_tensor.dtype.code, kDLUInt);
  EXPECT_EQ(bytes->dl_tensor.dtype.bits, 8);
  const Exported scalar = Export(MakeTensor(DType::kInt64, {}, pool));
  EXPECT_EQ(scalar->dl_tensor.ndim, 0);
  EXPECT_EQ(BytesOf(scalar).size(), 8u);
}

TEST(DlpackTest, AnEmptyTensorPasses) {
  const Exported exported = Export(Tensor());
  EXPECT_EQ(exported->dl_tensor.ndim, 1);
  EXPECT_EQ(exported->dl_tensor.shape[0], 0);
}

TEST(DlpackTest, ATensorThatNobodyElseHoldsIsNotCopied) {
  BufferPool pool;
  const Tensor tensor = MakeTensor(DType::kUint8, {4, 4}, pool);
  EXPECT_EQ(DataOf(Export(tensor)), tensor.bytes().data());
  EXPECT_EQ(DataOf(Export(tensor)), tensor.bytes().data()) << "the first export has gone";
}

TEST(DlpackTest, ATensorThatIsHeldElsewhereIsCopied) {
  BufferPool pool;
  const Tensor tensor = MakeTensor(DType::kUint8, {4, 4}, pool);
  const Tensor other = tensor;
  const Exported copy = Export(tensor);
  EXPECT_NE(DataOf(copy), tensor.bytes().data());
  EXPECT_TRUE(IsAligned(copy));
  EXPECT_THAT(BytesOf(copy), ElementsAreArray(other.bytes()));
}

TEST(DlpackTest, ASecondExportIsACopy) {
  BufferPool pool;
  const Tensor tensor = MakeTensor(DType::kUint8, {4, 4}, pool);
  const Exported first = Export(tensor);
  EXPECT_NE(DataOf(Export(tensor)), DataOf(first));
}

TEST(DlpackTest, AnExportLivesUntilItsDeleterIsCalledByWhateverThread) {
  Exported exported;
  std::vector<uint8_t> bytes;
  {
    BufferPool pool;
    const Tensor tensor = MakeTensor(DType::kFloat32, {100, 100}, pool);
    bytes.assign(tensor.bytes().begin(), tensor.bytes().end());
    exported = Export(tensor);
  }
  EXPECT_EQ(BytesOf(exported), bytes);
  std::jthread([&exported] { exported.reset(); });
}

/// A pipeline of 12 examples in batches of 4, with these stages behind batch.
std::unique_ptr<Pipeline> OpenPipeline(const TempFolder& folder, const std::string& behind,
                                       const RuntimeOptions& options = {}) {
  WriteImages(folder, 12, 3);
  return Pipeline::Open(
      PipelineSpec::FromText("source { uri: '" + folder.path().string() +
                             "' } stage { decode {} } stage { resize { height: 8 width: 8 } }"
                             "stage { normalize {} } stage { batch { size: 4 } }" +
                             behind),
      options);
}

TEST(DlpackTest, ABatchThatDoesNotComeAgainIsNotCopied) {
  const TempFolder folder;
  const auto pipeline = OpenPipeline(folder, "");
  int batches = 0;
  while (const std::optional<Batch> batch = pipeline->Next()) {
    EXPECT_FALSE(batch->is_shared());
    const Exported exported = Export(*batch);
    EXPECT_EQ(DataOf(exported), batch->Get("image").bytes().data());
    EXPECT_TRUE(IsAligned(exported));
    EXPECT_EQ(exported->dl_tensor.shape[0], 4);
    ++batches;
  }
  EXPECT_EQ(batches, 3);
}

TEST(DlpackTest, AnExportOutlivesBatchAndPipeline) {
  const TempFolder folder;
  auto pipeline = OpenPipeline(folder, "");
  Exported exported = Export(*pipeline->Next());
  const std::vector<uint8_t> bytes = BytesOf(exported);
  pipeline.reset();
  EXPECT_EQ(BytesOf(exported), bytes);
}

TEST(DlpackTest, MemoryOfTheAllocatorIsGivenOnAndBack) {
  const TempFolder folder;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> allocated = held;
  auto pipeline = OpenPipeline(folder, "", {.allocator = [held](size_t bytes) {
                                 return std::shared_ptr<uint8_t>(
                                     new uint8_t[bytes], [held](const uint8_t* p) { delete[] p; });
                               }});
  held.reset();
  Exported exported = Export(*pipeline->Next());
  pipeline.reset();
  EXPECT_FALSE(allocated.expired()) << "by the export";
  exported.reset();
  EXPECT_TRUE(allocated.expired());
}

// What a library does to its memory.
void Scribble(const Exported& exported) {
  std::memset(exported->dl_tensor.data, 0xee, BytesOf(exported).size());
}

class DlpackOfEchoes : public ::testing::TestWithParam<std::string> {};

TEST_P(DlpackOfEchoes, WhatALibraryWritesIsNotInLaterUses) {
  const auto digests = [&](bool scribbles) {
    const TempFolder folder;
    const auto pipeline = OpenPipeline(folder, GetParam());
    std::vector<std::vector<uint8_t>> batches;
    while (const std::optional<Batch> batch = pipeline->Next()) {
      const auto bytes = batch->Get("image").bytes();
      batches.emplace_back(bytes.begin(), bytes.end());
      if (scribbles) Scribble(Export(*batch));
    }
    return batches;
  };
  const auto untouched = digests(false);
  EXPECT_GE(untouched.size(), 9u);
  EXPECT_EQ(digests(true), untouched);
}

INSTANTIATE_TEST_SUITE_P(Points, DlpackOfEchoes,
                         ::testing::Values("stage { echo { factor: 3 } }",
                                           "stage { echo { factor: 3 shuffle_buffer: 3 } }",
                                           "stage { echo { factor: 2 } } stage { echo { factor: 2 "
                                           "shuffle_buffer: 2 } }"));

TEST(DlpackTest, ABatchThatComesAgainIsCopiedAndItsLastUseIsNot) {
  const TempFolder folder;
  auto pipeline = OpenPipeline(folder, "stage { echo { factor: 2 } }");
  std::vector<std::optional<Batch>> batches;
  while (std::optional<Batch> batch = pipeline->Next()) {
    if (batch->provenance(0).identity.uses().back() == 0) {
      EXPECT_NE(DataOf(Export(*batch)), batch->Get("image").bytes().data());
    }
    batches.push_back(std::move(batch));
  }
  pipeline.reset();
  ASSERT_EQ(batches.size(), 6u);  // each beside its repeat
  for (size_t i = 0; i < batches.size(); i += 2) {
    EXPECT_TRUE(batches[i]->is_shared());
    batches[i].reset();
    const Batch& last = *batches[i + 1];
    EXPECT_EQ(DataOf(Export(last)), last.Get("image").bytes().data());
  }
}

TEST(DlpackTest, ABatchOfWhichThereIsACopyIsCopied) {
  const TempFolder folder;
  const auto pipeline = OpenPipeline(folder, "");
  const Batch batch = *pipeline->Next();
  std::optional<Batch> other = batch;
  EXPECT_TRUE(batch.is_shared());
  EXPECT_NE(DataOf(Export(batch)), batch.Get("image").bytes().data());
  other.reset();
  EXPECT_EQ(DataOf(Export(batch)), batch.Get("image").bytes().data());
}

TEST(DlpackTest, LabelsAreACopyOfTheirOwn) {
  const TempFolder folder;
  const auto pipeline = OpenPipeline(folder, "");
  const Batch batch = *pipeline->Next();
  const Exported labels(LabelsToDlpack(batch));
  EXPECT_EQ(labels->dl_tensor.dtype.code, kDLInt);
  EXPECT_EQ(labels->dl_tensor.dtype.bits, 64);
  const auto* values = static_cast<const int64_t*>(labels->dl_tensor.data);
  EXPECT_THAT(std::vector<int64_t>(values, values + 4), ElementsAreArray(batch.labels()));
  EXPECT_NE(values, batch.labels().data());
}

TEST(DlpackTest, AFeatureThatIsNotThereIsNamed) {
  const TempFolder folder;
  const auto pipeline = OpenPipeline(folder, "");
  const Batch batch = *pipeline->Next();
  EXPECT_THROW(Exported(ToDlpack(batch, "mask")), Error);
}

}  // namespace
}  // namespace echopipe
