// cuGetProcAddress: calls the driver first, so that the program sees its status, its versions and its errors; then
// replaces a hooked function by its hook. To identify the form of a name that it returned, the driver is also queried
// for the form that the hook replaces, and only the same answer is replaced. A newer form of a name, which may have
// other arguments, is passed on unchanged.
#include "probe/cuda/cuda.hpp"
#include "probe/cuda/forms.hpp"

using namespace vramtrack::probe::cuda;

VRAMTRACK_CUDA_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags);
VRAMTRACK_CUDA_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                                                   int* status);

// The hooks as addresses, regardless of their types.
#define VRAMTRACK_CUDA_HOOK(name, version, is_per_thread, symbol) extern "C" char hook_of_##symbol[] __asm__(#symbol);
#include "probe/cuda/hooks.def"
#undef VRAMTRACK_CUDA_HOOK

namespace {

constexpr Form kForms[] = {
#define VRAMTRACK_CUDA_HOOK(name, version, is_per_thread, symbol) {#name, version, is_per_thread != 0},
#include "probe/cuda/hooks.def"
#undef VRAMTRACK_CUDA_HOOK
};
constexpr std::size_t kCount = sizeof kForms / sizeof *kForms;
char* const kHooks[] = {
#define VRAMTRACK_CUDA_HOOK(name, version, is_per_thread, symbol) hook_of_##symbol,
#include "probe/cuda/hooks.def"
#undef VRAMTRACK_CUDA_HOOK
};
constexpr Symbol kSymbols[] = {
#define VRAMTRACK_CUDA_HOOK(name, version, is_per_thread, symbol) Symbol::symbol,
#include "probe/cuda/hooks.def"
#undef VRAMTRACK_CUDA_HOOK
};

/// The driver's function for each form; nullptr: not queried yet, or none.
std::atomic<void*> answers[kCount];

void* answer(std::size_t form) {
  void* known = answers[form].load(std::memory_order_relaxed);
  if (known != nullptr) return known;
  const Form& wanted = kForms[form];
  const std::uint64_t flags = wanted.is_per_thread ? kPerThreadStream : 0;
  CUresult code = kNotFound;
  if (auto* newer = REAL_IF_ANY(cuGetProcAddress_v2); newer != nullptr)
    code = newer(wanted.name, &known, wanted.version, flags, nullptr);
  else
    code = REAL(cuGetProcAddress)(wanted.name, &known, wanted.version, flags);
  if (code != kSuccess) return nullptr;
  answers[form].store(known, std::memory_order_relaxed);
  return known;
}

void exchange(const char* name, void** function, int version, std::uint64_t flags) {
  if (name == nullptr || function == nullptr || *function == nullptr) return;
  const std::size_t form =
      form_of(kForms, kCount, name, version, flags, [&](std::size_t i) { return answer(i) == *function; });
  if (form == kCount) return;
  // A driver that looks itself up through an interposed dlopen finds this library: calling it would never end.
  if (*function == kHooks[form]) return;
  // The hook calls the function that the program requested. A driver need not export everything its resolver knows.
  remember_function(kSymbols[form], *function);
  *function = kHooks[form];
}

}  // namespace

VRAMTRACK_CUDA_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  const CUresult code = REAL(cuGetProcAddress)(name, function, version, flags);
  if (code == kSuccess) exchange(name, function, version, flags);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                                                   int* status) {
  const CUresult code = REAL(cuGetProcAddress_v2)(name, function, version, flags, status);
  if (code == kSuccess) exchange(name, function, version, flags);
  return code;
}
