// Any bytes as a kernel log, as one record of /dev/kmsg and as /proc/driver/nvidia/version: they are read without
// fault, every text that is kept is short, and a message is counted once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "health/kernel_log.hpp"

namespace {

using namespace vramtrack;

void check(const DriverLogReader& reader, std::uint64_t most) {
  std::uint64_t messages = 0;
  for (const DriverEvent& event : reader.events()) {
    messages += event.count;
    const bool is_short = event.text.size() <= 256 && event.process.size() <= 64 && event.client_version.size() <= 32 &&
                          event.module_version.size() <= 32 && event.pci_address.size() <= 14;
    if (!is_short || event.count == 0) std::abort();
  }
  if (messages > most || reader.events().size() > 1024) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::uint64_t lines = 1;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  DriverLogReader log;
  log.lines(text);
  check(log, lines);
  DriverLogReader kmsg;
  kmsg.kmsg_record(text);
  check(kmsg, size + 1);
  if (module_version_of(text).size() > 32) std::abort();
  return 0;
}
