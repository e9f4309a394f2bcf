#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/graph/batch_builder.h>

namespace echopipe::internal {
namespace {

// A prefix of a batch's memory; keeps the whole alive.
class SharedBytes final : public Buffer {
 public:
  SharedBytes(std::shared_ptr<uint8_t> memory, size_t size)
      : Buffer(memory.get(), size), memory_(std::move(memory)) {}

 private:
  std::shared_ptr<uint8_t> memory_;
};

// The memory is there, or the error says whose fault it is.
std::shared_ptr<uint8_t> CallAllocator(const BatchBuilder::Allocator& allocator, size_t bytes) {
  const auto error = [bytes](const std::string& what) {
    return Error({.code = ErrorCode::kResourceExhausted,
                  .what = what,
                  .where = "RuntimeOptions.allocator",
                  .wanted = std::to_string(bytes) + " bytes"});
  };
  std::shared_ptr<uint8_t> memory;
  try {
    memory = allocator(bytes);
  } catch (const std::exception& thrown) {
    throw error(std::string("the function threw: ") + thrown.what());
  } catch (...) {
    throw error("the function threw something that is no std::exception");
  }
  if (!memory) throw error("the function gave no memory");
  return memory;
}

std::string Describe(const WritingStage::Output& output) {
  return std::string(ToString(output.dtype)) + " " + output.shape.ToString();
}

}  // namespace

BatchBuilder::BatchBuilder(size_t capacity, const Item& first, const WritingStage* writer,
                           BufferPool& pool, const Allocator& allocator)
    : writer_(writer), content_(std::make_shared<Batch::Content>()) {
  const auto allocate = [&](size_t bytes) {
    if (allocator && bytes > 0) return CallAllocator(allocator, bytes);
    std::shared_ptr<Buffer> buffer = pool.Allocate(bytes);
    uint8_t* data = buffer->data();
    return std::shared_ptr<uint8_t>(std::move(buffer), data);
  };
  for (const Example::Feature& feature : first.example->features()) {
    if (feature.tensor.dtype() == DType::kBytes) {
      content_->bytes_features.push_back({feature.name, std::vector<Tensor>(capacity)});
      continue;
    }
    Stacked stacked{.name = feature.name,
                    .output = {feature.tensor.dtype(), feature.tensor.shape()},
                    .memory = nullptr,
                    .by_writer = writer != nullptr && writer->feature() == feature.name};
    if (stacked.by_writer) stacked.output = *first.written;
    stacked.example_bytes =
        static_cast<size_t>(stacked.output.shape.elements()) * ElementSize(stacked.output.dtype);
    stacked.memory = allocate(stacked.example_bytes * capacity);
    stacked_.push_back(std::move(stacked));
  }
  content_->labels.resize(capacity);
  content_->provenance.resize(capacity);
}

uint64_t BatchBuilder::bytes() const {
  uint64_t bytes = 0;
  for (const Stacked& stacked : stacked_) bytes += stacked.example_bytes;
  return bytes * content_->labels.size();
}

void BatchBuilder::ThrowMismatch(const Item& item, const std::string& feature, std::string got,
                                 std::string wanted) const {
  throw Error({.code = ErrorCode::kShapeMismatch,
               .what = "cannot be stacked with " + content_->provenance[0].key,
               .where = "batch: " + item.example->provenance().key + ": " + feature,
               .got = std::move(got),
               .wanted = std::move(wanted)});
}

void BatchBuilder::Reserve(Item& item) {
  const Example& example = *item.example;
  size_t features = 0;
  for (const Stacked& stacked : stacked_) {
    const Tensor* tensor = example.Find(stacked.name);
    if (tensor == nullptr)
      ThrowMismatch(item, stacked.name, "no such feature", Describe(stacked.output));
    const WritingStage::Output output =
        stacked.by_writer ? *item.written : WritingStage::Output{tensor->dtype(), tensor->shape()};
    if (output.dtype != stacked.output.dtype || output.shape != stacked.output.shape) {
      ThrowMismatch(item, stacked.name, Describe(output), Describe(stacked.output));
    }
    ++features;
  }
  for (const Batch::BytesFeature& feature : content_->bytes_features) {
    const Tensor* tensor = example.Find(feature.name);
    if (tensor == nullptr || tensor->dtype() != DType::kBytes) {
      ThrowMismatch(item, feature.name, tensor == nullptr ? "no such feature" : "an array",
                    "bytes");
    }
    ++features;
  }
  if (features != example.features().size()) {
    ThrowMismatch(item, "features", std::to_string(example.features().size()),
                  std::to_string(features));
  }
  item.slot = size_++;
  open_.fetch_add(1, std::memory_order_relaxed);
  content_->labels[item.slot] = example.label().value_or(-1);
  Provenance& provenance = content_->provenance[item.slot];
  provenance = example.provenance();
  provenance.identity = item.identity;
  provenance.age = item.age;
  provenance.stands_in = item.stands_in;
  if (item.holds_credit) ++credits_;
}

void BatchBuilder::Fill(const Item& item) const {
  for (const Stacked& stacked : stacked_) {
    const Tensor& tensor = item.example->Get(stacked.name);
    uint8_t* out = stacked.memory.get() + item.slot * stacked.example_bytes;
    if (stacked.by_writer) {
      writer_->WriteTo(tensor, out);
    } else if (stacked.example_bytes > 0) {
      std::memcpy(out, tensor.bytes().data(), stacked.example_bytes);
    }
  }
  for (Batch::BytesFeature& feature : content_->bytes_features) {
    feature.values[item.slot] = item.example->Get(feature.name);
  }
}

std::shared_ptr<const Batch::Content> BatchBuilder::Finish() {
  for (Stacked& stacked : stacked_) {
    std::vector<int64_t> extents{static_cast<int64_t>(size_)};
    for (const int64_t extent : stacked.output.shape.extents()) extents.push_back(extent);
    content_->features.push_back(
        {stacked.name, Tensor(stacked.output.dtype, Shape(extents),
                              std::make_shared<SharedBytes>(std::move(stacked.memory),
                                                            stacked.example_bytes * size_))});
  }
  for (Batch::BytesFeature& feature : content_->bytes_features) feature.values.resize(size_);
  content_->labels.resize(size_);
  content_->provenance.resize(size_);
  return std::move(content_);
}

}  // namespace echopipe::internal
