#include <cstdio>
#include <cstdlib>

#include <echopipe/tests/fuzz/fuzz_input.h>

namespace echopipe::testing {

void Require(bool holds, std::source_location place) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: does not hold\n", place.file_name(),
               static_cast<unsigned>(place.line()));
  std::abort();
}

}  // namespace echopipe::testing
