// Any bytes as a compiled time zone: an error or a zone that answers at every time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/tzif.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto zone = vramtrack::TimeZone::parse({reinterpret_cast<const char*>(data), size});
  if (!zone) return 0;
  for (std::int64_t second = -3'000'000'000; second < 9'000'000'000; second += 777'777'777) {
    const auto span = zone->at(second);
    if (second < span.begin_s || second >= span.end_s) std::abort();
  }
  return 0;
}
