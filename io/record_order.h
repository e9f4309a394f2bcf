#pragma once

namespace echopipe {

/// When a record comes whose read has ended before those in front of it.
enum class RecordOrder {
  kInOrder,  ///< in its turn: the order is a function of spec, seed and data
  /// At once: a read that takes long holds nothing up but the end of its epoch. Each record still
  /// comes once an epoch, under its own identity. Shards that are streamed come in order all the
  /// same.
  kAsReady,
};

}  // namespace echopipe
