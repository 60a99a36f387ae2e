#include "host/privilege.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>

namespace vramtrack {

bool may_read_others() {
  if (::geteuid() == 0) return true;
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("CapEff:\t")) continue;
    std::uint64_t effective = 0;
    std::from_chars(line.data() + 8, line.data() + line.size(), effective, 16);
    return ((effective >> CAP_SYS_PTRACE) & 1U) != 0;
  }
  return false;
}

void keep_capabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

}  // namespace vramtrack
