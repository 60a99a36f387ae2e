#include "trace/own_code.hpp"

#include <algorithm>

#include "core/ascii.hpp"

namespace vramtrack::trace {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kLibraries[] = {
    // the driver and the libraries that accompany it
    "libcuda.", "libcudart.", "libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse",
    "libnvrtc", "libnvjitlink", "libnvidia", "libnccl", "libcupti", "libamdhip64", "libhsa-", "libhip", "libroc",
    "librccl", "libmiopen", "libOpenCL", "libpocl", "libvulkan", "libVk", "libvulkan_", "libze_", "libsycl",
    "libigdrcl",
    // frameworks
    "libtorch", "libc10", "libtensorflow", "libjax", "xla_extension", "libcupy", "librmm",
    // the language and the system
    "libpython", "python3", "ld-linux", "libc.so", "libc-", "libm.so", "libpthread", "libdl.", "librt.", "libgcc_s",
    "libstdc++", "libffi", "libgomp", "libiomp", "libvramtrack_", "linux-vdso", "[vdso]", "_C.cpython", "libshm."};
constexpr std::string_view kSystemFolders[] = {"/usr/lib",     "/lib/",          "/lib64/",
                                               "/usr/include", "/usr/local/lib", "/usr/local/cuda",
                                               "/opt/",        "/usr/libexec",   "/usr/src/"};

bool begins_with_any(std::string_view path, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [path](const std::string& prefix) { return !prefix.empty() && path.starts_with(prefix); });
}

bool is_packaged(std::string_view path) {
  return path.find("/site-packages/") != std::string_view::npos ||
         path.find("/dist-packages/") != std::string_view::npos;
}

/// Whether it is like /usr/lib/python3.11/runpy.py, or lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so of an
/// interpreter in any place.
bool is_of_standard_library(std::string_view path) {
  return path.find("/lib/python3"sv) != std::string_view::npos ||
         path.find("/lib64/python3"sv) != std::string_view::npos;
}

/// The interpreter's own sources, at the path where it was built:
/// /tmp/python-build/Python-3.11.7/Modules/_ctypes/callproc.c
bool is_interpreters_source(std::string_view file) {
  return file.find("/Python-3."sv) != std::string_view::npos || file.find("/cpython/"sv) != std::string_view::npos;
}

bool is_in_system_folder(std::string_view path) {
  return std::any_of(std::begin(kSystemFolders), std::end(kSystemFolders),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

/// Whether the name is not that of a shared library: a program that a person installed or was given to run.
bool is_program(std::string_view module) {
  const std::string_view name = base_name(module);
  return !name.ends_with(".so") && name.find(".so."sv) == std::string_view::npos;
}

/// Programs are installed in /opt, and many images build in /usr/src, so only headers there belong to a library.
bool is_header_of_library(std::string_view file) {
  if (file.starts_with("/opt/"sv) || file.starts_with("/usr/src/"sv))
    return file.find("/include/"sv) != std::string_view::npos;
  return is_in_system_folder(file);
}

}  // namespace

bool is_cpython(std::string_view module) {
  return is_interpreter(module) || (is_of_standard_library(module) && !is_packaged(module));
}

bool OwnCode::is_own_python(std::string_view file) const {
  if (begins_with_any(file, own_)) return true;
  if (begins_with_any(file, libraries_)) return false;
  if (file.empty() || is_packaged(file) || file.starts_with("<frozen"sv)) return false;
  if (file.starts_with("<__array_function__"sv) || file.starts_with("<eval_with_key>"sv)) return false;
  return !is_of_standard_library(file);
}

bool OwnCode::is_own_native(std::string_view module, std::string_view file) const {
  if (begins_with_any(module, own_) || begins_with_any(file, own_)) return true;
  if (begins_with_any(module, libraries_) || begins_with_any(file, libraries_)) return false;
  if (module.empty() || is_packaged(module) || is_interpreter(module)) return false;
  if (is_of_standard_library(module) || is_interpreters_source(file)) return false;
  const std::string_view name = base_name(module);
  if (std::any_of(std::begin(kLibraries), std::end(kLibraries),
                  [name](std::string_view library) { return name.starts_with(library); }))
    return false;
  if (is_program(module)) return !is_header_of_library(file);
  return !is_in_system_folder(module) && !is_in_system_folder(file);
}

}  // namespace vramtrack::trace
