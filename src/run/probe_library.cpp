#include "run/probe_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/option.hpp"
#include "run/library_folder.hpp"

namespace vramtrack::run {
namespace {

namespace fs = std::filesystem;

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Finds the driver as the loader does for a program: LD_LIBRARY_PATH, then its cache. Under another run, this finds
/// that run's probe, which received the driver's location.
std::string find_cuda_driver() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return {};
  link_map* map = nullptr;
  std::string path;
  std::error_code error;
  if (::dlsym(driver, "vramtrack_probe_mark") != nullptr)
    path = value_of("VRAMTRACK_PROBE_DRIVER");
  else if (::dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr)
    path = fs::canonical(map->l_name, error).string();
  ::dlclose(driver);
  return path;
}

std::vector<fs::path> directories(const std::string& folder) {
  if (!folder.empty()) return {folder};
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {binary / "probe", binary / ".." / "lib" / "vramtrack", "/usr/lib/vramtrack"};
}

/// The folder of the manifest that names this library: next to it, or in `cuda` next to it.
std::string vulkan_layer_folder(const std::string& library) {
  const fs::path path(library);
  return (path.stem() == "libvramtrack_probe" ? path.parent_path() : path.parent_path() / "cuda").string();
}

/// "first:rest" without empty entries in the rest, which would mean the current folder, and without those of another
/// run's probe, because the inner one of two runs records.
std::string before(const std::string& first, const std::string& rest, const char* separators = ":") {
  std::string all = first;
  for (std::size_t begin = 0; begin < rest.size();) {
    const std::size_t end = std::min(rest.find_first_of(separators, begin), rest.size());
    const std::string entry = rest.substr(begin, end - begin);
    if (!entry.empty() && entry != first && !fs::path(entry).filename().string().starts_with("libvramtrack_probe"))
      all += ':' + entry;
    begin = end + 1;
  }
  return all;
}

}  // namespace

Result<ProbeLibrary> find_probe(const std::string& folder) {
  ProbeLibrary found;
  found.cuda_driver = find_cuda_driver();
  const std::string name = found.cuda_driver.empty() ? "libvramtrack_probe.so" : "libvramtrack_probe_cuda.so";
  std::string searched;
  for (const fs::path& directory : directories(folder)) {
    std::error_code error;
    const fs::path path = fs::canonical(directory / name, error);
    if (!error) {
      found.path = path.string();
      return found;
    }
    searched += (searched.empty() ? "" : ", ") + directory.lexically_normal().string();
  }
  return fail(
      fmt::format("{} was found in none of {}; name its folder with {}", name, searched, name_of(Option::probe)));
}

Result<ProbeLibrary> preloadable(ProbeLibrary library, const std::vector<std::string>& directories) {
  if (can_be_preloaded(library.path)) return library;
  const auto directory = usable_library_folder(directories);
  auto path = directory ? link_library(library.path, *directory) : Result<std::string>(fail(directory.error()));
  if (!path)
    return fail(fmt::format(
        "{} cannot be loaded into a program: its path contains a space, a colon or '$', which LD_PRELOAD cannot hold, "
        "and there is no folder for a link to it ({}); set XDG_CACHE_HOME or TMPDIR to a folder of yours",
        library.path, path.error().message));
  library.path = std::move(*path);
  return library;
}

std::vector<Variable> probe_environment(const ProbeLibrary& library, const std::string& ring_folder,
                                        const Limits& limits, bool exact) {
  std::vector<Variable> changes = {{"LD_PRELOAD", before(library.path, value_of("LD_PRELOAD"), ": ")},
                                   {"VRAMTRACK_PROBE_DIR", ring_folder}};
  changes.push_back({"OPENCL_LAYERS", before(library.path, value_of("OPENCL_LAYERS"))});
  changes.push_back({"VRAMTRACK_PROBE_VULKAN", "1"});
  changes.push_back({"VK_INSTANCE_LAYERS", before("VK_LAYER_VRAMTRACK_probe", value_of("VK_INSTANCE_LAYERS"))});
  // Vulkan's loader ignores VK_ADD_LAYER_PATH if VK_LAYER_PATH is set.
  const char* layer_path = value_of("VK_LAYER_PATH").empty() ? "VK_ADD_LAYER_PATH" : "VK_LAYER_PATH";
  changes.push_back({layer_path, before(vulkan_layer_folder(library.path), value_of(layer_path))});
  // A program built with AddressSanitizer requires that no library is loaded before its own, but the probe replaces
  // nothing of it. The user's setting follows, and takes precedence.
  changes.push_back({"ASAN_OPTIONS", before("verify_asan_link_order=0", value_of("ASAN_OPTIONS"))});
  if (!library.cuda_driver.empty()) changes.push_back({"VRAMTRACK_PROBE_DRIVER", library.cuda_driver});
  if (limits.limit_bytes > 0) changes.push_back({"VRAMTRACK_PROBE_LIMIT_BYTES", std::to_string(limits.limit_bytes)});
  if (limits.soft_limit_bytes > 0)
    changes.push_back({"VRAMTRACK_PROBE_SOFT_LIMIT_BYTES", std::to_string(limits.soft_limit_bytes)});
  if (exact) {
    changes.push_back({"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"});
    changes.push_back({"PYTORCH_NO_HIP_MEMORY_CACHING", "1"});
    changes.push_back({"TF_GPU_ALLOCATOR", "cuda_malloc_async"});
    changes.push_back({"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"});
    changes.push_back({"XLA_PYTHON_CLIENT_PREALLOCATE", "false"});
  }
  return changes;
}

}  // namespace vramtrack::run
