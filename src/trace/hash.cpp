#include "trace/hash.hpp"

#include <sys/random.h>

namespace vramtrack::trace {

std::uint64_t hash_seed() {
  static const std::uint64_t odd = [] {
    std::uint64_t random = 0x2545f4914f6cdd1dULL;
    // Without the system's randomness, a crafted file could be slow to read, which is no reason to refuse it.
    [[maybe_unused]] const ssize_t got = ::getrandom(&random, sizeof random, GRND_NONBLOCK);
    return random | 1U;
  }();
  return odd;
}

}  // namespace vramtrack::trace
