// Fuzzes what is read of the host's memory: records of the kernel's log, counters of cgroups, a process's status.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/host_memory.hpp"
#include "host/oom_kills.hpp"
#include "host/small_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  vramtrack::OomKillReader reader;
  for (std::string_view rest = text; !rest.empty();) {
    const auto kill = reader.record(vramtrack::next_line(rest));
    if (kill && kill->pid == 0) __builtin_trap();
  }
  vramtrack::parse_memory_events(text);
  vramtrack::parse_process_memory(text);
  vramtrack::parse_meminfo(text);
  return 0;
}
