// libprobe_call.so: the probe with one hooked call that any program can make, for tests of what the probe records of
// it.
#include <cstdint>

#include "probe/recorder.hpp"
#include "probe/stacks.hpp"

using namespace vramtrack::probe;

extern "C" {
/// "Allocates" `bytes` at `address`.
__attribute__((visibility("default"))) void probe_call(std::uint64_t address, std::uint64_t bytes) {
  took_block(Call::torch_block, 0, address, bytes);
}
__attribute__((visibility("default"))) void probe_free(std::uint64_t address) {
  gave_back(Level::block, address);
}
/// The number of a stack of `callback`'s callers, `times` times.
__attribute__((visibility("default"))) std::uint32_t probe_capture(std::uint32_t times, int with_native) {
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < times; ++i) number = capture_stack(with_native != 0);
  return number;
}
__attribute__((visibility("default"))) int probe_is_recording() {
  return is_recording() ? 1 : 0;
}
}
