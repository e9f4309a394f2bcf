#pragma once

#include <echopipe/tests/support/socket.h>

namespace echopipe::testing {

/// Passes on what comes from either side to the other, until one of them ends.
void Tunnel(const Socket& left, const Socket& right);

}  // namespace echopipe::testing
