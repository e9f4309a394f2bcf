#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <echopipe/bench/batch_hash.h>

namespace echopipe {

// Everything of variable length goes in behind its length, so that no two runs look alike.
struct BatchHash::State {
  XXH3_state_t xxh3;

  void Add(uint64_t number) { XXH3_128bits_update(&xxh3, &number, sizeof(number)); }
  void Add(std::span<const uint8_t> bytes) {
    Add(bytes.size());
    XXH3_128bits_update(&xxh3, bytes.data(), bytes.size());
  }
  void Add(std::string_view text) {
    Add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  void Add(const Tensor& tensor) {
    Add(ToString(tensor.dtype()));
    Add(tensor.shape().rank());
    for (const int64_t extent : tensor.shape().extents()) Add(static_cast<uint64_t>(extent));
    Add(tensor.bytes());
  }
  void Add(const Provenance& provenance) {
    Add(provenance.key);
    Add(provenance.identity.epoch);
    Add(provenance.identity.ordinal);
    Add(provenance.identity.echo_points);
    for (const uint32_t use : provenance.identity.uses()) Add(use);
    Add(provenance.age);
    if (!provenance.stands_in) return;
    Add(~uint64_t{0});  // no key is of this length
    Add(provenance.stands_in->epoch);
    Add(provenance.stands_in->ordinal);
  }
};

BatchHash::BatchHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
BatchHash::~BatchHash() = default;

void BatchHash::Add(const Batch& batch) {
  state_->Add(batch.features().size());
  for (const Batch::Feature& feature : batch.features()) {
    state_->Add(feature.name);
    state_->Add(feature.tensor);
  }
  state_->Add(batch.bytes_features().size());
  for (const Batch::BytesFeature& feature : batch.bytes_features()) {
    state_->Add(feature.name);
    state_->Add(feature.values.size());
    for (const Tensor& value : feature.values) state_->Add(value);
  }
  state_->Add(batch.labels().size());
  for (const int64_t label : batch.labels()) state_->Add(static_cast<uint64_t>(label));
  state_->Add(batch.epoch());
  state_->Add(uint64_t{batch.end_of_epoch()});
  for (size_t i = 0; i < batch.size(); ++i) state_->Add(batch.provenance(i));
}

std::string BatchHash::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace echopipe
