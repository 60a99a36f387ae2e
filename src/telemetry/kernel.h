/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Types shared by user space and the BPF programs of kernel.bpf.c. */
#ifndef VRAMTRACK_TELEMETRY_KERNEL_H
#define VRAMTRACK_TELEMETRY_KERNEL_H

#ifdef __bpf__
typedef __u16 kernel_u16;
typedef __u32 kernel_u32;
typedef __u64 kernel_u64;
typedef __s64 kernel_s64;
#else
#include <stdint.h>
typedef uint16_t kernel_u16;
typedef uint32_t kernel_u32;
typedef uint64_t kernel_u64;
typedef int64_t kernel_s64;
#endif

enum { KERNEL_MOST_EVENTS = 16 };

/* Where the record of a driver's tracepoint has its fields. Widths in bytes; 0: the record has no such field. */
struct kernel_event {
  kernel_u32 is_end; /* the object `handle` ends; otherwise it is created */
  kernel_u32 unit;   /* bytes */
  kernel_u16 handle_at, handle_width;
  kernel_u16 bytes_at, bytes_width;
  kernel_u16 kind_at, kind_width;
  kernel_u32 kinds; /* memory kinds: memory is counted if it shares a bit with this mask */
};

/* The memory a process has been given since the counting began. */
struct kernel_given {
  kernel_s64 held_bytes; /* only objects whose end is reported, too */
  kernel_u64 made_bytes;
  kernel_u64 objects;
};

#endif
