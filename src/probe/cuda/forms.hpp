// Selects the hook for a function that the driver's resolver found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::probe::cuda {

/// Flag of the driver's resolver: functions that use the thread's default stream.
inline constexpr std::uint64_t kPerThreadStream = 2;

/// One form of a hooked call (hooks.def).
struct Form {
  const char* name;
  int version;  ///< the version of CUDA that introduced it
  bool is_per_thread;
};

/// The newest of `count` forms of that name that is available to a program for CUDA `version` and that, according to
/// is_it(index), the driver returned. Returns `count` if there is none; the driver's own answer then remains. A
/// per-thread-stream form takes precedence if it was requested.
template <class IsIt>
std::size_t form_of(const Form* forms, std::size_t count, const char* name, int version, std::uint64_t flags,
                    IsIt is_it);

inline bool same_name(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

template <class IsIt>
std::size_t form_of(const Form* forms, std::size_t count, const char* name, int version, std::uint64_t flags,
                    IsIt is_it) {
  std::size_t best = count;
  for (std::size_t i = 0; i < count; ++i) {
    const Form& form = forms[i];
    if (form.version > version || !same_name(form.name, name)) continue;
    if (form.is_per_thread && (flags & kPerThreadStream) == 0) continue;
    if (!is_it(i)) continue;
    if (best == count || form.is_per_thread > forms[best].is_per_thread ||
        (form.is_per_thread == forms[best].is_per_thread && form.version >= forms[best].version))
      best = i;
  }
  return best;
}

}  // namespace vramtrack::probe::cuda
