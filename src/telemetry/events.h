/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Data that the BPF programs pass to user space: plain data of fixed width, included by both. */
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
  TELEMETRY_KEYS = 32,              /* of pthread_getspecific(), stored in the thread's descriptor */
  TELEMETRY_MOST_FUNCTIONS = 256,
  TELEMETRY_SHAPE_WORDS = 10,
  TELEMETRY_NAME_BYTES = 32,  /* of the name of a function that is looked up */
  TELEMETRY_MOST_CONTEXTS = 8 /* per thread, one pushed on top of the other */
};

/* The action of a probed function. */
enum telemetry_act {
  TELEMETRY_ALLOCATE = 0, /* stores the address where `address` points, and returns 0 */
  TELEMETRY_RETURN = 1,   /* returns the address */
  TELEMETRY_REGISTER = 2, /* `address` is the address; returns 0 */
  TELEMETRY_FREE = 3,     /* frees `address`; returns 0 if it did */
  TELEMETRY_FREE_ALL = 4, /* frees the `size` addresses of the array `address` */
  TELEMETRY_RETAIN = 5,   /* `address` gains an owner */
  TELEMETRY_RELEASE = 6,  /* `address` loses an owner: the last one frees it */
  TELEMETRY_REPORT = 7,   /* c10::reportMemoryUsageToProfiler: address, signed size, -, -, device */
  /* These show on which device, or in which kind of memory, an allocation is. */
  TELEMETRY_NEW_CONTEXT = 8,   /* stores a context of `device` where `address` points, which is an allocation, too. With
                                  `mask`, it becomes the thread's; without, it is the primary one and gains an owner */
  TELEMETRY_SET_CONTEXT = 9,   /* `address` is the thread's context */
  TELEMETRY_PUSH_CONTEXT = 10, /* likewise, until it is popped */
  TELEMETRY_POP_CONTEXT = 11,
  TELEMETRY_SET_DEVICE = 12,  /* `device` is the thread's */
  TELEMETRY_HEAPS = 13,       /* Vulkan: `address` is the physical device; stores its memory types at `size` */
  TELEMETRY_NEW_DEVICE = 14,  /* Vulkan: a device of the physical device `size`, stored where `address` points */
  TELEMETRY_NEW_PART = 15,    /* returns a part of `address`, which gains an owner until the part is released */
  TELEMETRY_LOADED = 17,      /* the loader has mapped or unmapped libraries: reported for every process not left out */
  TELEMETRY_LOOK_UP = 16,     /* returns the function whose name `address` points to */
  TELEMETRY_END_CONTEXT = 18, /* the context `address` ends, with its memory */
  TELEMETRY_END_DEVICE = 19,  /* all memory of `device` (nowhere: the thread's device) ends */
  TELEMETRY_RELEASE_PRIMARY = 20, /* the primary context of `device` loses an owner and ends with the last one */
  TELEMETRY_FREE_SURELY = 21,     /* frees `address`; returns nothing */
  TELEMETRY_MAP = 22,             /* maps the physical memory of the handle `of` at `address`, `size` bytes */
  TELEMETRY_UNMAP = 23,           /* unmaps the mappings within the `size` bytes from `address` on */
  TELEMETRY_RETAIN_MAPPED = 24    /* stores a handle of the memory mapped at `address` where `of` points */
};

/* What `shape` points to, if the function takes no size. */
enum telemetry_shape {
  TELEMETRY_NO_SHAPE = 0,
  TELEMETRY_ARRAY = 1,    /* CUDA_ARRAY_DESCRIPTOR */
  TELEMETRY_ARRAY_3D = 2, /* CUDA_ARRAY3D_DESCRIPTOR; `size`: levels, 0: one */
  TELEMETRY_IMAGE = 3     /* cl_image_desc, and `format` to cl_image_format */
};

/* Where a value is found when a function is called: the argument's number (0: nowhere, 7: the first on the stack), plus
   TELEMETRY_AT for the 64 bits it points to, or TELEMETRY_AT_32 for 32 bits, plus the byte offset << 8. */
typedef telemetry_u16 telemetry_place;
enum { TELEMETRY_AT = 0x10, TELEMETRY_AT_32 = 0x20 };

/* A function. Its index is its attach cookie. */
struct telemetry_function {
  telemetry_u8 act;
  telemetry_u8 call;          /* probe::Call */
  telemetry_u8 other_call;    /* for another kind of memory, see `flags` and `kind`; 0: none */
  telemetry_u8 kind_of_shape; /* telemetry_shape */
  telemetry_place address;
  telemetry_place size;
  telemetry_place rows; /* number of rows, if `size` points to where the bytes per row are stored */
  telemetry_place shape, format;
  telemetry_place device;
  telemetry_place of;    /* a handle of physical memory, or where one is stored */
  telemetry_place flags; /* another kind of memory if these have a bit in common with `mask` */
  telemetry_place kind;  /* another kind of memory if this bit is not in TELEMETRY_HEAPS of argument 1 */
  telemetry_u32 mask;
};

/* How to walk the Python frames of a process: PythonLayout, and where a thread stores its state. */
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
  TELEMETRY_EVENT_EXIT = 6,
  TELEMETRY_EVENT_FOUND = 7, /* address: of function `bytes` of the table, which the program looked up */
  TELEMETRY_EVENT_LOADED = 8,
  TELEMETRY_EVENT_STARTED = 9,  /* by exec, a program that is not a target */
  TELEMETRY_EVENT_CONTEXT = 10, /* result: TELEMETRY_NEW_CONTEXT (a primary one), _END_CONTEXT, _END_DEVICE or
                                   _RELEASE_PRIMARY; address: the context */
  TELEMETRY_EVENT_MAPPED = 11 /* result: TELEMETRY_MAP, _UNMAP or _RETAIN_MAPPED; address, bytes; context: the handle */
};

struct telemetry_frame {
  telemetry_u64 code;
  telemetry_u64 at;
  telemetry_u64 mark; /* the byte at frame_mark: the frame's owner */
};

/* The head of every event; allocation events continue with frames, registers and stack. */
struct telemetry_event {
  telemetry_u32 kind;
  telemetry_u32 tgid;
  telemetry_u32 tid;
  telemetry_u32 call;
  telemetry_u64 time_ns; /* CLOCK_MONOTONIC */
  telemetry_u64 address;
  telemetry_u64 bytes;
  telemetry_u32 result;  /* of TELEMETRY_EVENT_FAILED: the API's error; of TELEMETRY_EVENT_ALLOC: telemetry_shape */
  telemetry_u16 device;  /* type (c10::DeviceType; 0: unknown) | index << 8 */
  telemetry_u16 frames;  /* of Python */
  telemetry_u64 context; /* of TELEMETRY_EVENT_ALLOC: the context it is in, the thread's; 0: unknown */
  /* For TELEMETRY_EVENT_ALLOC: smaller blocks were reported with probability bytes / threshold; 0: all were. */
  telemetry_u64 threshold;
  /* For TELEMETRY_EVENT_FREE and _MAPPED, which are reported when the call returns: when it began. Another thread may
     have been given the address in the meantime. 0: it was reported as it began. */
  telemetry_u64 began_ns;
};

struct telemetry_python_event {
  struct telemetry_event head;
  struct telemetry_frame frames[TELEMETRY_MOST_FRAMES];
};

struct telemetry_stack_event {
  struct telemetry_event head;
  struct telemetry_frame frames[TELEMETRY_MOST_FRAMES];
  telemetry_u64 registers[TELEMETRY_REGISTERS];
  telemetry_u64 shape[TELEMETRY_SHAPE_WORDS]; /* of arrays and images: the last is `format`'s */
  telemetry_u64 stack_bytes;
  telemetry_u8 stack[TELEMETRY_STACK_BYTES];
};

#endif
