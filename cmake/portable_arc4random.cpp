// For the portable build alone: libstdc++'s std::random_device, which cpp-httplib uses, asks glibc for arc4random,
// which came with glibc 2.36. Defined here, by getrandom(2), the binary runs on 2.34 as well (RHEL 9, Ubuntu 22.04).
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() {
  std::uint32_t value = 0;
  // So few bytes come whole or not at all (getrandom(2)), and every kernel since 3.17 has them.
  if (::getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
