#include "store/zeroed_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace talweg {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t rounded(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

// The system gives pages that are zero already. Below the size of a huge page the heap is thriftier.
bool is_mapped(size_t bytes) { return bytes >= kHugePage; }

void* map_aligned(size_t bytes) {
  const size_t wanted = rounded(bytes);
  void* const mapped = mmap(nullptr, wanted + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t before = rounded(reinterpret_cast<uintptr_t>(first)) - reinterpret_cast<uintptr_t>(first);
  if (before > 0) munmap(first, before);
  if (before < kHugePage) munmap(first + before + wanted, kHugePage - before);
  return first + before;
}

}  // namespace

void* allocate_zeroed(size_t bytes, Pages pages) {
  if (!is_mapped(bytes)) {
    void* const memory = ::operator new(bytes, std::align_val_t(64));
    return __builtin_memset(memory, 0, bytes);
  }
  void* const memory = map_aligned(bytes);
  // Advice only: where huge pages are off, small ones serve.
  if (pages == Pages::kHuge) static_cast<void>(madvise(memory, rounded(bytes), MADV_HUGEPAGE));
  return memory;
}

void free_zeroed(void* memory, size_t bytes) {
  if (!is_mapped(bytes)) return ::operator delete(memory, std::align_val_t(64));
  munmap(memory, rounded(bytes));
}

}  // namespace talweg
