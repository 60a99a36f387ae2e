// Limits that others have written into files of the kernel and into environments: any bytes give limits that are above
// zero and below the largest memory there is, or none.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "host/host_memory.hpp"
#include "host/walls.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50U;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto& [region, limit] : parse_dmem(bytes))
    if (region.find('\n') != std::string::npos) std::abort();
  if (const auto limits = parse_mps_limits(bytes))
    for (const auto& [device, limit] : *limits)
      if (device > 4095 || limit == 0 || limit > kMost) std::abort();
  if (const auto limit = parse_hami_limit(bytes); limit && (*limit == 0 || *limit > kMost)) std::abort();
  if (const auto fraction = parse_torch_fraction(bytes); fraction && !(*fraction > 0 && *fraction <= 1)) std::abort();
  if (const auto memory = parse_meminfo(bytes); memory && memory->available_bytes > memory->total_bytes) std::abort();
  return 0;
}
