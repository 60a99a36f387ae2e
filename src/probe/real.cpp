#include "probe/real.hpp"

#include <link.h>

#include <cstddef>
#include <cstring>

#include "probe/loaded.hpp"

namespace vramtrack::probe {
namespace {

int count(dl_phdr_info* object, std::size_t bytes, void* into) {
  if (bytes >= offsetof(dl_phdr_info, dlpi_subs) + sizeof object->dlpi_subs)
    *static_cast<std::uint64_t*>(into) = object->dlpi_subs;
  return 1;
}

}  // namespace

void* find_function(const char* library, const char* symbol) {
  void *named = nullptr, *other = nullptr;
  each_object([&](const dl_phdr_info& object) {
    const bool is_named = object.dlpi_name != nullptr && std::strchr(object.dlpi_name, '/') != nullptr &&
                          std::strstr(file_name(object.dlpi_name).data(), library) != nullptr;
    if ((!is_named && other != nullptr) || holds(object, reinterpret_cast<const void*>(&find_function))) return false;
    if (void* function = symbol_of(object, symbol); function != nullptr) (is_named ? named : other) = function;
    return named != nullptr;
  });
  return named != nullptr ? named : other;
}

void* find_own_function(const char* symbol) {
  void* function = nullptr;
  each_object([&](const dl_phdr_info& object) {
    const bool is_ours = holds(object, reinterpret_cast<const void*>(&find_function));
    if (is_ours) function = symbol_of(object, symbol);
    return is_ours;
  });
  return function;
}

std::uint64_t unloaded_objects() {
  const ReadingList reading;
  std::uint64_t unloaded = 0;
  dl_iterate_phdr(count, &unloaded);
  return unloaded;
}

}  // namespace vramtrack::probe
