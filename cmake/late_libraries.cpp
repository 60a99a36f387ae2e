// The functions of some shared libraries, each of which loads its library when it is first called. A program that is
// linked with this file in front of these libraries does not need them to start: of a start, OpenSSL and cpp-httplib
// are half, for commands that mostly use neither.
//
// late_functions.def is made by late_libraries.cmake: LATE_FUNCTION(number, symbol, library) for each function that the
// program calls, and LATE_TYPE(symbol, name) for each type information that it refers to. x86-64 only.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace {

struct Function {
  const char* name;
  const char* library;
};

#define LATE_TYPE(symbol, name)
#define LATE_FUNCTION(number, symbol, library) {#symbol, library},
constexpr Function kFunctions[] = {
#include "late_functions.def"
};
#undef LATE_FUNCTION

}  // namespace

extern "C" {

// At first each leads to vramtrack_late_call, with the function's number on the stack.
#define LATE_FUNCTION(number, symbol, library) void vramtrack_late_first_##number();
#include "late_functions.def"
#undef LATE_FUNCTION
#define LATE_FUNCTION(number, symbol, library) vramtrack_late_first_##number,
void (*vramtrack_late_addresses[])() = {
#include "late_functions.def"
};
#undef LATE_FUNCTION

/// The address of a function, which later calls go to at once. May be called by several threads.
void* vramtrack_late_address(unsigned long number) {
  const Function& function = kFunctions[number];
  void* const library = ::dlopen(function.library, RTLD_NOW);
  void* const address = library == nullptr ? nullptr : ::dlsym(library, function.name);
  if (address == nullptr) {  // as the loader does at a start; the library stays loaded
    std::fprintf(stderr, "vramtrack: cannot load %s, which this command needs: %s; install the package that has it\n",
                 function.library, ::dlerror());
    std::_Exit(2);
  }
  __atomic_store_n(reinterpret_cast<void**>(&vramtrack_late_addresses[number]), address, __ATOMIC_RELEASE);
  return address;
}

/// All of them at once, for a command that lasts.
void vramtrack_load_late() {
  for (unsigned long number = 0; number < std::size(kFunctions); ++number) vramtrack_late_address(number);
}

}  // extern "C"

#define LATE_FUNCTION(number, symbol, library)                                                           \
  asm(".text\n.globl " #symbol "\n.hidden " #symbol "\n.type " #symbol ", @function\n" #symbol           \
      ":\n  endbr64\n  jmp *vramtrack_late_addresses+8*" #number "(%rip)\nvramtrack_late_first_" #number \
      ":\n  push $" #number "\n  jmp vramtrack_late_call\n.size " #symbol ", .-" #symbol "\n");
#include "late_functions.def"
#undef LATE_FUNCTION
#undef LATE_TYPE

// Types are compared by their names, so that a copy serves: that of a class without bases.
#define LATE_FUNCTION(number, symbol, library)
#define LATE_TYPE(symbol, name)                                                                    \
  asm(".section .data.rel.ro,\"aw\"\n.balign 8\n.globl " #symbol "\n.hidden " #symbol "\n" #symbol \
      ":\n  .quad _ZTVN10__cxxabiv117__class_type_infoE+16, 1f\n.section .rodata\n1: .string \"" name "\"\n.text\n");
#include "late_functions.def"

// What a call may pass in registers is kept while the library is loaded; then the call goes where it was meant to.
asm(R"(.text
vramtrack_late_call:
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  sub $136, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  mov 192(%rsp), %rdi
  call vramtrack_late_address
  mov %rax, %r11
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  add $136, %rsp
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  add $8, %rsp
  jmp *%r11
)");
