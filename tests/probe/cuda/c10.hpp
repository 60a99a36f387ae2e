// c10's reports to a profiler, as PyTorch declares them: the compiler makes the names that the probe exports.
#pragma once

#include <cstddef>
#include <cstdint>

#define C10_API __attribute__((visibility("default")))

namespace c10 {

struct Device {
  std::int8_t type, index;
};

C10_API void reportMemoryUsageToProfiler(void*, std::int64_t, Device);
C10_API void reportMemoryUsageToProfiler(void*, std::int64_t, std::int64_t, std::int64_t, Device);
C10_API void reportMemoryUsageToProfiler(void*, std::int64_t, std::size_t, std::size_t, Device);
C10_API void reportOutOfMemoryToProfiler(std::int64_t, std::int64_t, std::int64_t, Device);
C10_API void reportOutOfMemoryToProfiler(std::int64_t, std::size_t, std::size_t, Device);
C10_API void reportOutOfMemoryToProfiler(std::size_t, std::size_t, std::size_t, Device);

}  // namespace c10
