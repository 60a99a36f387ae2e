// Reports blocks as PyTorch's allocators do, well and badly.
#include <initializer_list>

#include "c10.hpp"

using namespace c10;

int main() {
  constexpr Device kCpu{0, -1}, kCuda{1, 0}, kHip{6, 1}, kXpu{12, 2}, kMeta{14, 0};
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  reportMemoryUsageToProfiler(at(0x1000), std::int64_t{512}, kCuda);
  reportMemoryUsageToProfiler(at(0x2000), std::int64_t{1024}, std::int64_t{1536}, std::int64_t{4096}, kHip);
  reportMemoryUsageToProfiler(at(0x3000), std::int64_t{2048}, std::size_t{3584}, std::size_t{4096}, kXpu);
  for (const Device device : {kCpu, kMeta})
    reportMemoryUsageToProfiler(at(0x4000), std::int64_t{4096}, std::size_t{1}, std::size_t{2}, device);
  reportMemoryUsageToProfiler(at(0x9000), std::int64_t{-512}, std::size_t{1}, std::size_t{2}, kCuda);  // never taken
  reportMemoryUsageToProfiler(at(0x1000), std::int64_t{8192}, std::size_t{1}, std::size_t{2}, kCuda);  // taken already
  reportMemoryUsageToProfiler(at(0x2000), std::int64_t{-1024}, std::int64_t{0}, std::int64_t{0}, kHip);
  reportMemoryUsageToProfiler(nullptr, std::int64_t{0}, kCuda);
  reportOutOfMemoryToProfiler(std::int64_t{1 << 20}, std::int64_t{1}, std::int64_t{2}, kCuda);
  reportOutOfMemoryToProfiler(std::int64_t{2 << 20}, std::size_t{1}, std::size_t{2}, kCuda);
  reportOutOfMemoryToProfiler(std::size_t{3 << 20}, std::size_t{1}, std::size_t{2}, kCuda);
  reportOutOfMemoryToProfiler(std::size_t{4 << 20}, std::size_t{1}, std::size_t{2}, kCpu);
}
