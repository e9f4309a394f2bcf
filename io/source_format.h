#pragma once

#include <memory>
#include <string>
#include <vector>

#include <echopipe/io/formats/manifest.h>
#include <echopipe/io/formats/shard_format.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe::internal {

/// The one format of all these names (of files or folders), by the spec or by what they end in.
///
/// Errors  kInvalidArgument with the field in `where`: names of different formats, compressed
///         shards.
proto::Source::Format FormatOf(const proto::Source& spec, const std::vector<std::string>& names);

/// The format of shards with what the spec says about it; null for formats that have none.
/// Errors  kInvalidArgument with the field in `where`, if it cannot be meant.
std::unique_ptr<const ShardFormat> ShardFormatOf(const proto::Source& spec,
                                                 proto::Source::Format format);

/// Errors  As above.
ManifestColumns ColumnsOf(const proto::Source& spec);

}  // namespace echopipe::internal
