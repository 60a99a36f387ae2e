/* What the BPF programs hand to user space: plain data of fixed width, included by both. */
#ifndef VRAMTRACK_TELEMETRY_EVENTS_H
#define VRAMTRACK_TELEMETRY_EVENTS_H

#ifdef __bpf__
typedef __u8 telemetry_u8;
typedef __u16 telemetry_u16;
typedef __u32 telemetry_u32;
typedef __u64 telemetry_u64;
typedef __s64 telemetry_s64;
#else
#include <stdint.h>
typedef uint8_t telemetry_u8;
typedef uint16_t telemetry_u16;
typedef uint32_t telemetry_u32;
typedef uint64_t telemetry_u64;
typedef int64_t telemetry_s64;
#endif

enum {
  TELEMETRY_MOST_FRAMES = 64,       /* of Python, innermost first */
  TELEMETRY_STACK_BYTES = 16 << 10, /* of the native stack, from the stack pointer up */
  TELEMETRY_STACK_PIECE = 2 << 10,  /* read in pieces: the stack may end within the last one */
  TELEMETRY_REGISTERS = 17,         /* DWARF order of x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip */
  TELEMETRY_KEYS = 32,              /* of pthread_getspecific() that lie in the thread's descriptor */
  TELEMETRY_MOST_FUNCTIONS = 128
};

/* What a probed function does with memory. */
enum telemetry_act {
  TELEMETRY_ALLOCATE = 0, /* argument 2 is the size; the address is stored where argument 1 points */
  TELEMETRY_PITCH = 1,    /* the pitch is stored where argument 2 points; argument 4 is the number of rows */
  TELEMETRY_REGISTER = 2, /* argument 1 is the address, argument 2 the size */
  TELEMETRY_FREE = 3,     /* argument 1 is the address */
  TELEMETRY_REPORT = 4    /* c10::reportMemoryUsageToProfiler: address, signed size, -, -, device */
};

/* A function, as the attach cookie names it: its index. */
struct telemetry_function {
  telemetry_u8 act;
  telemetry_u8 call; /* probe::Call */
  telemetry_u16 reserved;
};

/* How to walk the Python frames of a process: PythonLayout, and where a thread keeps its state. */
struct telemetry_python {
  telemetry_u32 has_layout;
  telemetry_u32 key; /* pthread key of the thread's state; TELEMETRY_KEYS: not known yet */
  telemetry_u16 thread_frame, is_frame_held, held_frame, frame_previous, frame_code, frame_at, frame_mark;
  telemetry_u16 reserved;
};

enum telemetry_kind {
  TELEMETRY_EVENT_ALLOC = 1,
  TELEMETRY_EVENT_FREE = 2,
  TELEMETRY_EVENT_FAILED = 3,
  TELEMETRY_EVENT_FORK =
      4, /* tgid: the child; address: the parent's; bytes: when it began, ns since the machine started */
  TELEMETRY_EVENT_EXEC = 5,
  TELEMETRY_EVENT_EXIT = 6
};

struct telemetry_frame {
  telemetry_u64 code;
  telemetry_u64 at;
  telemetry_u64 mark; /* the byte at frame_mark: whose frame it is */
};

/* The head of every event; those that allocate go on with frames, registers and stack. */
struct telemetry_event {
  telemetry_u32 kind;
  telemetry_u32 tgid;
  telemetry_u32 tid;
  telemetry_u32 call;
  telemetry_u64 time_ns; /* CLOCK_MONOTONIC */
  telemetry_u64 address;
  telemetry_u64 bytes;
  telemetry_u32 result; /* of TELEMETRY_EVENT_FAILED: the API's error */
  telemetry_u16 device; /* of TELEMETRY_REPORT: type | index << 8 */
  telemetry_u16 frames; /* of Python */
};

struct telemetry_python_event {
  struct telemetry_event head;
  struct telemetry_frame frames[TELEMETRY_MOST_FRAMES];
};

struct telemetry_stack_event {
  struct telemetry_event head;
  struct telemetry_frame frames[TELEMETRY_MOST_FRAMES];
  telemetry_u64 registers[TELEMETRY_REGISTERS];
  telemetry_u64 stack_bytes;
  telemetry_u8 stack[TELEMETRY_STACK_BYTES];
};

#endif
