// The format between the probe and the reader: the ring in shared memory and the records in it. Plain data of fixed
// width, little-endian; the only header that the probe and the rest of vramtrack share. docs/formats/trace.md describes
// the file that these records end up in.
//
//   ring file: | RingHeader, 4096 bytes | slot 0 | slot 1 | ... | slot capacity-1 |      32 bytes per slot
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrack::probe {

/// The hooked calls. Numbers are stored in traces, so only append.
enum class Call : std::uint8_t {
  none = 0,
#define VRAMTRACK_CALL(id, name, level, memory, number) id = (number),
#include "probe/calls.def"
#undef VRAMTRACK_CALL
};

/// The allocator of the memory. Blocks are within the driver's memory: their bytes are not counted twice.
enum class Level : std::uint8_t {
  driver = 0,  ///< cuMemAlloc, vkAllocateMemory, clCreateBuffer
  block = 1,   ///< a PyTorch tensor's block, a buffer bound to Vulkan memory, an OpenCL sub-buffer
};

enum class Memory : std::uint8_t {
  device = 0,
  managed = 1,  ///< moves between host and device (cuMemAllocManaged, shared virtual memory)
  host = 2,     ///< pinned host memory, counted separately
  mapped = 3,   ///< another process's or API's, mapped here and not owned
};

struct CallInfo {
  Call call;
  std::string_view name;
  Level level;
  Memory memory;
};
inline constexpr auto kCalls = std::to_array<CallInfo>({
#define VRAMTRACK_CALL(id, name, level, memory, number) {Call::id, name, Level::level, Memory::memory},
#include "probe/calls.def"
#undef VRAMTRACK_CALL
});

constexpr const CallInfo* info_of(Call call) {
  for (const CallInfo& info : kCalls)
    if (info.call == call) return &info;
  return nullptr;
}

enum class Record : std::uint8_t {
  none = 0,       ///< the slot is free, or incomplete
  alloc = 1,      ///< address, bytes, stack, call, device
  free = 2,       ///< address, bytes (as in the alloc), call (of the alloc), device
  frame = 3,      ///< `stack`: the stack it belongs to; see Slot::frame
  text = 4,       ///< `stack`: the text's number; see Slot::text
  code = 5,       ///< `stack`: the number of a Python code object; a: first line; b: file text | name text << 32
  module = 6,     ///< `stack`: text of the path; a: offset in the file; address: first byte; bytes: length
  process = 7,    ///< once, first: a: pid | flags << 32; address: start ticks; bytes: text of the command line
  thread = 8,     ///< `stack`: text of the name; a: thread number
  device = 9,     ///< `device`; stack: text of the UUID; address: total bytes; bytes: text of the name
  mark = 10,      ///< `stack`: text; a moment that the program or its user named
  refused = 11,   ///< bytes that a limit refused; address: bytes held; call, device, stack
  failed = 12,    ///< bytes that the API refused; address: free bytes of the device, if queried; call, device, stack
  totals = 13,    ///< for a device: address: allocated bytes, bytes: reserved bytes; as reported by the framework
  lost = 14,      ///< a: records that found no space before this one
  sampling = 15,  ///< from here on, about one block per `bytes` bytes is recorded (0: every one)
  limit = 16,     ///< from here on: bytes: the limit (0: none); address: the soft limit
  // 17: not used.
  end = 18,     ///< the process ends in order from here on: the interpreter frees its memory
  label = 19,   ///< description of the block at `address`; `stack`: text of its name (0: none); bytes: of the category
  exit = 20,    ///< the process ends in order: destructors follow
  onward = 21,  ///< the recording ends here and the process continues: its last frees are not an exit
  kept = 22,    ///< what keeps the block at `address`; `number`: text; bytes: all that it keeps; see kLookEnd
};

/// One record. `head` is stored last with release order: a reader that finds zero finds no record yet.
struct Slot {
  std::uint64_t head = 0;  ///< record | call << 8 | device << 16 | flags << 24 | stack << 32
  std::uint64_t a =
      0;  ///< for alloc, free, refused, failed, mark, totals, label, end, exit, kept: time_us | thread << 48
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Slot) == 32);

constexpr std::uint64_t head_of(Record record, Call call, int device, std::uint8_t flags, std::uint32_t number) {
  return static_cast<std::uint64_t>(record) | static_cast<std::uint64_t>(call) << 8U |
         static_cast<std::uint64_t>(static_cast<std::uint8_t>(device)) << 16U |
         static_cast<std::uint64_t>(flags) << 24U | static_cast<std::uint64_t>(number) << 32U;
}
constexpr Record record_of(const Slot& slot) {
  return static_cast<Record>(slot.head & 0xffU);
}
constexpr Call call_of(const Slot& slot) {
  return static_cast<Call>(slot.head >> 8U & 0xffU);
}
/// -1: the host.
constexpr int device_of(const Slot& slot) {
  return static_cast<std::int8_t>(slot.head >> 16U & 0xffU);
}
constexpr std::uint8_t flags_of(const Slot& slot) {
  return static_cast<std::uint8_t>(slot.head >> 24U & 0xffU);
}
/// The number of a stack, text or code object.
constexpr std::uint32_t number_of(const Slot& slot) {
  return static_cast<std::uint32_t>(slot.head >> 32U);
}

// Record::frame: flags below; a: index in the stack | frames in the stack << 32. The native frames come first, then the
// Python frames, each innermost first; the reader merges them, because it knows which native frames are the
// interpreter's loop (_PyEval_EvalFrameDefault). If a stack was too deep, its outermost frames of that kind are
// missing. native: address: the return address; Python: address: number of the code object, bytes: line.
inline constexpr std::uint8_t kPythonFrame = 1;
/// The last Python frame run by one call of the interpreter's loop: the native frames after it called that loop.
inline constexpr std::uint8_t kEntryFrame = 2;
// Record::text: a: offset | length of the whole text << 32; address and bytes: 16 bytes of it.
inline constexpr std::size_t kTextBytes = 16;
// Record::mark: flags.
inline constexpr std::uint8_t kNotice = 1;  ///< not a moment of the program: reports what the probe cannot see, and why
// Record::alloc: flags.
inline constexpr std::uint8_t kEstimated = 1;  ///< the API does not report the size: it was computed
// Record::kept: flags. A search writes its keepers, each one once per block in a sample of its blocks.
inline constexpr std::uint8_t kLookEnd = 1;       ///< the search is over: address: objects found, bytes: duration in
                                                  ///< microseconds; `number`: why it is incomplete (0: it is complete)
inline constexpr std::uint8_t kRootedKeeper = 2;  ///< the text leads to a variable, not to an object without a name
inline constexpr std::uint8_t kGraphKeeper = 4;   ///< some of what it keeps has a graph of autograd, which keeps others
inline constexpr std::uint8_t kUnheldBlock = 8;   ///< no keeper: Python has an object for it to which nothing refers
inline constexpr std::uint8_t kUnaskedBlock = 16;  ///< no keeper: Python has an object for it that was not searched
// Record::process: flags.
inline constexpr std::uint64_t kForked = 1;  ///< the parent had its own ring

constexpr std::uint64_t when(std::uint64_t time_us, std::uint16_t thread) {
  return (time_us & 0xffff'ffff'ffffU) | static_cast<std::uint64_t>(thread) << 48U;
}
constexpr std::uint64_t time_us_of(const Slot& slot) {
  return slot.a & 0xffff'ffff'ffffU;
}
constexpr std::uint16_t thread_of(const Slot& slot) {
  return static_cast<std::uint16_t>(slot.a >> 48U);
}

inline constexpr std::uint64_t kRingMagic = 0x31474e4952545256;  ///< "VRTRING1"
inline constexpr std::uint32_t kWireVersion = 1;
inline constexpr std::size_t kRingHeaderBytes = 4096;
/// Slots of a ring without a size limit, 16 MiB: the records written within a reader's interval of 50 ms at 10 million
/// per second.
inline constexpr std::uint64_t kRingSlots = 1U << 19U;
inline constexpr std::uint64_t kFewestRingSlots = 1U << 11U;
inline constexpr std::size_t kMostDevices = 32;
/// Devices of CUDA and HIP keep their ordinals, which are below this; others (OpenCL, Vulkan, Level Zero) get numbers.
inline constexpr int kFirstNumbered = 16;

/// Bytes that a process holds on one device, whether or not each allocation was recorded.
struct HeldBytes {
  std::atomic<std::int64_t> driver;
  std::atomic<std::int64_t> block;
};

/// The first page of a ring. Fields that both sides write at run time are atomic; neither side waits.
struct RingHeader {
  std::uint64_t magic = kRingMagic;
  std::uint32_t version = kWireVersion;
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;                   ///< field 22 of /proc/PID/stat
  std::uint64_t capacity = 0;                      ///< slots; a power of two
  std::int64_t begin_realtime_us = 0;              ///< since 1970, UTC; origin of the records' times
  alignas(64) std::atomic<std::uint64_t> written;  ///< slots handed to writers so far
  alignas(64) std::atomic<std::uint64_t> read;     ///< slots that the reader has taken and zeroed so far
  alignas(64) std::atomic<std::uint64_t> lost;     ///< records that found no space
  // Set by the launcher, read by the probe before each allocation.
  alignas(64) std::atomic<std::uint64_t> limit_bytes;  ///< 0: none
  std::atomic<std::uint64_t> soft_limit_bytes;
  std::atomic<std::uint64_t> mark_requests;  ///< incremented: the probe writes what it now holds
  std::atomic<std::uint32_t> recording;      ///< 0: hooks pass through
  std::array<HeldBytes, kMostDevices> held;
  /// The peak held on each device above the soft limit, since the limit was set; 0: it was never exceeded.
  std::array<std::atomic<std::int64_t>, kMostDevices> above_soft_limit;
  std::atomic<std::uint64_t> kept_requests;  ///< incremented: at its next allocation the probe searches for keepers
};
static_assert(sizeof(RingHeader) <= kRingHeaderBytes);

constexpr std::size_t ring_bytes(std::uint64_t slots) {
  return kRingHeaderBytes + slots * sizeof(Slot);
}
/// The number of slots of a ring in a file of at most `bytes`, a power of two; 0: too small for one.
constexpr std::uint64_t ring_slots(std::uint64_t bytes) {
  if (bytes < ring_bytes(kFewestRingSlots)) return 0;
  return std::min(kRingSlots, std::bit_floor((bytes - kRingHeaderBytes) / sizeof(Slot)));
}
/// "spare.0" and so on in the folder of the rings: empty files of the size of a ring, provided by the launcher. A
/// process takes one by locking it. Without one, it creates its own file, which may be no larger than the process's
/// file size limit (RLIMIT_FSIZE); that limit does not affect a file that already has its size.
inline constexpr char kSpareRing[] = "/spare.";
inline constexpr std::uint64_t kSpareRings = 16;
/// "unrecorded.PID.START" in that folder: a symbolic link created by a process without a ring. Its target, to which no
/// file size limit applies, is "ERRNO LIMIT COMMAND": LIMIT is the limit in bytes that it obeys nevertheless (0: none).
inline constexpr char kUnrecorded[] = "unrecorded.";
/// In that folder: the Python source with which the probe searches for what keeps memory (kept.hpp); without it, there
/// are no searches.
inline constexpr char kKeptScript[] = "/kept.py";
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace vramtrack::probe
