// libprobe_unwound.so: frames of many kinds, compiled as libraries are (-O2, no frame pointers), with a callback at the
// bottom. probe_test compares what the probe's unwinder makes of them with what others do.
#include <alloca.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>

#ifndef VARIANT
#define VARIANT 1
#endif

using Callback = void (*)(void*);

extern "C" {
#define EXPORTED __attribute__((visibility("default"), noinline))

EXPORTED int unwound_deep(int left, Callback callback, void* with) {
  volatile int kept[4 * VARIANT] = {left};
  if (left == 0)
    callback(with);
  else
    unwound_deep(left - 1, callback, with);  // through the PLT, as for every exported function
  return kept[0];
}

EXPORTED int unwound_alloca(int left, Callback callback, void* with) {
  auto* bytes = static_cast<volatile char*>(alloca(static_cast<std::size_t>(left * 40 + 8)));
  bytes[0] = static_cast<char>(left);
  if (left == 0)
    callback(with);
  else
    unwound_alloca(left - 1, callback, with);
  return bytes[0];
}

/// Its locals need more than the ABI's alignment: the frame is realigned, and the CFA found by an expression.
EXPORTED int unwound_aligned(int left, Callback callback, void* with) {
  alignas(64) volatile int kept[16] = {left};
  auto* bytes = static_cast<volatile char*>(alloca(static_cast<std::size_t>(left * 16 + 8)));
  bytes[0] = 1;
  if (left == 0)
    callback(with);
  else
    unwound_aligned(left - 1, callback, with);
  return kept[0] + bytes[0];
}

struct Sorted {
  Callback callback;
  void* with;
};
static Sorted sorted;
static int compare(const void* a, const void* b) {
  sorted.callback(sorted.with);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
/// Through the C library.
EXPORTED int unwound_qsort(int, Callback callback, void* with) {
  sorted = {callback, with};
  int numbers[] = {2, 1};
  std::qsort(numbers, 2, sizeof numbers[0], compare);
  return numbers[0];
}

EXPORTED int unwound_function(int left, Callback callback, void* with) {
  const std::function<int(int)> next = [&](int n) { return n == 0 ? (callback(with), 0) : next(n - 1) + 1; };
  return next(left) + 1;
}

[[noreturn]] static __attribute__((noinline)) void leave(Callback callback, void* with) {
  callback(with);
  throw std::runtime_error("left");
}
/// Its last instruction is a call: the return address lies behind it, in the next function.
[[noreturn]] EXPORTED void unwound_noreturn(Callback callback, void* with) {
  leave(callback, with);
}

struct Cleanup {
  Callback callback;
  void* with;
  ~Cleanup() { callback(with); }
};
static __attribute__((noinline)) void throws(int left, Callback callback, void* with) {
  const Cleanup cleanup{callback, with};
  if (left == 0) throw std::runtime_error("thrown");
  throws(left - 1, callback, with);
}
/// Called back while an exception passes, and where it is caught.
EXPORTED int unwound_throw(int left, Callback callback, void* with) {
  try {
    throws(left, callback, with);
  } catch (const std::runtime_error& error) {
    callback(with);
    return std::strcmp(error.what(), "thrown") == 0 ? 7 : 0;
  }
  return 0;
}

EXPORTED int unwound_noreturn_caught(int, Callback callback, void* with) {
  try {
    unwound_noreturn(callback, with);
  } catch (const std::runtime_error&) {
    return 7;
  }
}

/// The handler runs at the first instruction of a function that has no frame yet.
void unwound_trap();
#if defined(__x86_64__)
asm(R"(
  .text
  .type unwound_trap, @function
unwound_trap:
  .cfi_startproc
  int3
  ret
  .cfi_endproc
  .size unwound_trap, .-unwound_trap
)");
#endif
EXPORTED int unwound_leaf(int left, Callback, void*) {
  volatile int kept = left;
  if (left == 0)
    unwound_trap();
  else
    unwound_leaf(left - 1, nullptr, nullptr);
  return kept;
}

EXPORTED int unwound_raise(int left, Callback, void*) {
  volatile int kept = left;
  if (left == 0)
    std::raise(SIGUSR1);
  else
    unwound_raise(left - 1, nullptr, nullptr);
  return kept;
}

/// Each instruction between is a trap: calls, prologues, epilogues, entries of the PLT. No realigned frame is among
/// them: compilers do not describe its epilogue, and libgcc's unwinder faults there.
EXPORTED int unwound_stepped(int left, Callback callback, void* with) {
#if defined(__x86_64__)
  asm volatile("pushfq; .cfi_adjust_cfa_offset 8; orq $0x100, (%%rsp); popfq; .cfi_adjust_cfa_offset -8" ::
                   : "memory", "cc");
#endif
  int sum = unwound_deep(left, callback, with) + unwound_alloca(left, callback, with) + std::abs(std::atoi("-12"));
#if defined(__x86_64__)
  asm volatile("pushfq; .cfi_adjust_cfa_offset 8; andq $~0x100, (%%rsp); popfq; .cfi_adjust_cfa_offset -8" ::
                   : "memory", "cc");
#endif
  return sum;
}
}
