#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <echopipe/tests/support/batches_by_step.h>

namespace echopipe {
namespace {

using testing::BatchesByStep;

struct Parts {
  Batch::Content content;
  Batch::Delivery delivery;
};

Tensor Bytes(const std::vector<uint8_t>& values, const Shape& shape, DType dtype = DType::kUint8) {
  BufferPool pool;
  TensorBuilder builder(dtype, shape, pool);
  std::copy(values.begin(), values.end(), builder.data());
  return std::move(builder).Finish();
}

Parts Example2() {
  Parts parts;
  parts.content.features = {{"image", Bytes({1, 2, 3, 4}, {2, 2})}};
  parts.content.bytes_features = {{"text", {Bytes({5}, {1}, DType::kBytes), Bytes({6, 7}, {2})}}};
  parts.content.labels = {3, -1};
  parts.content.provenance.resize(2);
  for (Provenance& provenance : parts.content.provenance) {
    provenance.uri = std::make_shared<std::string>("uri");
    provenance.key = "key";
    provenance.identity = {.epoch = 1, .ordinal = 2, .echo_points = 1, .use = {1}};
  }
  return parts;
}

std::string HashOf(const Parts& parts) {
  BatchHash hash;
  hash.Add(Batch(std::make_shared<Batch::Content>(parts.content), parts.delivery));
  return hash.Hex();
}

TEST(BatchHashTest, EqualBatchesHaveEqualHashes) {
  EXPECT_EQ(HashOf(Example2()), HashOf(Example2()));
}

TEST(BatchHashTest, AnyDifferenceShows) {
  const std::vector<std::pair<std::string, std::function<void(Parts&)>>> changes = {
      {"pixel",
       [](Parts& p) {
         p.content.features[0].tensor = Bytes({1, 2, 3, 5}, {2, 2});
       }},
      {"shape",
       [](Parts& p) {
         p.content.features[0].tensor = Bytes({1, 2, 3, 4}, {2, 2, 1});
       }},
      {"name", [](Parts& p) { p.content.features[0].name = "imagf"; }},
      {"bytes",
       [](Parts& p) {
         p.content.bytes_features[0].values[1] = Bytes({6, 8}, {2});
       }},
      {"label", [](Parts& p) { p.content.labels[1] = 0; }},
      {"key", [](Parts& p) { p.content.provenance[1].key = "kez"; }},
      {"epoch", [](Parts& p) { p.content.provenance[1].identity.epoch = 2; }},
      {"ordinal", [](Parts& p) { p.content.provenance[1].identity.ordinal = 3; }},
      {"use", [](Parts& p) { p.content.provenance[1].identity.use[0] = 0; }},
      {"points", [](Parts& p) { p.content.provenance[1].identity.echo_points = 0; }},
      {"age", [](Parts& p) { p.content.provenance[0].age = 1; }},
      {"batch use", [](Parts& p) { p.delivery.uses = {0}; }},
      {"batch epoch", [](Parts& p) { p.content.epoch = 1; }},
      {"end of epoch", [](Parts& p) { p.delivery.end_of_epoch = true; }}};
  for (const auto& [name, change] : changes) {
    Parts parts = Example2();
    change(parts);
    EXPECT_NE(HashOf(parts), HashOf(Example2())) << name;
  }
}

TEST(BatchHashTest, OrderCountsUnlessPutBackByStep) {
  Parts second = Example2();
  second.delivery.step = 1;
  second.content.labels[0] = 4;
  const Batch a(std::make_shared<Batch::Content>(Example2().content), Example2().delivery);
  const Batch b(std::make_shared<Batch::Content>(second.content), second.delivery);
  BatchHash ab;
  ab.Add(a);
  ab.Add(b);
  BatchHash ba;
  ba.Add(b);
  ba.Add(a);
  EXPECT_NE(ab.Hex(), ba.Hex());
  BatchesByStep put_back;
  put_back.Add(b);
  put_back.Add(a);
  EXPECT_EQ(put_back.Hash(), ab.Hex());
}

}  // namespace
}  // namespace echopipe
