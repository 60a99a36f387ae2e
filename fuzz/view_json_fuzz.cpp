// Any bytes as a View in JSON: read without fault, and what is read is written and read the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "report/view_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto view = vramtrack::parse_view_json({reinterpret_cast<const char*>(data), size});
  if (!view) return 0;
  const std::string text = vramtrack::view_json(*view);
  const auto again = vramtrack::parse_view_json(text);
  if (!again || vramtrack::view_json(*again) != text) std::abort();
  return 0;
}
