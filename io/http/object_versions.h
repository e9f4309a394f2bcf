#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include <echopipe/io/http/answer.h>

namespace echopipe::internal {

/// The versions of the objects read last, by path.
///
/// Threads  One caller at a time.
/// Cost     O(1); at most `most` objects are kept.
class ObjectVersions {
 public:
  explicit ObjectVersions(size_t most) : most_(most) {}

  /// The version that was read, or null. Valid until the next call.
  const ObjectVersion* Find(const std::string& path);
  /// Keeps it, in the place of the one used longest ago.
  void Set(const std::string& path, const ObjectVersion& version);

 private:
  using Entry = std::pair<uint64_t, ObjectVersion>;  // the path's hash

  size_t most_;
  std::list<Entry> used_;  // the last one first
  std::unordered_map<uint64_t, std::list<Entry>::iterator> by_path_;
};

}  // namespace echopipe::internal
