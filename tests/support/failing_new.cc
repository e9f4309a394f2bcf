#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <echopipe/tests/support/failing_new.h>

namespace echopipe::testing {

thread_local bool counts = true;
std::atomic<int64_t> allocations = 0;
std::atomic<int64_t> fail_begin = kNever;
std::atomic<int64_t> fail_end = kNever;

bool FailsNow() {
  if (!counts) return false;
  const int64_t number = allocations++;
  return fail_begin <= number && number < fail_end;
}

}  // namespace echopipe::testing

namespace {

// Null if it fails.
void* TryAllocate(size_t size, size_t alignment) noexcept {
  if (echopipe::testing::FailsNow()) return nullptr;
  const size_t whole = (std::max<size_t>(size, 1) + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole);
}

void* Allocate(size_t size, size_t alignment) {
  if (void* memory = TryAllocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Not inlined, or the compiler takes free() for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) { return Allocate(size, 16); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return TryAllocate(size, 16);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
