#include "source/nvml_check.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

#include "host/privilege.hpp"
#include "source/nvml_library.hpp"
#include "source/nvml_units.hpp"

namespace vramtrack {
namespace {

/// The file that `handle` was loaded from, with links resolved.
std::string file_of(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return {};
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
  return error ? std::string(map->l_name) : real.string();
}

template <class Function>
Function find(void* handle, const char* name, const char* older) {
  void* symbol = ::dlsym(handle, name);
  if (symbol == nullptr) symbol = ::dlsym(handle, older);
  return reinterpret_cast<Function>(symbol);
}

void ask_gpus(const std::string& path, NvmlCheck& check) {
  auto library = nvml::NvmlLibrary::open(path);
  if (!library) {
    check.works = false;
    check.reason = library.error().message;
    return;
  }
  const auto count = (*library)->device_count();
  for (unsigned index = 0; count && index < count.value; ++index) {
    const auto handle = (*library)->device_by_index(index);
    const auto uuid = handle ? (*library)->uuid(handle.value) : nvml::Answer<std::string>{handle.code, {}};
    if (!uuid) check.silent.push_back({index, nvml::is_gpu_gone(uuid.code), nvml::describe(uuid.code)});
  }
}

}  // namespace

NvmlCheck check_nvml(const SourcesConfig& config) {
  NvmlCheck check;
  const std::string path = config.nvml_library.empty() ? "libnvidia-ml.so.1" : config.nvml_library;
  if (const auto trusted = trusted_library(path); !trusted) {
    check.reason = trusted.error().message;
    return check;
  }
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = ::dlerror();
    check.reason = reason != nullptr ? reason : path;
    return check;
  }
  check.is_found = true;
  check.path = file_of(handle);
  check.library_version = version_of_library(check.path);
  using Call = int (*)();
  const auto init = find<Call>(handle, "nvmlInit_v2", "nvmlInit");
  const auto shutdown = find<Call>(handle, "nvmlShutdown", "nvmlShutdown");
  if (init == nullptr || shutdown == nullptr) {
    check.reason = path + " is not NVIDIA's library";
  } else if (const int code = init(); code != nvml::kSuccess) {
    check.is_mismatched = code == nvml::kLibRmVersionMismatch;
    check.reason = "NVML does not start: " + nvml::describe(code);
  } else {
    check.works = true;
    ask_gpus(path, check);
    shutdown();
  }
  ::dlclose(handle);
  return check;
}

std::string version_of_library(const std::string& path) {
  constexpr std::string_view kMark = ".so.";
  const std::size_t at = path.rfind(kMark);
  if (at == std::string::npos) return {};
  const std::string version = path.substr(at + kMark.size());
  const bool is_version = version.find('.') != std::string::npos &&
                          version.find_first_not_of("0123456789.") == std::string::npos && version.front() != '.';
  return is_version ? version : std::string();
}

}  // namespace vramtrack
