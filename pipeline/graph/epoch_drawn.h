#pragma once

#include <cstdint>

#include <echopipe/echo/echo_buffer.h>

namespace echopipe::internal {

/// A draw of an echo point whose items come in epochs.
template <class T>
struct EpochDrawn {
  Use<T> use;
  uint64_t stream_epoch = 0;
  bool ends_epoch = false;
};

}  // namespace echopipe::internal
