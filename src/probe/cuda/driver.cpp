// The driver itself: opened when a program opens it, or at the first call. If `vramtrack run` found it, it is opened by
// path, because the preloaded library then has the driver's name, and any request for that name finds this library.
#include <dlfcn.h>
#include <link.h>

#include <cerrno>

#include "probe/cuda/cuda.hpp"
#include "probe/cuda/open.hpp"
#include "probe/loaded.hpp"
#include "probe/self.hpp"

namespace vramtrack::probe::cuda {
namespace {

constexpr const char* kNames[] = {
#define VRAMTRACK_CUDA_SYMBOL(name, number) #name,
#define VRAMTRACK_CUDA_SPARE(name, number)
#include "cuda_symbols.inc"
#undef VRAMTRACK_CUDA_SPARE
#undef VRAMTRACK_CUDA_SYMBOL
};
constexpr std::size_t kCount = sizeof kNames / sizeof *kNames;
constexpr std::size_t kSpares = 0
#define VRAMTRACK_CUDA_SYMBOL(name, number)
#define VRAMTRACK_CUDA_SPARE(name, number) +1
#include "cuda_symbols.inc"
#undef VRAMTRACK_CUDA_SPARE
#undef VRAMTRACK_CUDA_SYMBOL
    ;

link_map* const kMissing = reinterpret_cast<link_map*>(1);
std::atomic<link_map*> the_driver{nullptr};

CUresult lacks_it() {
  return kNotFound;
}
CUresult is_missing() {
  return kNoDevice;
}

constexpr const char* kName = "libcuda.so.1";

/// The driver's location as found by `vramtrack run`; null: it found none, and only this process may have one.
const char* configured_path() {
  const char* path = setting("VRAMTRACK_PROBE_DRIVER");
  return path != nullptr && *path == '/' ? path : nullptr;
}

void warn_missing() {
  const char* path = configured_path();
  Line<512> line;
  line.add("the CUDA driver ").add(path != nullptr ? path : kName);
  warn(line.add(" cannot be opened, so that this program finds no GPU").view());
}

/// Needs no lock of its own: the loader has one, and returns the same handle for a second request. Null: no driver.
link_map* open_driver(const char* name) {
  const char* path = configured_path();
  // A handle of glibc's loader is the object's link_map.
  auto* opened = static_cast<link_map*>(open_library(path != nullptr ? path : name));
  // A probe, whether this one or another, would call itself endlessly.
  if (opened != nullptr && symbol_of(opened->l_addr, opened->l_ld, "vramtrack_probe_mark") != nullptr) return nullptr;
  link_map* known = the_driver.load(std::memory_order_acquire);
  while (opened != nullptr && (known == nullptr || known == kMissing))
    if (the_driver.compare_exchange_weak(known, opened)) return opened;
  return known == kMissing ? nullptr : known;
}

/// The driver for a call. A missing driver is reported once.
link_map* driver_of_calls() {
  link_map* driver = the_driver.load(std::memory_order_acquire);
  if (driver == nullptr) {
    driver = open_driver(kName);
    link_map* none = nullptr;
    if (driver == nullptr && the_driver.compare_exchange_strong(none, kMissing)) warn_missing();
  }
  return driver == kMissing ? nullptr : driver;
}

}  // namespace
}  // namespace vramtrack::probe::cuda

/// The functions by number of the symbol; nullptr: not looked up yet. The trampolines read this.
extern "C" {
__attribute__((visibility("hidden"))) std::atomic<void*>
    vramtrack_cuda_functions[vramtrack::probe::cuda::kCount + vramtrack::probe::cuda::kSpares];
__attribute__((visibility("hidden"))) void* vramtrack_cuda_resolve(std::uint32_t number) {
  return vramtrack::probe::cuda::driver_function(static_cast<vramtrack::probe::cuda::Symbol>(number));
}
}

extern "C" {
/// The base address of this library; for each spare trampoline, the distance from its entry here to it.
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));  // NOLINT(bugprone-reserved-identifier)
extern const std::int32_t vramtrack_spare_offsets[] __attribute__((visibility("hidden")));
}

namespace vramtrack::probe::cuda {
namespace {

/// The name of a function; a spare one has it only in a copy of this library (src/run/driver_names.cpp).
const char* name_of(std::uint32_t number) {
  if (number < kCount) return kNames[number];
  const std::int32_t* offset = vramtrack_spare_offsets + (number - kCount);
  const char* name =
      name_at(reinterpret_cast<ElfW(Addr)>(&__ehdr_start), _DYNAMIC, reinterpret_cast<const char*>(offset) + *offset);
  return name == nullptr ? "" : name;
}

}  // namespace

void* driver_function_if_any(Symbol symbol) {
  const auto number = static_cast<std::uint32_t>(symbol);
  void* found = vramtrack_cuda_functions[number].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  const int saved_errno = errno;
  if (const link_map* driver = driver_of_calls(); driver != nullptr) {
    found = symbol_of(driver->l_addr, driver->l_ld, name_of(number));
    if (found != nullptr) vramtrack_cuda_functions[number].store(found, std::memory_order_release);
  }
  errno = saved_errno;
  return found;
}

void* driver_function(Symbol symbol) {
  if (void* found = driver_function_if_any(symbol); found != nullptr) return found;
  return reinterpret_cast<void*>(the_driver.load(std::memory_order_relaxed) == kMissing ? &is_missing : &lacks_it);
}

bool has_driver(const char* name) {
  link_map* const driver = the_driver.load(std::memory_order_acquire);
  return (driver != nullptr && driver != kMissing) || open_driver(name) != nullptr;
}

void remember_function(Symbol symbol, void* function) {
  vramtrack_cuda_functions[static_cast<std::uint32_t>(symbol)].store(function, std::memory_order_release);
}

}  // namespace vramtrack::probe::cuda
