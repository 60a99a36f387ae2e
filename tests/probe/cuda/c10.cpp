// What PyTorch's libc10 has of a profiler's memory reports, in each form that a release had. Prints what arrives.
#include "c10.hpp"

#include <cstdio>

namespace c10 {

void reportMemoryUsageToProfiler(void* block, std::int64_t bytes, Device device) {
  std::printf("report %p %ld on %d:%d\n", block, bytes, device.type, device.index);
}
void reportMemoryUsageToProfiler(void* block, std::int64_t bytes, std::int64_t allocated, std::int64_t reserved,
                                 Device device) {
  std::printf("report signed %p %ld %ld %ld on %d:%d\n", block, bytes, allocated, reserved, device.type, device.index);
}
void reportMemoryUsageToProfiler(void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                                 Device device) {
  std::printf("report %p %ld %zu %zu on %d:%d\n", block, bytes, allocated, reserved, device.type, device.index);
}
void reportOutOfMemoryToProfiler(std::int64_t bytes, std::int64_t allocated, std::int64_t reserved, Device device) {
  std::printf("lacks signed %ld %ld %ld on %d:%d\n", bytes, allocated, reserved, device.type, device.index);
}
void reportOutOfMemoryToProfiler(std::int64_t bytes, std::size_t allocated, std::size_t reserved, Device device) {
  std::printf("lacks %ld %zu %zu on %d:%d\n", bytes, allocated, reserved, device.type, device.index);
}
void reportOutOfMemoryToProfiler(std::size_t bytes, std::size_t allocated, std::size_t reserved, Device device) {
  std::printf("lacks unsigned %zu %zu %zu on %d:%d\n", bytes, allocated, reserved, device.type, device.index);
}

}  // namespace c10
