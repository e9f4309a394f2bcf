#include <echopipe/base/random.h>
#include <echopipe/io/http/object_versions.h>

namespace echopipe::internal {

const ObjectVersion* ObjectVersions::Find(const std::string& path) {
  const auto found = by_path_.find(HashBytes(path));
  if (found == by_path_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return &found->second->second;
}

void ObjectVersions::Set(const std::string& path, const ObjectVersion& version) {
  const uint64_t hash = HashBytes(path);
  // Without the memory for it nothing changes.
  std::list<Entry> entry;
  entry.emplace_front(hash, version);
  const auto [place, is_new] = by_path_.try_emplace(hash, entry.begin());
  if (!is_new) used_.erase(std::exchange(place->second, entry.begin()));
  used_.splice(used_.begin(), entry);
  if (used_.size() > most_) {
    by_path_.erase(used_.back().first);
    used_.pop_back();
  }
}

}  // namespace echopipe::internal
