// The part of HIP's C interface that the hooks need, as in ROCm 4.2 to 7: building requires no ROCm headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe::hip {

using Error = int;
inline constexpr Error kSuccess = 0;
inline constexpr Error kInvalidValue = 1;
inline constexpr Error kOutOfMemory = 2;
inline constexpr Error kNotInitialized = 3;

using Stream = void*;
using Pool = void*;
using Array = void*;
using DevicePointer = void*;
using AllocationHandle = void*;

struct Extent {
  std::size_t width;  ///< the width of elements for arrays, of bytes for pitched memory
  std::size_t height;
  std::size_t depth;
};
struct PitchedPointer {
  void* pointer;
  std::size_t pitch;
  std::size_t width;
  std::size_t height;
};
struct ChannelFormat {
  int x, y, z, w;  ///< number of bits
  int kind;
};
struct ArrayDescriptor {
  std::size_t width;
  std::size_t height;
  unsigned format;
  unsigned channels;
};
struct Array3DDescriptor {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
  unsigned format;
  unsigned channels;
  unsigned flags;
};
struct Location {
  int type;
  int id;
};
inline constexpr int kLocationDevice = 1;
/// The beginning of hipMemAllocationProp, which is longer.
struct AllocationProperties {
  int type;
  int handle_types;
  Location location;
};
struct IpcHandle {
  char reserved[64];
};
struct Uuid {
  char bytes[16];
};

}  // namespace vramtrack::probe::hip
