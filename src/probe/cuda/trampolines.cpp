// Defines every name that the driver exports as a jump to the driver's own function that leaves all arguments in place.
// They are weak, so hooks with some of these names take precedence in linking. The first call looks the function up.
// Spare ones have a name only in a copy of this library; vramtrack_spare_offsets contains the offset of each.
#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .type vramtrack_first_call, @function
vramtrack_first_call:
  .cfi_startproc
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %rax
  .cfi_adjust_cfa_offset 64
  subq $136, %rsp
  .cfi_adjust_cfa_offset 136
  movaps %xmm0, (%rsp)
  movaps %xmm1, 16(%rsp)
  movaps %xmm2, 32(%rsp)
  movaps %xmm3, 48(%rsp)
  movaps %xmm4, 64(%rsp)
  movaps %xmm5, 80(%rsp)
  movaps %xmm6, 96(%rsp)
  movaps %xmm7, 112(%rsp)
  movl %r11d, %edi
  call vramtrack_cuda_resolve
  movq %rax, %r11
  movaps (%rsp), %xmm0
  movaps 16(%rsp), %xmm1
  movaps 32(%rsp), %xmm2
  movaps 48(%rsp), %xmm3
  movaps 64(%rsp), %xmm4
  movaps 80(%rsp), %xmm5
  movaps 96(%rsp), %xmm6
  movaps 112(%rsp), %xmm7
  addq $136, %rsp
  .cfi_adjust_cfa_offset -136
  popq %rax
  popq %r10
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  .cfi_adjust_cfa_offset -64
  jmp *%r11
  .cfi_endproc
  .size vramtrack_first_call, .-vramtrack_first_call

  .macro trampoline name, number
  .p2align 4
  .weak \name
  .type \name, @function
\name:
  .cfi_startproc
  endbr64
  movq vramtrack_cuda_functions+8*\number(%rip), %r11
  testq %r11, %r11
  je 1f
  jmp *%r11
1:
  movl $\number, %r11d
  jmp vramtrack_first_call
  .cfi_endproc
  .size \name, .-\name
  .endm
)"
#elif defined(__aarch64__)
asm(R"(
  .text
  .p2align 4
  .type vramtrack_first_call, %function
vramtrack_first_call:
  .cfi_startproc
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset 29, -224
  .cfi_offset 30, -216
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov w0, w16
  bl vramtrack_cuda_resolve
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x8, [sp, #80]
  ldp q0, q1, [sp, #96]
  ldp q2, q3, [sp, #128]
  ldp q4, q5, [sp, #160]
  ldp q6, q7, [sp, #192]
  ldp x29, x30, [sp], #224
  .cfi_def_cfa_offset 0
  .cfi_restore 29
  .cfi_restore 30
  br x16
  .cfi_endproc
  .size vramtrack_first_call, .-vramtrack_first_call

  .macro trampoline name, number
  .p2align 4
  .weak \name
  .type \name, %function
\name:
  .cfi_startproc
  hint 34
  adrp x16, vramtrack_cuda_functions+8*\number
  ldr x16, [x16, #:lo12:vramtrack_cuda_functions+8*\number]
  cbz x16, 1f
  br x16
1:
  mov w16, #\number
  b vramtrack_first_call
  .cfi_endproc
  .size \name, .-\name
  .endm
)"
#else
#error "no trampolines for this processor"
#endif
    R"(
  .macro spare name, number
  .p2align 4
.Lvramtrack_spare_\number:
  trampoline \name, \number
  .pushsection .rodata.vramtrack_spares, "a"
  .long .Lvramtrack_spare_\number - .
  .popsection
  .endm
  .pushsection .rodata.vramtrack_spares, "a"
  .p2align 2
  .globl vramtrack_spare_offsets
  .hidden vramtrack_spare_offsets
vramtrack_spare_offsets:
  .popsection
)"
#define VRAMTRACK_CUDA_SYMBOL(name, number) "  trampoline " #name ", " #number "\n"
#define VRAMTRACK_CUDA_SPARE(name, number) "  spare " #name ", " #number "\n"
#include "cuda_symbols.inc"
#undef VRAMTRACK_CUDA_SPARE
#undef VRAMTRACK_CUDA_SYMBOL
);
