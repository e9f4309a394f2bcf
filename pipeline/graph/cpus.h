#pragma once

namespace echopipe::internal {

/// CPUs this process may use: the smaller of its affinity mask and its cgroup's quota, at least 1.
int AvailableCpus();

}  // namespace echopipe::internal
