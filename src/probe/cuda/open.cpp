#include "probe/cuda/open.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "probe/cuda/cuda.hpp"
#include "probe/loaded.hpp"
#include "probe/real.hpp"

namespace vramtrack::probe::cuda {
namespace {

constexpr std::string_view kDriver = "libcuda.so";

/// dlopen is in libdl before glibc 2.34.
void* find_dlopen() {
  return find_function("libc.so.", "dlopen");
}

/// Whether it is "libcuda.so", or a path that ends in libcuda.so.1 or libcuda.so.580.65.06.
bool names_driver(const char* path) {
  const std::string_view name = file_name(path);
  if (!name.starts_with(kDriver)) return false;
  return name.size() == kDriver.size() || name[kDriver.size()] == '.';
}

}  // namespace
}  // namespace vramtrack::probe::cuda

extern "C" {
__attribute__((visibility("hidden"))) std::atomic<void*> vramtrack_real_dlopen{nullptr};

/// The name to open instead of `name`: this library's path for the driver's names if there is a driver, so that a
/// program without one sees no change. A driver that opens another one (as in WSL) gets what it requests.
__attribute__((visibility("hidden"))) const char* vramtrack_name_to_open(const char* name, const void* caller) {
  using namespace vramtrack::probe;
  const int saved_errno = errno;
  if (vramtrack_real_dlopen.load(std::memory_order_relaxed) == nullptr)
    vramtrack_real_dlopen.store(cuda::find_dlopen(), std::memory_order_relaxed);
  if (name != nullptr && cuda::names_driver(name) && !lies_in_library(caller, cuda::kDriver) && cuda::has_driver(name))
    name = own_path();
  errno = saved_errno;
  return name;
}
}

namespace vramtrack::probe::cuda {

void* open_library(const char* path) {
  if (void* found = find_dlopen(); found != nullptr)
    return reinterpret_cast<void* (*)(const char*, int)>(found)(path, RTLD_LAZY | RTLD_LOCAL);
  // Before glibc 2.34, a program that is not linked with libdl still has the loader.
  constexpr int kAsDlopen = static_cast<int>(0x80000000U);
  if (void* found = find_function("libc.so.", "__libc_dlopen_mode"); found != nullptr)
    return reinterpret_cast<void* (*)(const char*, int)>(found)(path, RTLD_LAZY | kAsDlopen);
  return nullptr;
}

}  // namespace vramtrack::probe::cuda

// The jump at the end keeps the caller's return address in place: the loader uses it for RPATH and the namespace. Only
// the arguments of dlopen(const char*, int) are in registers.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  .cfi_startproc
  endbr64
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  movq 8(%rsp), %rsi
  call vramtrack_name_to_open
  movq %rax, %rdi
  popq %rsi
  .cfi_adjust_cfa_offset -8
  movq vramtrack_real_dlopen(%rip), %r11
  testq %r11, %r11
  je 1f
  jmp *%r11
1:
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size dlopen, .-dlopen
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlopen
  .type dlopen, %function
dlopen:
  .cfi_startproc
  hint 34
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  str x1, [sp, #16]
  mov x29, sp
  mov x1, x30
  bl vramtrack_name_to_open
  ldr x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_def_cfa_offset 0
  .cfi_restore 29
  .cfi_restore 30
  adrp x16, vramtrack_real_dlopen
  ldr x16, [x16, #:lo12:vramtrack_real_dlopen]
  cbz x16, 1f
  br x16
1:
  mov x0, xzr
  ret
  .cfi_endproc
  .size dlopen, .-dlopen
)");
#else
#error "no dlopen for this processor"
#endif
