// libprobe_depth.so: times a call at the bottom of this many native frames. bench/probe_stacks.py loads it.
#define UNW_LOCAL_ONLY
#include <execinfo.h>
#include <libunwind.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace {

struct Work {
  int what;
  int depth;
  std::uint32_t samples;
  std::uint32_t* into_ns;
  std::uint32_t (*capture)(std::uint32_t, int);
  void (*call)(std::uint64_t, std::uint64_t);
  void (*give_back)(std::uint64_t);
  std::uint8_t* into_state;  ///< nullptr: calls follow each other at once
};

constexpr std::uint32_t kLive = 256;  // as a program that works has some

void* frames[512];

void pause() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(85);
  while (std::chrono::steady_clock::now() < until) {
  }
}

void once(const Work& work, std::uint32_t i) {
  switch (work.what) {
    case 1:
      work.capture(1, 1);
      break;
    case 2:
      work.capture(1, 0);
      break;
    case 3:
      // Paused: each address is released before it is used again.
      if (work.into_state != nullptr) i %= kLive;
      work.call(0x1000 + std::uint64_t{i} * 512, 512);
      break;
    case 4:
      work.give_back(0x1000 + std::uint64_t{i} * 512);
      break;
    case 5:
      unw_backtrace(frames, 512);
      break;
    case 6:
      backtrace(frames, 512);
      break;
    default:
      break;
  }
}

__attribute__((noinline)) int descend(const Work& work, int left) {
  volatile int kept[4] = {left, left, left, left};  // a frame, as functions have
  if (left > 0) return descend(work, left - 1) + kept[0];
  if (work.what == 0) return backtrace(frames, 512);
  for (std::uint32_t i = 0; i < 200 && work.what != 4; ++i) {
    if (work.what == 3) pause();
    once(work, i);
  }
  rusage last{}, before{}, after{};
  getrusage(RUSAGE_THREAD, &last);
  for (std::uint32_t i = 0; i < work.samples; ++i) {
    // Not faster than what is recorded without sampling.
    if (work.what == 3 || work.into_state != nullptr) pause();
    if (work.into_state != nullptr) {
      if (work.what == 3) work.give_back(0x1000 + std::uint64_t{i % kLive} * 512);
      getrusage(RUSAGE_THREAD, &before);
    }
    const auto begin = std::chrono::steady_clock::now();
    once(work, i);
    const auto end = std::chrono::steady_clock::now();
    work.into_ns[i] = static_cast<std::uint32_t>(
        std::min<std::int64_t>(UINT32_MAX, std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count()));
    if (work.into_state == nullptr) continue;
    getrusage(RUSAGE_THREAD, &after);
    work.into_state[i] = after.ru_nivcsw != before.ru_nivcsw   ? 3
                         : after.ru_minflt != before.ru_minflt ? 2
                         : before.ru_nivcsw != last.ru_nivcsw  ? 1
                                                               : 0;
    last = after;
  }
  return kept[1];
}

void* in_thread(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  // As many frames as asked for in all, those of the thread's start included.
  Work counting = work;
  counting.what = 0;
  const int base = descend(counting, 0);
  descend(work, std::max(0, work.depth - base));
  return nullptr;
}

}  // namespace

extern "C" {
/// what: 1 capture_stack(), 2 the same without native frames, 3 a hooked allocation, 4 its free, 5 unw_backtrace(),
/// 6 backtrace(), 7 nothing: the clock. `is_thread`: on its own thread, which runs no Python.
/// `into_state` (or nullptr): the calls come 85 us apart, and of each is told what disturbed it: 0 nothing, 1 the
/// thread was switched out since the last call, 2 a page fault within the call, 3 it was switched out within the call.
void probe_measure(int what, int depth, std::uint32_t samples, std::uint32_t* into_ns, int is_thread, void* capture,
                   void* call, void* give_back, std::uint8_t* into_state) {
  Work work{what,
            depth,
            samples,
            into_ns,
            reinterpret_cast<std::uint32_t (*)(std::uint32_t, int)>(capture),
            reinterpret_cast<void (*)(std::uint64_t, std::uint64_t)>(call),
            reinterpret_cast<void (*)(std::uint64_t)>(give_back),
            into_state};
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
  if (is_thread == 0) {
    in_thread(&work);
    return;
  }
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, in_thread, &work) == 0) pthread_join(thread, nullptr);
}
}
