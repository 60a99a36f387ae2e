// What the test programs share: the driver's calls, by linking or by asking as the CUDA runtime does, and a look at
// what the probe counts.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "probe/wire.hpp"

using Address = unsigned long long;
struct Properties {
  int type, handle_types, location_type, location;
  char rest[72];
};
struct Multicast {
  unsigned devices;
  std::size_t bytes;
  unsigned long long kinds, flags;
};
struct Flat {
  std::size_t width, height;
  int format;
  unsigned channels;
};
struct Deep {
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
struct Ipc {
  char reserved[64];
};
struct External {
  int kind;
  void* handle[2];
  unsigned long long bytes;
  unsigned flags;
};
struct Node {
  Properties pool;
  const void* access;
  std::size_t access_count, bytes;
  Address address;
};

/// The driver's calls, by their names without version.
namespace driver {
#ifdef LINKED
#define CALL(name, version, symbol, arguments)  \
  int linked_##name arguments __asm__(#symbol); \
  inline int(*name) arguments = &linked_##name;
#else
#define CALL(name, version, symbol, arguments) inline int(*name) arguments = nullptr;
#endif
#include "calls.def"
#undef CALL
}  // namespace driver
using namespace driver;

#ifdef LINKED
inline void find_driver(bool) {}
#else
/// As the CUDA runtime does it.
inline void find_driver(bool per_thread) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == nullptr) std::exit(3);
  using Resolver = int (*)(const char*, void**, int, std::uint64_t, int*);
  const auto resolver = reinterpret_cast<Resolver>(dlsym(library, "cuGetProcAddress_v2"));
  int status = -1;
  const std::uint64_t flags = per_thread ? 2 : 0;
#define CALL(name, version, symbol, arguments)                                                         \
  if (resolver(#name, reinterpret_cast<void**>(&name), version, flags, &status) != 0 || status != 0) { \
    std::fprintf(stderr, "%s was not found\n", #name);                                                 \
    std::exit(3);                                                                                      \
  }
#include "calls.def"
#undef CALL
}
#endif

inline constexpr std::size_t kMib = 1U << 20U;
inline int mismatches = 0;

/// The ring of this process; null: it has none (yet).
inline vramtrack::probe::RingHeader* ring_of_this_process() {
  const char* folder = std::getenv("VRAMTRACK_PROBE_DIR");
  if (folder == nullptr) return nullptr;
  const int file = open((std::string(folder) + "/ring." + std::to_string(getpid()) + ".1").c_str(), O_RDWR);
  if (file < 0) return nullptr;
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<vramtrack::probe::RingHeader*>(mapped);
}

/// One line of what the program sees: with and without the probe it must be the same.
inline int saw(const char* what, int code) {
  std::printf("%s: %d\n", what, code);
  std::fflush(stdout);
  return code;
}

/// What the probe says that a device holds must be what the program knows that it holds.
inline void holds(const char* when, std::size_t bytes, int device = 0) {
  const auto* header = ring_of_this_process();
  if (header == nullptr) return;
  const auto held = header->held[static_cast<std::size_t>(device)].driver.load();
  if (held == static_cast<std::int64_t>(bytes)) return;
  std::fprintf(stderr, "%s: the probe counts %lld bytes on device %d, and the program holds %zu\n", when,
               static_cast<long long>(held), device, bytes);
  ++mismatches;
}
