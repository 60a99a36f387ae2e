// Recording API for the hooks: each hooked call updates the holdings, captures a stack and writes to the ring.
//
//   CUresult cuMemAlloc_v2(CUdeviceptr* into, size_t bytes) {
//     Hook hook(Call::cu_mem_alloc);
//     if (!hook.may_take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
//     const CUresult result = real(into, bytes);
//     result == CUDA_SUCCESS ? hook.took(*into, bytes) : hook.failed(result == CUDA_ERROR_OUT_OF_MEMORY);
//     return result;
//   }
//
// Nothing here takes a lock of the program, Python's GIL or the heap; no hook waits for another process.
#pragma once

#include <cstdint>
#include <string_view>

#include "probe/holding_table.hpp"
#include "probe/wire.hpp"

namespace vramtrack::probe {

/// One hooked call while it runs. A hooked call within another passes through (OpenCL on CUDA would count twice): each
/// function below then does nothing. Preserves errno. Any thread; signal handlers that allocate GPU memory are not
/// recorded while a hook runs on their thread.
class Hook {
 public:
  /// The first hook of a process opens its ring if VRAMTRACK_PROBE_DIR names a directory; else all hooks pass through.
  explicit Hook(Call call);
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  /// False if a limit forbids it, which is recorded; the hook then returns the API's out-of-memory error. If true,
  /// `bytes` count against the limit from now on, until took() or failed().
  [[nodiscard]] bool may_take(int device, std::uint64_t bytes);
  /// Call on success. `address`: the argument of the later free. `bytes`: the actual size, if it differs from the
  /// requested one. Records the allocation with the caller's stack.
  void took(std::uint64_t address, std::uint64_t bytes, std::uint8_t flags = 0);
  /// took() without may_take(): the amount that the call takes on `device` is known only afterwards, and no limit
  /// refuses it.
  void took_unasked(int device, std::uint64_t address, std::uint64_t bytes, std::uint8_t flags = 0);
  /// Call on failure. Records it if `is_out_of_memory`.
  void failed(bool is_out_of_memory, std::uint64_t device_free_bytes = 0);
  [[nodiscard]] bool passes() const { return passes_; }

 private:
  [[nodiscard]] static std::uint64_t mark_of(const Hook* hook);
  [[nodiscard]] bool is_gone(const Hook* outermost) const;

  Call call_;
  bool passes_;
  int depth_before_;
  std::uint64_t mark_;  ///< marks that the hook is present
  int device_ = 0;
  std::uint64_t asked_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;  ///< part of these that counts against the limit until the call is done
  int saved_errno_;
};

/// Records that a framework handed out a block of memory that it already holds. Not limited; cannot fail.
void took_block(Call call, int device, std::uint64_t address, std::uint64_t bytes);
/// Records that a framework had no block of this size, and is about to raise an error.
void lacked_block(Call call, int device, std::uint64_t bytes);

/// Records, once, that the program has run to its end, so that readers can distinguish what it held from its teardown.
/// Called with the first free of an interpreter that shuts down; anything slow that runs earlier must call it first.
void record_end();
/// Call before the driver, because afterwards another thread may get the same address. Returns the previous holding;
/// address 0 if unknown, which is normal for memory allocated before the probe.
Holding gave_back(Level level, std::uint64_t address);
/// Call if the call that should free it failed: it is still held.
void holds_still(const Holding& holding);
/// Moves the same memory to another address (VMM: from the handle to its mapping, and back).
void renamed(Level level, std::uint64_t from, std::uint64_t to);
/// Records that everything accepted by `wanted` has been freed (a context was destroyed).
template <class Wanted>
void gave_back_all(Wanted wanted);

/// Records a framework's report about a device: allocated and reserved bytes.
void record_totals(Call call, int device, std::uint64_t allocated_bytes, std::uint64_t reserved_bytes);
/// Call once per device, when it is first used.
void record_device(int device, std::string_view uuid, std::string_view name, std::uint64_t total_bytes);
/// Records a moment named by the program.
void record_mark(std::string_view name);
/// Describes the live block at `address`; numbers of texts, `name` 0: none. REQUIRES: is_recording(). See labels.hpp.
void write_label(std::uint64_t address, std::uint32_t category, std::uint32_t name);
/// The limit per device, in bytes; 0: none. The value for cuMemGetInfo and similar calls.
std::uint64_t limit_bytes();
/// Bytes held at driver level in device and managed memory.
std::uint64_t held_bytes(int device);
/// False if there is no ring and hooks pass through. Opens the ring like a Hook.
bool is_recording();
/// From here on, a forked child forgets what its parent held. Hooks call this themselves; others call it for locks
/// taken outside of hooks.
void watch_forks();

// Only for the templates above and for tests.
void wrote_free(const Holding& holding);

template <class Wanted>
void gave_back_all(Wanted wanted) {
  holdings().take_all(wanted, [](const Holding& holding) { wrote_free(holding); });
}

}  // namespace vramtrack::probe
