#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <echopipe/base/buffer.h>
#include <echopipe/base/export.h>
#include <echopipe/io/record_order.h>
#include <echopipe/io/source.h>
#include <echopipe/io/storage.h>

namespace echopipe::proto {
class Source;
}

namespace echopipe {

/// What a source is opened with, beside its spec.
struct SourceOptions {
  uint64_t seed = 0;
  Shard shard = {};
  SourceLimits limits = {};
  RecordOrder order = RecordOrder::kInOrder;
  /// Called from a storage thread when something has arrived, under no lock. It must neither wait
  /// nor destroy the source nor throw.
  std::function<void()> wake = {};
  /// Told what was listed and passed over. Called by OpenSource() alone.
  std::function<void(std::string_view)> log = {};
  /// Where to begin: what state() told of a source of the same spec, seed, data and shard.
  std::optional<SourceState> start = {};
  uint64_t max_record_bytes = uint64_t{256} << 20;  ///< of a file in an image folder
};

/// Throws kInvalidArgument, with the field's name in `where`, if the spec cannot be meant.
/// Touches no storage.
ECHOPIPE_EXPORT void ValidateSource(const proto::Source& spec);

/// The same of several that are mixed.
ECHOPIPE_EXPORT void ValidateSources(std::span<const proto::Source* const> specs);

/// Opens a source: expands its uris, lists its folders and reads its indexes, which blocks; reads
/// no record yet.
///
/// `pool` must outlive the source.
/// Errors  As ValidateSource(); kInvalidArgument for options out of range or a state that cannot be
///         this source's; kNotFound, kEmpty and others of the listing; kNotFound for shards
///         that are not there, if there are no more than 1,000 without a glob; those of their
///         indexes (docs/sources.md), where a full shuffle needs these.
ECHOPIPE_EXPORT std::unique_ptr<Source> OpenSource(const proto::Source& spec,
                                                   std::shared_ptr<Storage> storage,
                                                   BufferPool& pool, SourceOptions options);

/// Opens several as one MixedSource; a single one as OpenSource() does.
ECHOPIPE_EXPORT std::unique_ptr<Source> OpenSources(std::span<const proto::Source* const> specs,
                                                    const std::shared_ptr<Storage>& storage,
                                                    BufferPool& pool, SourceOptions options);

}  // namespace echopipe
