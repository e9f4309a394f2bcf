#include <algorithm>
#include <utility>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/batch.h>

namespace echopipe {

Batch::Batch(std::shared_ptr<const Content> content, Delivery delivery)
    : content_(std::move(content)), delivery_(std::move(delivery)) {}

const Tensor& Batch::Get(std::string_view name) const {
  const auto found = std::ranges::find(content_->features, name, &Feature::name);
  if (found != content_->features.end()) return found->tensor;
  std::string names;
  for (const Feature& feature : content_->features) {
    names += (names.empty() ? "" : ", ") + feature.name;
  }
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "no such stacked feature",
               .got = std::string(name),
               .wanted = "one of " + names});
}

bool Batch::is_shared() const {
  // One more, as taking it orders this behind what those who have let go did before.
  const std::shared_ptr<const Content> held = content_;
  return held.use_count() > 2;
}

Provenance Batch::provenance(size_t i) const {
  Provenance provenance = content_->provenance[i];
  Identity& identity = provenance.identity;
  for (const uint32_t use : delivery_.uses) identity.use[identity.echo_points++] = use;
  return provenance;
}

}  // namespace echopipe
