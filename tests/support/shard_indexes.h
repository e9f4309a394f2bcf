#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <echopipe/io/formats/shard_index.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::testing {

/// The index of a shard with these bytes; ".tfrecord" in the name tells its format. The time it was
/// changed is not known.
internal::ShardIndex IndexOf(const std::string& name, std::string_view shard);
/// The same, as it stands in a file.
std::string IndexBytes(const std::string& name, std::string_view shard);

/// Puts the indexes of these shards, which both storages have, into `to`, be it gated: reads of
/// indexes complete at once, and the shards are known to be unchanged, so that none is read when
/// they are opened.
void PutIndexes(const std::vector<std::string>& shards, FakeStorage& from, FakeStorage& to);

}  // namespace echopipe::testing
