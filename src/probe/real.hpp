// The function that a hook replaces: the library's own, found in the list of loaded objects.
//
// dlsym(RTLD_NEXT) finds nothing in a library that was loaded only for its caller, as when Python loads modules with
// the libOpenCL of their wheel. It may also allocate, and its version in the C library is newer than 2.17. So the
// tables of the loaded objects are read here.
#pragma once

#include <atomic>
#include <cstdint>

namespace vramtrack::probe {

/// The function in an object with `library` in its file name, else in any other that exports `symbol`; never in the
/// probe itself. nullptr if there is none. Takes the loader's list lock, as a C++ exception does. Some microseconds.
void* find_function(const char* library, const char* symbol);
/// The probe's own export with that name; nullptr if there is none.
void* find_own_function(const char* symbol);
/// Number of objects unloaded so far; if it has changed, earlier results may be invalid.
std::uint64_t unloaded_objects();

/// One function of a library, looked up at its first use and again after anything was unloaded. Any thread; constant
/// initialisation; some 50 ns per use.
template <class Function>
class Real {
 public:
  constexpr Real(const char* library, const char* symbol) : library_(library), symbol_(symbol) {}
  /// nullptr if the library is not loaded, or older than the function.
  Function* get() {
    const std::uint64_t now = unloaded_objects() + 1;
    if (found_at_.load(std::memory_order_acquire) != now) {
      function_.store(find_function(library_, symbol_), std::memory_order_relaxed);
      if (function_.load(std::memory_order_relaxed) != nullptr) found_at_.store(now, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(function_.load(std::memory_order_relaxed));
  }

 private:
  const char* library_;
  const char* symbol_;
  std::atomic<void*> function_{nullptr};
  std::atomic<std::uint64_t> found_at_{0};
};

}  // namespace vramtrack::probe
