// libprobe_pattern.so: one pattern of allocations, on the heap or at the CUDA driver, at the bottom of this many native
// frames. bench/probe_peers.py compiles and loads it.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr unsigned kLive = 256;  // as a program that works has some

using Address = unsigned long long;
int (*take)(Address*, std::size_t) = nullptr;
int (*give)(Address) = nullptr;

int take_heap(Address* at, std::size_t size) {
  *at = reinterpret_cast<Address>(std::malloc(size));
  return 0;
}
int give_heap(Address at) {
  std::free(reinterpret_cast<void*>(at));
  return 0;
}

volatile std::uint64_t sink = 0;

void work(unsigned spins) {
  std::uint64_t value = sink + 1;
  for (unsigned i = 0; i < spins; ++i) value = value * 6364136223846793005ULL + 1442695040888963407ULL;
  sink = value;
}

__attribute__((noinline)) int descend(int left, unsigned pairs, unsigned spins) {
  volatile int kept[4] = {left, left, left, left};  // a frame, as functions have
  if (left > 0) return descend(left - 1, pairs, spins) + kept[0];
  Address live[kLive] = {};
  for (unsigned i = 0; i < pairs; ++i) {
    work(spins);
    Address& at = live[i % kLive];
    if (at != 0) give(at);
    if (take(&at, 512 * (1 + i % 7)) != 0) std::abort();
  }
  for (const Address at : live)
    if (at != 0) give(at);
  return kept[0];
}

}  // namespace

/// From now on the heap, or the driver, of which a context is made.
extern "C" int pattern_begin(int is_driver) {
  if (is_driver == 0) {
    take = take_heap;
    give = give_heap;
    return 0;
  }
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 1;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto use = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"));
  take = reinterpret_cast<int (*)(Address*, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  give = reinterpret_cast<int (*)(Address)>(dlsym(driver, "cuMemFree_v2"));
  void* context = nullptr;
  return init(0) | retain(&context, 0) | use(context);
}

/// Nanoseconds by the clock for each of `pairs` allocations with their frees, `depth` frames deep, with `spins` steps
/// of work before each.
extern "C" double pattern_run(int depth, unsigned pairs, unsigned spins) {
  const auto begin = std::chrono::steady_clock::now();
  descend(depth, pairs, spins);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / pairs;
}
