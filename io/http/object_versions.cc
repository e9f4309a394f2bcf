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
  const auto found = by_path_.find(hash);
  if (found != by_path_.end()) {
    found->second->second = version;
    return;
  }
  if (used_.size() == most_) {
    by_path_.erase(used_.back().first);
    used_.pop_back();
  }
  used_.emplace_front(hash, version);
  by_path_[hash] = used_.begin();
}

}  // namespace echopipe::internal
