#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <echopipe/base/buffer.h>
#include <echopipe/io/formats/shard_format.h>
#include <echopipe/io/formats/shard_index.h>
#include <echopipe/io/storage.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// Told of each piece of a shard that was read; what it throws passes through.
using OnBytes = std::function<void(uint64_t bytes)>;

/// Reads a shard from its begin to its end and lists its samples.
///
/// `shards` is its format with any members or features: what only some specs call bad is listed
/// like the rest.
/// Errors  As Storage; kIo if the shard is changed meanwhile.
ShardIndex IndexShard(const std::string& shard, proto::Source::Format format,
                      const ShardFormat& shards, Storage& storage, BufferPool& pool,
                      const OnBytes& on_bytes = {});

/// Of each of these indexes, whether its shard is as it was when the index was made. What has to be
/// read of all shards is read at once.
/// Errors  As Storage.
std::vector<bool> FitToShards(std::span<const ShardIndex> indexes,
                              std::span<const std::string> shards, Storage& storage,
                              BufferPool& pool);

}  // namespace echopipe::internal
