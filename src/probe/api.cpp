// What a program may call by itself, where it runs under the probe: looked up by name, never linked.
#include <cstdint>
#include <string_view>

#include "probe/labels.hpp"
#include "probe/recorder.hpp"

extern "C" {

/// Names this moment in the trace: the end of a step, an epoch, a request. `name` is at most 200 bytes of it.
__attribute__((visibility("default"))) void vramtrack_probe_mark(const char* name) {
  if (name == nullptr) return;
  vramtrack::probe::tell_mark(std::string_view(name).substr(0, 200));
}

/// Says what the live block at `address` is: a category of src/trace/category_name.hpp ("weights"), and a name of its
/// own or null ("Net.layers.3.weight"); at most 200 bytes of each. It holds until the block is given back.
__attribute__((visibility("default"))) void vramtrack_probe_label(std::uint64_t address, const char* category,
                                                                  const char* name) {
  if (category == nullptr) return;
  vramtrack::probe::tell_label(address, std::string_view(category).substr(0, 200),
                               name == nullptr ? std::string_view() : std::string_view(name).substr(0, 200));
}

}  // extern "C"
