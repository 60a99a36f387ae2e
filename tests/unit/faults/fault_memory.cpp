#include "fault_memory.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace vramtrack::testing {
namespace {

// Constant-initialised: malloc is called before any constructor has run.
constinit FaultPlan g_plan;
constinit std::atomic<std::int64_t> g_live{0};
thread_local bool t_own = false;

}  // namespace

FaultPlan& memory_plan() {
  return g_plan;
}
void count_this_thread_as_own() {
  t_own = true;
}
std::int64_t live_blocks() {
  return g_live;
}

#ifdef VRAMTRACK_SANITIZED

bool memory_can_fail() {
  return false;
}

#else

bool memory_can_fail() {
  return true;
}

namespace {

bool fails() {
  if (!g_plan.fails(t_own ? memory_call::own : memory_call::others)) return false;
  errno = ENOMEM;
  return true;
}
void* counted(void* block) {
  if (block != nullptr) ++g_live;
  return block;
}

}  // namespace

#endif

}  // namespace vramtrack::testing

#ifndef VRAMTRACK_SANITIZED

// glibc's own functions, by their other names: a program may replace malloc (see "Replacing malloc" in its manual).
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);

void* malloc(std::size_t size) {
  using namespace vramtrack::testing;
  return fails() ? nullptr : counted(__libc_malloc(size));
}
void* calloc(std::size_t count, std::size_t size) {
  using namespace vramtrack::testing;
  return fails() ? nullptr : counted(__libc_calloc(count, size));
}
void* realloc(void* block, std::size_t size) {
  using namespace vramtrack::testing;
  if (fails()) return nullptr;
  return block == nullptr ? counted(__libc_malloc(size)) : __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  using namespace vramtrack::testing;
  return fails() ? nullptr : counted(__libc_memalign(alignment, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
  return aligned_alloc(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = aligned_alloc(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  if (block != nullptr) --vramtrack::testing::g_live;
  __libc_free(block);
}
}

#endif
