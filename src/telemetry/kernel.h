/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What user space and the BPF programs of kernel.bpf.c share. */
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

/* A tracepoint of a driver: where its record has what. Widths in bytes; 0: the record has no such field. */
struct kernel_event {
  kernel_u32 is_end; /* of the object `handle`; else it is made */
  kernel_u32 unit;   /* bytes */
  kernel_u16 handle_at, handle_width;
  kernel_u16 bytes_at, bytes_width;
  kernel_u16 kind_at, kind_width;
  kernel_u32 kinds; /* of memory: those that have a bit in common with it are counted */
};

/* What a process was given since the counting began. */
struct kernel_given {
  kernel_s64 held_bytes; /* of objects whose end is told, too */
  kernel_u64 made_bytes;
  kernel_u64 objects;
};

#endif
