// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
// The probes on allocating and freeing functions of GPU drivers and frameworks, in the
// kernel: x86-64, glibc. They read the program's memory and never write to it. Each event
// carries what user space cannot read later: the registers, the top of the stack and the
// chain of Python frames at the time of the call. Events that do not fit into the ring are
// counted (`lost`).
// The types must come first.
// clang-format off
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events.h"
// clang-format on

struct thread_struct {
  unsigned long fsbase;
} __attribute__((preserve_access_index));
typedef struct {
  int counter;
} atomic_t;
struct signal_struct {
  atomic_t live;  // threads that are still running
} __attribute__((preserve_access_index));
struct task_struct {
  struct signal_struct* signal;
  int pid;
  int tgid;
  __u64 start_boottime;
  struct thread_struct thread;
} __attribute__((preserve_access_index));

// struct pthread of glibc on x86-64: specific_1stblock, pairs of a sequence number and the data.
#define FIRST_KEYS 0x310

struct start {
  __u64 function;
  __u64 address, size, rows, shape, format, stack_pointer, context, of, began_ns;
  __u16 device;
  __u8 call;
};
// What is known about a program's handle: its owners besides the first, a context's device, a device's kinds of memory.
struct handle {
  __u32 tgid;
  __u32 act;
  __u64 value;
};
// The contexts that a thread has pushed, and their devices. 0: an unknown context.
struct contexts {
  __u32 depth;
  __u64 contexts[TELEMETRY_MOST_CONTEXTS];
  __u16 devices[TELEMETRY_MOST_CONTEXTS];
};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 32 << 20);
} events SEC(".maps");
// Programs that are not targets. They start often and are inspected later, so they do not wake the reader.
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 << 10);
} news SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TELEMETRY_MOST_FUNCTIONS);
  __type(key, __u32);
  __type(value, struct telemetry_function);
} functions SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct telemetry_python);
} targets SEC(".maps");
// Processes to ignore.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u32);
  __type(value, __u8);
} left_out SEC(".maps");
// Calls that have not returned yet, by thread. If a call is made within another, only the outer one is recorded.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, struct start);
} starts SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct handle);
  __type(value, __u64);
} handles SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u64);
  __type(value, struct contexts);
} threads SEC(".maps");
// The functions that programs look up by name.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, TELEMETRY_MOST_FUNCTIONS);
  __type(key, char[TELEMETRY_NAME_BYTES]);
  __type(value, __u32);
} names SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} lost SEC(".maps");
// How many of an allocator's blocks may be reported per process and second; 0: all.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} budget SEC(".maps");
// The bytes that a process has allocated since a point in time, and the threshold from the interval before it.
struct pace {
  __u64 begin_ns, calls, bytes;
  __u64 threshold;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct pace);
} paces SEC(".maps");

// Stacks for which the reader has been woken, by a hash of the process and the stack.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u64);
  __type(value, __u8);
} told SEC(".maps");
// When the reader was last woken for events other than new stacks (CLOCK_MONOTONIC, ns).
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} woken SEC(".maps");

static __always_inline void count_lost(__u64 events) {
  __u32 key = 0;
  __u64* count = bpf_map_lookup_elem(&lost, &key);
  if (count) *count += events;
}

static __always_inline __u64 load(__u64 at) {
  __u64 value = 0;
  bpf_probe_read_user(&value, sizeof value, (void*)at);
  return value;
}

static __always_inline __u8 load_byte(__u64 at) {
  __u8 value = 0;
  bpf_probe_read_user(&value, sizeof value, (void*)at);
  return value;
}

static __always_inline __u32 load_32(__u64 at) {
  __u32 value = 0;
  bpf_probe_read_user(&value, sizeof value, (void*)at);
  return value;
}

static __always_inline __u64 argument(struct pt_regs* c, __u32 number) {
  switch (number) {
    case 1:
      return c->rdi;
    case 2:
      return c->rsi;
    case 3:
      return c->rdx;
    case 4:
      return c->rcx;
    case 5:
      return c->r8;
    case 6:
      return c->r9;
    case 7:
      return load(c->rsp + 8);
    default:
      return 0;
  }
}

// A separate function, so that the verifier checks it only once.
static __noinline __u64 value_at(struct pt_regs* c, telemetry_place place) {
  const __u64 value = argument(c, place & 0xf);
  if (place & TELEMETRY_AT) return load(value + (place >> 8));
  if (place & TELEMETRY_AT_32) return load_32(value + (place >> 8));
  return value;
}

static __always_inline void describe(struct telemetry_event* e, __u32 kind, __u64 id) {
  e->kind = kind;
  e->tgid = id >> 32;
  e->tid = id;
  e->call = 0;
  e->time_ns = bpf_ktime_get_ns();
  e->address = 0;
  e->bytes = 0;
  e->result = 0;
  e->device = 0;
  e->frames = 0;
  e->context = 0;
  e->threshold = 0;
  e->began_ns = 0;
}

// Waking the reader costs more than everything else here, so it is woken at once only if later could be too late: for a
// new stack, because its names are in the memory of a program that may end. Other events wait briefly for more; not for
// long, because new stacks queue behind them.
#define WAIT_NS 20000000
#define MUCH_BYTES (4 << 20)
static __always_inline __u64 soon(void) {
  __u32 only = 0;
  __u64* last_ns = bpf_map_lookup_elem(&woken, &only);
  const __u64 now_ns = bpf_ktime_get_ns();
  if (!last_ns || (now_ns - *last_ns < WAIT_NS && bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < MUCH_BYTES))
    return BPF_RB_NO_WAKEUP;
  *last_ns = now_ns;
  return BPF_RB_FORCE_WAKEUP;
}

static __always_inline __u64 mix(__u64 hash, __u64 value) {
  return (hash ^ value) * 0x100000001b3ULL ^ hash >> 29;
}

// The depth distinguishes paths that lead to the same call. `python`: a hash of the Python frames.
static __always_inline __u64 at_once_if_new(struct pt_regs* c, __u64 id, __u64 python) {
  const __u64 hash = mix(mix(mix(python, c->rip), c->rsp), id >> 32);
  if (bpf_map_lookup_elem(&told, &hash)) return soon();
  const __u8 yes = 1;
  bpf_map_update_elem(&told, &hash, &yes, BPF_ANY);
  return BPF_RB_FORCE_WAKEUP;
}

static __always_inline __u64 thread_pointer(void) {
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  return BPF_CORE_READ(task, thread.fsbase);
}

static __always_inline __u64 innermost_of(const struct telemetry_python* python, __u64 state) {
  __u64 frame = load(state + python->thread_frame);
  return python->is_frame_held ? load(frame + python->held_frame) : frame;
}

// PyObject.ob_type and PyTypeObject.tp_name, the same in all versions of CPython.
static __always_inline int is_code(__u64 object) {
  return (load(load(load(object + 8) + 24)) & 0xffffffffffULL) == 0x65646f63ULL;  // "code"
}

// The key of the thread's Python state is the first one whose value leads to a frame with a code object. Extensions
// (pybind11) keep the state of some threads under keys of their own, which they create later than the interpreter
// creates its key.
static __always_inline void find_key(struct telemetry_python* python, __u64 keys) {
  __u32 found = TELEMETRY_KEYS;
  for (int i = TELEMETRY_KEYS - 1; i >= 0; --i) {
    __u64 state = load(keys + i * 16 + 8);
    if (is_code(load(innermost_of(python, state) + python->frame_code) & ~3ULL)) found = i;
  }
  python->key = found;
}

// The thread's innermost Python frame; 0 if it runs no Python.
static __always_inline __u64 innermost(struct telemetry_python* python) {
  if (!python->has_layout) return 0;
  __u64 keys = thread_pointer() + FIRST_KEYS;
  if (python->key >= TELEMETRY_KEYS) find_key(python, keys);
  if (python->key >= TELEMETRY_KEYS) return 0;
  __u64 state = load(keys + (__u64)python->key * 16 + 8);
  return state ? innermost_of(python, state) : 0;
}

// The frames as they are in memory: user space removes those of the interpreter itself. The verifier tolerates only one
// branch per frame.
static __always_inline __u32 walk(const struct telemetry_python* python, __u64 frame, struct telemetry_frame* into,
                                  __u64* hash) {
  int i = 0;
  for (; i < TELEMETRY_MOST_FRAMES && frame; ++i) {
    into[i].code = load(frame + python->frame_code);
    into[i].at = load(frame + python->frame_at);
    into[i].mark = load_byte(frame + python->frame_mark);
    *hash = mix(mix(*hash, into[i].code), into[i].at);
    frame = load(frame + python->frame_previous);
  }
  return i;
}

static __always_inline int with_stack(struct pt_regs* c, const struct telemetry_python* python, __u64 id, __u32 call,
                                      __u64 address, __u64 bytes, __u64 threshold, __u16 device, __u64 frame,
                                      const struct start* s, __u32 kind_of_shape) {
  struct telemetry_stack_event* e = bpf_ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) {
    count_lost(1);
    return 0;
  }
  describe(&e->head, TELEMETRY_EVENT_ALLOC, id);
  e->head.call = call;
  e->head.address = address;
  e->head.bytes = bytes;
  e->head.threshold = threshold;
  e->head.device = device;
  e->head.context = s ? s->context : 0;
  __u64 hash = 0;
  e->head.frames = walk(python, frame, e->frames, &hash);
  __u64 registers[TELEMETRY_REGISTERS] = {c->rax, c->rdx, c->rcx, c->rbx, c->rsi, c->rdi, c->rbp, c->rsp, c->r8,
                                          c->r9,  c->r10, c->r11, c->r12, c->r13, c->r14, c->r15, c->rip};
  __builtin_memcpy(e->registers, registers, sizeof registers);
  e->head.result = kind_of_shape;
  if (kind_of_shape) {
    bpf_probe_read_user(e->shape, sizeof e->shape - sizeof *e->shape, (void*)s->shape);  // zeros if it cannot be read
    e->shape[TELEMETRY_SHAPE_WORDS - 1] = s->format ? load(s->format) : 0;
  }
  e->stack_bytes = 0;
#pragma unroll
  for (int i = 0; i < TELEMETRY_STACK_BYTES / TELEMETRY_STACK_PIECE; ++i) {
    const __u64 at = c->rsp + i * TELEMETRY_STACK_PIECE;
    if (bpf_probe_read_user(e->stack + i * TELEMETRY_STACK_PIECE, TELEMETRY_STACK_PIECE, (void*)at)) {
      // The next page is not in memory or not part of the stack: read up to its start.
      const __u64 rest = -at & 4095;
      if (rest < TELEMETRY_STACK_PIECE &&
          !bpf_probe_read_user(e->stack + i * TELEMETRY_STACK_PIECE, rest & (TELEMETRY_STACK_PIECE - 1), (void*)at))
        e->stack_bytes += rest;
      break;
    }
    e->stack_bytes = (i + 1) * TELEMETRY_STACK_PIECE;
  }
  bpf_ringbuf_submit(e, at_once_if_new(c, id, hash));
  return 0;
}

static __always_inline int bare_since(__u64 began_ns, __u32 kind, __u64 id, __u32 call, __u64 address, __u64 bytes,
                                      __u32 result, __u16 device) {
  struct telemetry_event* e = bpf_ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) {
    count_lost(1);
    return 0;
  }
  describe(e, kind, id);
  e->call = call;
  e->address = address;
  e->bytes = bytes;
  e->result = result;
  e->device = device;
  e->began_ns = began_ns;
  const int waits = kind == TELEMETRY_EVENT_FREE || kind == TELEMETRY_EVENT_FAILED;
  bpf_ringbuf_submit(e, waits ? soon() : BPF_RB_FORCE_WAKEUP);
  return 0;
}

static __always_inline int mapped(__u64 id, const struct start* s, __u64 handle, __u32 act) {
  struct telemetry_event* e = bpf_ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) {
    count_lost(1);
    return 0;
  }
  describe(e, TELEMETRY_EVENT_MAPPED, id);
  e->call = s->call;
  e->address = s->address;
  e->bytes = s->size;
  e->context = handle;
  e->result = act;
  e->began_ns = s->began_ns;
  bpf_ringbuf_submit(e, soon());
  return 0;
}

static __always_inline int bare(__u32 kind, __u64 id, __u32 call, __u64 address, __u64 bytes, __u32 result,
                                __u16 device) {
  return bare_since(0, kind, id, call, address, bytes, result, device);
}

// If there is no room, all processes are inspected sooner or later anyway.
static __always_inline int report_news(__u32 kind, __u64 id) {
  struct telemetry_event* e = bpf_ringbuf_reserve(&news, sizeof *e, 0);
  if (!e) return 0;
  describe(e, kind, id);
  bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
  return 0;
}

#define SECOND_NS 1000000000ULL
#define HIGHEST_THRESHOLD 0xffffffffULL

// The threshold above which every block is reported. For a program that allocates faster than the budget allows, the
// expected number of smaller ones is the budget: all bytes of a second / threshold. The threshold of a second follows
// from the second before it and from its own bytes so far.
static __always_inline __u64 threshold_of(__u32 tgid, __u64 bytes) {
  __u32 only = 0;
  __u64* most = bpf_map_lookup_elem(&budget, &only);
  if (!most || !*most) return 0;
  const __u64 now_ns = bpf_ktime_get_ns();
  struct pace* pace = bpf_map_lookup_elem(&paces, &tgid);
  if (!pace) {
    struct pace first = {.begin_ns = now_ns};
    bpf_map_update_elem(&paces, &tgid, &first, BPF_NOEXIST);
    pace = bpf_map_lookup_elem(&paces, &tgid);
    if (!pace) return 0;
  }
  if (now_ns - pace->begin_ns >= SECOND_NS) {
    const __u64 allowed = *most * ((now_ns - pace->begin_ns) / 1000000) / 1000;
    __u64 threshold = pace->calls > allowed && allowed ? pace->bytes / allowed : 0;
    pace->threshold = threshold < HIGHEST_THRESHOLD ? threshold : HIGHEST_THRESHOLD;
    pace->begin_ns = now_ns;
    pace->calls = pace->bytes = 0;
  }
  __sync_fetch_and_add(&pace->calls, 1);
  __sync_fetch_and_add(&pace->bytes, bytes);
  if (pace->calls <= *most) return pace->threshold;
  __u64 so_far = pace->bytes / *most;
  if (so_far > HIGHEST_THRESHOLD) so_far = HIGHEST_THRESHOLD;
  return pace->threshold > so_far ? pace->threshold : so_far;
}

static __always_inline int is_sampled(__u64 bytes, __u64 threshold) {
  return bytes >= threshold || threshold * bpf_get_prandom_u32() < bytes << 32;
}

static __always_inline int report(struct pt_regs* c, struct telemetry_python* python, __u64 id, __u32 call) {
  __u64 address = PT_REGS_PARM1(c);
  __s64 bytes = PT_REGS_PARM2(c);
  __u16 device = PT_REGS_PARM5(c);
  if ((device & 0xff) == 0) return 0;  // c10::DeviceType::CPU
  if (bytes <= 0) return bare(TELEMETRY_EVENT_FREE, id, call, address, -bytes, 0, device);
  const __u64 threshold = threshold_of(id >> 32, bytes);
  if (!is_sampled(bytes, threshold)) return 0;
  __u64 frame = innermost(python);
  // C++ threads and programs without Python have only their native stack.
  if (!frame) return with_stack(c, python, id, call, address, bytes, threshold, device, 0, 0, TELEMETRY_NO_SHAPE);
  struct telemetry_python_event* e = bpf_ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) {
    count_lost(1);
    return 0;
  }
  describe(&e->head, TELEMETRY_EVENT_ALLOC, id);
  e->head.call = call;
  e->head.address = address;
  e->head.bytes = bytes;
  e->head.threshold = threshold;
  e->head.device = device;
  __u64 hash = 0;
  e->head.frames = walk(python, frame, e->frames, &hash);
  bpf_ringbuf_submit(e, at_once_if_new(c, id, hash));
  return 0;
}

static __always_inline void note(__u32 tgid, __u32 act, __u64 of, __u64 value) {
  struct handle handle = {.tgid = tgid, .act = act, .value = of};
  bpf_map_update_elem(&handles, &handle, &value, BPF_ANY);
}

static __always_inline __u64* noted(__u32 tgid, __u32 act, __u64 of) {
  struct handle handle = {.tgid = tgid, .act = act, .value = of};
  return bpf_map_lookup_elem(&handles, &handle);
}

static __always_inline void retain(__u32 tgid, __u64 address) {
  __u64* owners = noted(tgid, TELEMETRY_RETAIN, address);
  if (owners)
    __sync_fetch_and_add(owners, 1);
  else
    note(tgid, TELEMETRY_RETAIN, address, 1);
}

// Removes one owner of a handle that may have several. Returns whether it was the last one.
static __always_inline int is_last_release(__u32 tgid, __u64 address) {
  struct handle handle = {.tgid = tgid, .act = TELEMETRY_RETAIN, .value = address};
  __u64* owners = bpf_map_lookup_elem(&handles, &handle);
  if (!owners) return 1;
  if (*owners > 1)
    __sync_fetch_and_add(owners, -1);
  else
    bpf_map_delete_elem(&handles, &handle);
  return 0;
}

static __always_inline int release(__u64 id, __u32 call, __u64 address) {
  const __u32 tgid = id >> 32;
  if (!is_last_release(tgid, address)) return 0;
  struct handle part = {.tgid = tgid, .act = TELEMETRY_NEW_PART, .value = address};
  __u64* whole = bpf_map_lookup_elem(&handles, &part);
  if (!whole) return bare(TELEMETRY_EVENT_FREE, id, call, address, 0, 0, 0);
  address = *whole;
  bpf_map_delete_elem(&handles, &part);
  return is_last_release(tgid, address) ? bare(TELEMETRY_EVENT_FREE, id, call, address, 0, 0, 0) : 0;
}

// c10::DeviceType::CUDA
#define DEVICE(index) ((__u16)(1 | (__u16)(index) << 8))

static __always_inline void set_context(__u64 id, int push, __u64 context, __u16 device) {
  struct contexts* known = bpf_map_lookup_elem(&threads, &id);
  struct contexts contexts = {};
  if (known) contexts = *known;
  if (push) ++contexts.depth;
  contexts.contexts[contexts.depth % TELEMETRY_MOST_CONTEXTS] = context;
  contexts.devices[contexts.depth % TELEMETRY_MOST_CONTEXTS] = device;
  bpf_map_update_elem(&threads, &id, &contexts, BPF_ANY);
}

static __always_inline void pop_context(__u64 id) {
  struct contexts* known = bpf_map_lookup_elem(&threads, &id);
  if (known && known->depth) --known->depth;
}

static __always_inline __u16 current_device(__u64 id) {
  struct contexts* known = bpf_map_lookup_elem(&threads, &id);
  return known ? known->devices[known->depth % TELEMETRY_MOST_CONTEXTS] : 0;
}

static __always_inline __u64 current_context(__u64 id) {
  struct contexts* known = bpf_map_lookup_elem(&threads, &id);
  return known ? known->contexts[known->depth % TELEMETRY_MOST_CONTEXTS] : 0;
}

static __always_inline __u16 device_of_context(__u32 tgid, __u64 context) {
  __u64* device = noted(tgid, TELEMETRY_NEW_CONTEXT, context);
  return device ? *device : 0;
}

// The bits of the memory types that are on the device itself.
static __always_inline __u32 kinds_of(__u64 properties) {
  const __u32 count = load_32(properties);
  __u32 kinds = 0;
  for (int i = 0; i < 32; ++i)
    if (i < count && load_32(properties + 4 + i * 8) & 1) kinds |= 1U << i;  // VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
  return kinds;
}

static __always_inline __u8 call_of(struct pt_regs* c, const struct telemetry_function* function, __u32 tgid) {
  if (function->flags && value_at(c, function->flags) & function->mask) return function->other_call;
  if (function->kind) {
    __u64* kinds = noted(tgid, TELEMETRY_HEAPS, c->rdi);
    if (kinds && !(*kinds >> (value_at(c, function->kind) & 31) & 1)) return function->other_call;
  }
  return function->call;
}

static __always_inline int is_within_another(struct pt_regs* c, __u64 id) {
  struct start* outer = bpf_map_lookup_elem(&starts, &id);
  // A call lower on the stack has returned unseen (longjmp, an exception).
  return outer && outer->stack_pointer > c->rsp;
}

static __always_inline void begin(struct pt_regs* c, const struct telemetry_function* function, __u32 index, __u64 id) {
  if (is_within_another(c, id)) return;
  struct start s = {.function = index,
                    .address = value_at(c, function->address),
                    .size = value_at(c, function->size),
                    .rows = value_at(c, function->rows),
                    .shape = value_at(c, function->shape),
                    .format = value_at(c, function->format),
                    .stack_pointer = c->rsp,
                    .context = current_context(id),
                    .of = value_at(c, function->of),
                    .began_ns = bpf_ktime_get_ns(),
                    .device = function->device ? DEVICE(value_at(c, function->device)) : current_device(id),
                    .call = call_of(c, function, id >> 32)};
  bpf_map_update_elem(&starts, &id, &s, BPF_ANY);
}

// Whether the call frees anything is known when it returns; until then nothing is reported.
static __always_inline void begin_free(struct pt_regs* c, __u8 call, __u32 index, __u64 id, __u64 address) {
  if (!address || is_within_another(c, id)) return;
  struct start s = {
      .function = index, .address = address, .stack_pointer = c->rsp, .began_ns = bpf_ktime_get_ns(), .call = call};
  bpf_map_update_elem(&starts, &id, &s, BPF_ANY);
}

// A process that calls a probed function is a target until user space decides otherwise: no event of a new one is lost.
static __always_inline struct telemetry_python* adopt(__u32 tgid) {
  struct telemetry_python none = {};
  bpf_map_update_elem(&targets, &tgid, &none, BPF_NOEXIST);
  return bpf_map_lookup_elem(&targets, &tgid);
}

SEC("uprobe") int enter(struct pt_regs* c) {
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tgid = id >> 32;
  struct telemetry_python* python = bpf_map_lookup_elem(&targets, &tgid);
  if (!python && bpf_map_lookup_elem(&left_out, &tgid)) return 0;
  __u32 index = bpf_get_attach_cookie(c);
  const struct telemetry_function* function = bpf_map_lookup_elem(&functions, &index);
  if (!function) return 0;
  if (function->act == TELEMETRY_LOADED) return report_news(TELEMETRY_EVENT_LOADED, id);
  if (!python) python = adopt(tgid);
  if (!python) return 0;
  if (function->act == TELEMETRY_REPORT) return report(c, python, id, function->call);
  const __u64 address = value_at(c, function->address);
  switch (function->act) {
    case TELEMETRY_RELEASE:
      return release(id, function->call, address);
    case TELEMETRY_FREE:
      begin_free(c, function->call, index, id, address);
      return 0;
    case TELEMETRY_FREE_SURELY:
      return bare(TELEMETRY_EVENT_FREE, id, function->call, address, 0, 0, 0);
    case TELEMETRY_FREE_ALL: {
      const __u64 count = value_at(c, function->size);
      for (int i = 0; i < 16 && i < count; ++i)
        bare(TELEMETRY_EVENT_FREE, id, function->call, load(address + i * 8), 0, 0, 0);
      if (count > 16) count_lost(count - 16);
      return 0;
    }
    case TELEMETRY_RETAIN:
      retain(tgid, address);
      return 0;
    case TELEMETRY_SET_CONTEXT:
      set_context(id, 0, address, device_of_context(tgid, address));
      return 0;
    case TELEMETRY_PUSH_CONTEXT:
      set_context(id, 1, address, device_of_context(tgid, address));
      return 0;
    case TELEMETRY_POP_CONTEXT:
      pop_context(id);
      return 0;
    case TELEMETRY_SET_DEVICE:
      set_context(id, 0, 0, DEVICE(value_at(c, function->device)));
      return 0;
    case TELEMETRY_END_CONTEXT:
      if (current_context(id) == address) pop_context(id);
      return bare(TELEMETRY_EVENT_CONTEXT, id, function->call, address, 0, function->act, 0);
    case TELEMETRY_END_DEVICE:
    case TELEMETRY_RELEASE_PRIMARY:
      return bare(TELEMETRY_EVENT_CONTEXT, id, function->call, 0, 0, function->act,
                  function->device ? DEVICE(value_at(c, function->device)) : current_device(id));
    default:
      begin(c, function, index, id);
      return 0;
  }
}

// From now on, the program will call the function by its address, not by its name.
static __always_inline int found(__u64 id, __u64 name, __u64 address) {
  char text[TELEMETRY_NAME_BYTES] = {};
  if (!address || bpf_probe_read_user_str(text, sizeof text, (void*)name) < 0) return 0;
  __u32* index = bpf_map_lookup_elem(&names, text);
  return index ? bare(TELEMETRY_EVENT_FOUND, id, 0, address, *index, 0, 0) : 0;
}

SEC("uretprobe") int leave(struct pt_regs* c) {
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tgid = id >> 32;
  struct telemetry_python* python = bpf_map_lookup_elem(&targets, &tgid);
  if (!python) return 0;
  __u32 index = bpf_get_attach_cookie(c);
  struct start* begun = bpf_map_lookup_elem(&starts, &id);
  // The return address has been popped: the stack pointer is one word above its value at the call.
  if (!begun || begun->function != index || c->rsp != begun->stack_pointer + 8) return 0;
  struct start s = *begun;
  bpf_map_delete_elem(&starts, &id);
  const struct telemetry_function* function = bpf_map_lookup_elem(&functions, &index);
  if (!function) return 0;
  __u64 address = s.address, bytes = s.size;
  __u32 result = PT_REGS_RC(c);
  switch (function->act) {
    case TELEMETRY_NEW_CONTEXT: {
      if (result) return 0;
      address = load(address);
      note(tgid, TELEMETRY_NEW_CONTEXT, address, s.device);
      if (function->mask)
        set_context(id, 1, address, s.device);
      else
        bare(TELEMETRY_EVENT_CONTEXT, id, s.call, address, 0, function->act, s.device);
      s.context = address;  // the address of the context itself
      break;
    }
    case TELEMETRY_MAP:
    case TELEMETRY_UNMAP:
    case TELEMETRY_RETAIN_MAPPED:
      if (result) return 0;
      return mapped(id, &s, function->act == TELEMETRY_RETAIN_MAPPED ? load(s.of) : s.of, function->act);
    case TELEMETRY_HEAPS:
      note(tgid, TELEMETRY_HEAPS, address, kinds_of(bytes + function->mask));
      return 0;
    case TELEMETRY_NEW_DEVICE: {
      __u64* kinds = noted(tgid, TELEMETRY_HEAPS, bytes);
      if (!result && kinds) note(tgid, TELEMETRY_HEAPS, load(address), *kinds);
      return 0;
    }
    case TELEMETRY_NEW_PART:
      if (!PT_REGS_RC(c)) return 0;
      retain(tgid, address);
      note(tgid, TELEMETRY_NEW_PART, PT_REGS_RC(c), address);
      return 0;
    case TELEMETRY_FREE:
      return result ? 0 : bare_since(s.began_ns, TELEMETRY_EVENT_FREE, id, s.call, address, 0, 0, 0);
    case TELEMETRY_LOOK_UP:
      return found(id, address, PT_REGS_RC(c));
    case TELEMETRY_RETURN:
      address = PT_REGS_RC(c);
      result = !address;
      break;
    case TELEMETRY_ALLOCATE:
      if (!result) address = load(address);
      break;
    default:
      break;
  }
  if (function->rows) bytes = result ? 0 : load(s.size) * s.rows;
  if (result) return bare(TELEMETRY_EVENT_FAILED, id, s.call, 0, bytes, result, s.device);
  return with_stack(c, python, id, s.call, address, bytes, 0, s.device, innermost(python), &s, function->kind_of_shape);
}

// A child of a traced process is traced from its first instruction: its memory is a copy, including the probes.
SEC("raw_tp/sched_process_fork") int forked(struct bpf_raw_tracepoint_args* c) {
  struct task_struct* parent = (struct task_struct*)c->args[0];
  struct task_struct* child = (struct task_struct*)c->args[1];
  __u32 parent_tgid = BPF_CORE_READ(parent, tgid), child_tgid = BPF_CORE_READ(child, tgid);
  if (parent_tgid == child_tgid) return 0;  // a thread
  struct telemetry_python* python = bpf_map_lookup_elem(&targets, &parent_tgid);
  if (!python) return 0;
  struct telemetry_python copy = *python;
  bpf_map_update_elem(&targets, &child_tgid, &copy, BPF_ANY);
  return bare(TELEMETRY_EVENT_FORK, (__u64)child_tgid << 32 | child_tgid, 0, parent_tgid,
              BPF_CORE_READ(child, start_boottime), 0, 0);
}

SEC("raw_tp/sched_process_exec") int executed(struct bpf_raw_tracepoint_args* c) {
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tgid = id >> 32;
  bpf_map_delete_elem(&left_out, &tgid);
  struct telemetry_python none = {};
  if (bpf_map_update_elem(&targets, &tgid, &none, BPF_EXIST)) return report_news(TELEMETRY_EVENT_STARTED, id);
  return bare(TELEMETRY_EVENT_EXEC, id, 0, 0, 0, 0, 0);
}

SEC("raw_tp/sched_process_exit") int ended(struct bpf_raw_tracepoint_args* c) {
  __u64 id = bpf_get_current_pid_tgid();
  __u32 tgid = id >> 32;
  // The first thread may end before the others: it calls pthread_exit, or another thread calls exec.
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  if (BPF_CORE_READ(task, signal, live.counter) > 0) return 0;
  bpf_map_delete_elem(&left_out, &tgid);
  if (bpf_map_delete_elem(&targets, &tgid)) return 0;
  return bare(TELEMETRY_EVENT_EXIT, id, 0, 0, 0, 0, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
