// Any bytes as configuration file and as --set: an error or a valid Config, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/settings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LayeredConfig layers;
  const Status file = layers.apply_file(text, "fuzz.toml");
  const Status assignment = layers.apply_assignment(text, "--set");
  if (!file && file.error().message.empty()) std::abort();
  if (!assignment && assignment.error().message.empty()) std::abort();
  // Whatever was taken is in range and can be written and read again.
  for (const Setting& setting : settings())
    if (!LayeredConfig().apply(setting, setting.get(layers.config()), "again")) std::abort();
  return 0;
}
