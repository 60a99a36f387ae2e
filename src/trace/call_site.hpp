// CallSite: one stack that allocates with one call on one device, and what it holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/wire.hpp"
#include "trace/site_growth.hpp"

namespace vramtrack::trace {

/// The space that memory is allocated in. Each is counted separately.
enum class MemorySpace : std::uint8_t {
  device,  ///< the device's own memory and managed memory
  host,    ///< pinned host memory
  mapped,  ///< memory of another owner, mapped here
};
inline constexpr std::size_t kMemorySpaces = 3;
constexpr MemorySpace space_of(probe::Memory memory) {
  if (memory == probe::Memory::host) return MemorySpace::host;
  return memory == probe::Memory::mapped ? MemorySpace::mapped : MemorySpace::device;
}

/// Bytes and blocks; while sampling, those that the recorded ones stand for.
struct Held {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

struct CallSite {
  std::uint32_t stack = 0;  ///< its number in the process
  probe::Call call = probe::Call::none;
  probe::Level level = probe::Level::driver;
  MemorySpace space = MemorySpace::device;
  std::int8_t device = 0;
  std::uint16_t thread = 0;  ///< the first thread that allocated there
  Held live;                 ///< without segments that contain blocks
  Held low;                  ///< the least in the current stretch
  Held epoch;                ///< the least in the current epoch
  std::uint64_t allocations = 0;
  std::uint64_t first_us = 0, last_us = 0;           ///< times of the first and the last allocation
  std::uint64_t returned = 0;                        ///< blocks of earlier epochs that were freed
  std::uint32_t first_stretch = 0, first_epoch = 0;  ///< of the first entry of the next two; earlier ones are zero
  std::vector<Floor> stretches, epochs;              ///< see RunFloors
  std::uint64_t oldest_us = 0;                       ///< of the memory live at the end; see ProcessTrace::finish()
};

/// A live block or segment.
struct LiveCell {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t time_us : 48 = 0;
  std::uint64_t is_in_use : 1 = 0;
  std::uint64_t is_backing : 1 = 0;  ///< for a segment: it contains blocks; for a block: it is in a segment
  std::uint32_t site = 0;
  float stands_for = 1;  ///< number of blocks
  [[nodiscard]] bool is_used() const { return is_in_use != 0; }
  [[nodiscard]] Held held() const {
    if (stands_for == 1) return {static_cast<std::int64_t>(bytes), 1};
    return {std::llround(static_cast<double>(bytes) * static_cast<double>(stands_for)),
            std::llround(static_cast<double>(stands_for))};
  }
};
static_assert(sizeof(LiveCell) == 32);

/// No allocation is larger than this; sums of such sizes fit in 63 bits.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46U;

}  // namespace vramtrack::trace
