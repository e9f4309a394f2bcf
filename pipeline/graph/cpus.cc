#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <sched.h>

#include <echopipe/pipeline/graph/cpus.h>

namespace echopipe::internal {
namespace {

// "max 100000" or "150000 100000": microseconds of CPU time in each period.
double QuotaIn(const std::string& file) {
  std::ifstream stream(file);
  std::string quota;
  double period = 0;
  if (!(stream >> quota >> period) || quota == "max" || period <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return std::atof(quota.c_str()) / period;
}

// The least quota of this process's cgroup (version 2) and those above it.
double CgroupQuota() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  double quota = std::numeric_limits<double>::infinity();
  while (std::getline(groups, line)) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3);; group.resize(group.rfind('/'))) {
      quota = std::min(quota, QuotaIn("/sys/fs/cgroup" + group + "/cpu.max"));
      if (group.empty() || group == "/") break;
    }
  }
  return quota;
}

}  // namespace

int AvailableCpus() {
  cpu_set_t mask;
  const int affinity = sched_getaffinity(0, sizeof(mask), &mask) == 0
                           ? CPU_COUNT(&mask)
                           : static_cast<int>(std::thread::hardware_concurrency());
  const double quota = CgroupQuota();
  return std::max(1, quota < affinity ? static_cast<int>(std::ceil(quota)) : affinity);
}

}  // namespace echopipe::internal
