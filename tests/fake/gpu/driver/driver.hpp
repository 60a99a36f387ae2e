// What the parts of the fake libcuda.so.1 share. The declarations are ours: none of NVIDIA's headers is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "../settings.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using CUresult = int;
using CUdeviceptr = unsigned long long;

/// CUmemLocation, and the beginning that CUmemAllocationProp and CUmemPoolProps have in common.
struct Location {
  int type, id;
};
struct AllocationProperties {
  int type, handle_types;
  Location location;
};

namespace fake_gpu {

enum Code : CUresult {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNotInitialised = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kNotFound = 500,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kNotSupported = 801
};

constexpr std::uint64_t kPage = 2 * kMib;  ///< what the driver hands out, and what allocations below 1 MiB share
constexpr std::uint64_t kHostPage = 4096;
constexpr int kOnDevice = 1;  ///< of a Location

struct Context {
  int device = 0;
  std::uint64_t bytes = 0;
  int retained = 0;
};
Context* current_context();
Context* primary_context(int device);

/// Everything below the API: addresses, pools and handles. Held by each call that changes them.
std::mutex& driver_mutex();

/// Device memory beneath an allocation: whole pages, except that small pieces share theirs. The caller holds
/// driver_mutex(). kOutOfMemory too where VRAMTRACK_FAKE_GPU_FAIL_AT says so.
CUresult take(int device, std::uint64_t bytes, bool small);
void give_back(int device, std::uint64_t bytes, bool small);
bool scripted_failure();

/// One line of VRAMTRACK_FAKE_GPU_TRACE. Device -1: memory of the host, or addresses only.
void trace(const char* call, int device, std::uint64_t address, std::uint64_t bytes, CUresult code);

enum class Kind { device, managed, pooled, host, registered, imported, mapped };
struct Pool;
struct Physical;
/// What lies at an address.
struct Range {
  std::uint64_t begin = 0, end = 0;
  Kind kind = Kind::device;
  int device = 0;
  bool small = false;
  Pool* pool = nullptr;
  Physical* physical = nullptr;
  const Context* context = nullptr;  ///< what it goes with; null: it outlives contexts
  [[nodiscard]] std::uint64_t bytes() const { return end - begin; }
};
/// The range that holds the address, else null. The caller holds driver_mutex(), for this and for what follows.
Range* find_range(std::uint64_t address);
Range& add_range(std::uint64_t begin, std::uint64_t bytes, Kind kind, int device);
void erase_range(const Range& range);
/// The ranges and arrays that go with the context are freed; the context is destroyed. The caller holds driver_mutex().
void free_memory_of(const Context* context);
void free_arrays_of(const Context* context);
/// The first range of the context, else null.
Range* range_of(const Context* context);

/// Addresses for this many bytes; pages come when they are written. 0: there are none.
std::uint64_t map_addresses(std::uint64_t bytes, std::uint64_t align, int protection);
void unmap_addresses(std::uint64_t begin, std::uint64_t bytes);

/// cuMemFree of an address of a pool.
CUresult free_pooled(const Range& range);

/// A handle of something that the driver only names.
std::uint64_t next_handle();
/// A handle of what takes `bytes` of the current device beside allocations, until it is released.
CUresult take_beside(std::uint64_t* handle, std::uint64_t bytes);
void give_back_beside(std::uint64_t handle);

}  // namespace fake_gpu
