// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
// Counts the memory that the kernel's GPU drivers give to programs, below every library: by tracepoints, and by the
// ioctls of NVIDIA's driver. Only totals per process are kept; single events are not passed on.
// The types must come first.
// clang-format off
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.h"
// clang-format on

struct inode {
  __u32 i_rdev;
} __attribute__((preserve_access_index));
struct file {
  struct inode* f_inode;
} __attribute__((preserve_access_index));
struct fdtable {
  unsigned int max_fds;
  struct file** fd;
} __attribute__((preserve_access_index));
struct files_struct {
  struct fdtable* fdt;
} __attribute__((preserve_access_index));
struct task_struct {
  struct files_struct* files;
} __attribute__((preserve_access_index));

// For a driver with tracepoints: the object's address, without a process. For NVIDIA's: a handle of a process's client.
struct object_key {
  __u32 tgid;
  __u32 client;
  __u64 handle;
};
struct object {
  __u32 tgid;
  __u32 reserved;
  __u64 bytes;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1 << 18);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct object_key);
  __type(value, struct object);
} objects SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct kernel_given);
} given SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, KERNEL_MOST_EVENTS);
  __type(key, __u32);
  __type(value, struct kernel_event);
} events SEC(".maps");
// The driver's device files.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 256);
  __type(key, __u32);
  __type(value, __u8);
} devices SEC(".maps");

// `is_held`: the object's end will be reported, too.
static __always_inline void made(const struct object_key* key, __u32 tgid, __u64 bytes, int is_held) {
  struct kernel_given none = {};
  bpf_map_update_elem(&given, &tgid, &none, BPF_NOEXIST);
  struct kernel_given* all = bpf_map_lookup_elem(&given, &tgid);
  if (!all) return;
  __sync_fetch_and_add(&all->made_bytes, bytes);
  __sync_fetch_and_add(&all->objects, 1);
  if (!is_held) return;
  struct object object = {.tgid = tgid, .bytes = bytes};
  if (!bpf_map_update_elem(&objects, key, &object, BPF_NOEXIST)) __sync_fetch_and_add(&all->held_bytes, bytes);
}

static __always_inline void ended(const struct object_key* key) {
  struct object* object = bpf_map_lookup_elem(&objects, key);
  if (!object) return;  // it existed before the counting began
  const __u32 tgid = object->tgid;
  const __u64 bytes = object->bytes;
  if (bpf_map_delete_elem(&objects, key)) return;
  struct kernel_given* all = bpf_map_lookup_elem(&given, &tgid);
  if (all) __sync_fetch_and_add(&all->held_bytes, -bytes);
}

static __always_inline __u64 field(const void* record, __u16 at, __u16 width) {
  __u64 value = 0;
  if (width == 8) bpf_probe_read_kernel(&value, 8, record + at);
  if (width == 4) bpf_probe_read_kernel(&value, 4, record + at);
  return value;
}

SEC("tracepoint") int object_event(void* record) {
  __u32 index = bpf_get_attach_cookie(record);
  const struct kernel_event* event = bpf_map_lookup_elem(&events, &index);
  if (!event) return 0;
  if (event->kind_width && !(field(record, event->kind_at, event->kind_width) & event->kinds)) return 0;
  struct object_key key = {.handle = field(record, event->handle_at, event->handle_width)};
  if (event->is_end)
    ended(&key);
  else
    made(&key, bpf_get_current_pid_tgid() >> 32, field(record, event->bytes_at, event->bytes_width) * event->unit,
         event->handle_width != 0);
  return 0;
}

// Numbers and layouts from nvos.h and nv_escape.h of NVIDIA's open kernel module.
#define IOCTL 16 /* the system call */
#define RM_FREE 0x29
#define RM_ALLOC 0x2b
#define RM_VID_HEAP_CONTROL 0x4a
#define HEAP_ALLOC_SIZE 2
#define HEAP_FREE 3
#define CLASS_MEMORY_LOCAL_USER 0x40
#define FLAG_VIRTUAL 0x00080000                       /* addresses without memory */
#define LOCATION(attributes) ((attributes) >> 25 & 3) /* 0: the device's memory */

static __always_inline __u32 word(__u64 at) {
  __u32 value = 0;
  bpf_probe_read_user(&value, sizeof value, (void*)at);
  return value;
}

static __always_inline __u64 long_word(__u64 at) {
  __u64 value = 0;
  bpf_probe_read_user(&value, sizeof value, (void*)at);
  return value;
}

static __always_inline int is_device(__u32 number) {
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  if (number >= BPF_CORE_READ(table, max_fds)) return 0;
  struct file** files = BPF_CORE_READ(table, fd);
  struct file* file = 0;
  bpf_probe_read_kernel(&file, sizeof file, files + number);
  __u32 device = BPF_CORE_READ(file, f_inode, i_rdev);
  return bpf_map_lookup_elem(&devices, &device) != 0;
}

static long drop_of_client(void* map, const struct object_key* key, struct object* object, struct object_key* wanted) {
  (void)map, (void)object;
  if (key->tgid != wanted->tgid || key->client != wanted->client) return 0;
  struct object_key copy = *key;
  ended(&copy);
  return 0;
}

// After a successful call, the parameters are those that the driver filled in. All of them are available only at the
// return: the arguments are still in the registers then.
SEC("raw_tp/sys_exit") int ioctl_returned(struct bpf_raw_tracepoint_args* c) {
  if (c->args[1]) return 0;
  const struct pt_regs* registers = (const struct pt_regs*)c->args[0];
  __u64 call = 0, number = 0, command = 0, at = 0;
  bpf_probe_read_kernel(&call, sizeof call, &registers->orig_rax);
  if (call != IOCTL) return 0;
  bpf_probe_read_kernel(&command, sizeof command, &registers->rsi);
  if ((command >> 8 & 0xff) != 'F') return 0;
  bpf_probe_read_kernel(&number, sizeof number, &registers->rdi);
  if (!is_device(number)) return 0;
  bpf_probe_read_kernel(&at, sizeof at, &registers->rdx);
  const __u32 bytes = command >> 16 & 0x3fff;
  struct object_key key = {.tgid = bpf_get_current_pid_tgid() >> 32, .client = word(at)};
  switch (command & 0xff) {
    case RM_VID_HEAP_CONTROL:
      if (word(at + 20)) return 0;  // the driver's status
      key.handle = word(at + 44);
      if (word(at + 8) == HEAP_FREE)
        ended(&key);
      else if (word(at + 8) == HEAP_ALLOC_SIZE && !(word(at + 52) & FLAG_VIRTUAL) && !LOCATION(word(at + 56)))
        made(&key, key.tgid, long_word(at + 88), 1);
      return 0;
    case RM_ALLOC: {
      // The status is the second-to-last word, with or without the size of the data at `parameters`.
      if ((bytes != 40 && bytes != 48) || word(at + bytes - 8)) return 0;
      const __u64 parameters = long_word(at + 16);
      if (word(at + 12) != CLASS_MEMORY_LOCAL_USER || !parameters) return 0;
      key.handle = word(at + 8);
      if (!(word(parameters + 8) & FLAG_VIRTUAL) && !LOCATION(word(parameters + 24)))
        made(&key, key.tgid, long_word(parameters + 64), 1);
      return 0;
    }
    case RM_FREE:
      if (word(at + 12)) return 0;
      key.handle = word(at + 8);
      if (key.handle == key.client)
        bpf_for_each_map_elem(&objects, drop_of_client, &key, 0);  // with all its descendants
      else
        ended(&key);
      return 0;
    default:
      return 0;
  }
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
