// Functions that a program under the probe may call itself. It looks them up by name and never links them.
#include <cstdint>
#include <string_view>

#include "probe/labels.hpp"
#include "probe/recorder.hpp"

extern "C" {

/// Names this moment in the trace: the end of a step, an epoch, a request. Only the first 200 bytes of `name` are used.
__attribute__((visibility("default"))) void vramtrack_probe_mark(const char* name) {
  if (name == nullptr) return;
  vramtrack::probe::record_mark(std::string_view(name).substr(0, 200));
}

/// Describes the live block at `address`: a category of src/trace/category_name.hpp ("weights"), and an optional name
/// ("Net.layers.3.weight") or null; at most 200 bytes of each. Valid until the block is freed.
__attribute__((visibility("default"))) void vramtrack_probe_label(std::uint64_t address, const char* category,
                                                                  const char* name) {
  if (category == nullptr) return;
  vramtrack::probe::record_label(address, std::string_view(category).substr(0, 200),
                                 name == nullptr ? std::string_view() : std::string_view(name).substr(0, 200));
}

}  // extern "C"
