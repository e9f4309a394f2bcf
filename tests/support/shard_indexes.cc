#include <memory>

#include <echopipe/io/index_shard.h>
#include <echopipe/io/source_format.h>
#include <echopipe/tests/support/shard_indexes.h>

namespace echopipe::testing {
namespace {

internal::ShardIndex IndexIn(const std::string& name, FakeStorage& storage) {
  const bool is_tfrecord = name.find(".tfrecord") != std::string::npos;
  const auto format = is_tfrecord ? proto::Source::TFRECORD : proto::Source::TAR;
  BufferPool pool;
  return internal::IndexShard(name, format, *internal::ShardFormatOf({}, format), storage, pool);
}

}  // namespace

internal::ShardIndex IndexOf(const std::string& name, std::string_view shard) {
  FakeStorage storage;
  storage.Put(name, shard);
  return IndexIn(name, storage);
}

std::string IndexBytes(const std::string& name, std::string_view shard) {
  return IndexOf(name, shard).ToBytes(name);
}

void PutIndexes(const std::vector<std::string>& shards, FakeStorage& from, FakeStorage& to) {
  constexpr int64_t kTime = 1'700'000'000'123'456'789;
  for (const std::string& shard : shards) {
    from.SetTime(shard, kTime);
    to.SetTime(shard, kTime);
    const std::string name = internal::IndexNameOf(shard);
    to.Put(name, IndexIn(shard, from).ToBytes(name));
    to.OpenGateFor(name);
  }
}

}  // namespace echopipe::testing
