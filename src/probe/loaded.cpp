#include "probe/loaded.hpp"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "probe/recorder.hpp"

namespace vramtrack::probe {
namespace {

/// The tables required for a lookup by name.
struct Symbols {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* sysv_hash = nullptr;
  const ElfW(Half) * versions = nullptr;
};

/// The loader has turned most addresses in a dynamic section into pointers, but not those of the vdso.
template <class T>
const T* pointer(ElfW(Addr) base, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < base ? base + value : value);  // NOLINT(performance-no-int-to-ptr)
}

Symbols symbols_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic) {
  Symbols found;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) switch (dynamic->d_tag) {
      case DT_SYMTAB:
        found.symbols = pointer<ElfW(Sym)>(base, dynamic->d_un.d_ptr);
        break;
      case DT_STRTAB:
        found.names = pointer<char>(base, dynamic->d_un.d_ptr);
        break;
      case DT_GNU_HASH:
        found.gnu_hash = pointer<std::uint32_t>(base, dynamic->d_un.d_ptr);
        break;
      case DT_HASH:
        found.sysv_hash = pointer<std::uint32_t>(base, dynamic->d_un.d_ptr);
        break;
      case DT_VERSYM:
        found.versions = pointer<ElfW(Half)>(base, dynamic->d_un.d_ptr);
        break;
      default:
        break;
    }
  return found;
}

void* defined(ElfW(Addr) base, const Symbols& in, std::uint32_t index, const char* name) {
  constexpr ElfW(Half) kNotDefault = 0x8000;
  const ElfW(Sym)& symbol = in.symbols[index];
  const unsigned type = symbol.st_info & 0xfU;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || (type != STT_FUNC && type != STT_GNU_IFUNC))
    return nullptr;
  if (in.versions != nullptr && (in.versions[index] & kNotDefault) != 0) return nullptr;
  if (std::strcmp(in.names + symbol.st_name, name) != 0) return nullptr;
  auto* function = reinterpret_cast<void*>(base + symbol.st_value);  // NOLINT(performance-no-int-to-ptr)
  return type == STT_GNU_IFUNC ? reinterpret_cast<void* (*)()>(function)() : function;
}

void* by_gnu_hash(ElfW(Addr) base, const Symbols& in, const char* name) {
  std::uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  const std::uint32_t buckets = in.gnu_hash[0], first = in.gnu_hash[1], bloom_words = in.gnu_hash[2];
  if (buckets == 0) return nullptr;
  const std::uint32_t* bucket = in.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const std::uint32_t of_symbol = chain[index - first];
    if ((of_symbol | 1U) == (hash | 1U))
      if (void* found = defined(base, in, index, name); found != nullptr) return found;
    if ((of_symbol & 1U) != 0) return nullptr;
  }
}

void* by_sysv_hash(ElfW(Addr) base, const Symbols& in, const char* name) {
  std::uint32_t hash = 0;
  for (const char* c = name; *c != '\0'; ++c) {
    hash = (hash << 4U) + static_cast<unsigned char>(*c);
    hash = (hash ^ (hash >> 24U & 0xf0U)) & 0x0fffffffU;
  }
  const std::uint32_t buckets = in.sysv_hash[0];
  if (buckets == 0) return nullptr;
  const std::uint32_t* chain = in.sysv_hash + 2 + buckets;
  for (std::uint32_t index = in.sysv_hash[2 + hash % buckets]; index != 0; index = chain[index])
    if (void* found = defined(base, in, index, name); found != nullptr) return found;
  return nullptr;
}

std::atomic<int> readers{0};
std::atomic<int> forks{0};  ///< forks in progress
/// The wait is bounded because another library's fork handler may wait for a thread that waits here.
constexpr std::int64_t kMostForkWaitsNs = 500'000'000;
constexpr std::int64_t kMostReaderWaitsNs = 1'000'000'000;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

ReadingList::ReadingList() {
  watch_forks();
  std::int64_t begin_ns = 0;
  for (;;) {
    readers.fetch_add(1);
    if (forks.load() == 0) return;
    const std::int64_t now_ns = monotonic_ns();
    if (begin_ns == 0) begin_ns = now_ns;
    if (now_ns - begin_ns > kMostReaderWaitsNs) return;
    readers.fetch_sub(1);
    sched_yield();
  }
}
ReadingList::~ReadingList() {
  readers.fetch_sub(1);
}

void hold_list_before_fork() {
  forks.fetch_add(1);
  const std::int64_t begin_ns = monotonic_ns();
  while (readers.load() > 0 && monotonic_ns() - begin_ns < kMostForkWaitsNs) sched_yield();
}
void release_list_in_parent() {
  forks.fetch_sub(1);
}
void release_list_in_child() {
  forks.store(0);
  readers.store(0);
}

std::string_view file_name(const char* path) {
  if (path == nullptr) return {};
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool holds(const dl_phdr_info& object, const void* address) {
  const auto at = reinterpret_cast<ElfW(Addr)>(address);
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && at - object.dlpi_addr - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

void* symbol_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name) {
  const Symbols in = symbols_of(base, dynamic);
  if (in.symbols == nullptr || in.names == nullptr) return nullptr;
  if (in.gnu_hash != nullptr) return by_gnu_hash(base, in, name);
  return in.sysv_hash != nullptr ? by_sysv_hash(base, in, name) : nullptr;
}

const char* name_at(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const void* address) {
  const Symbols in = symbols_of(base, dynamic);
  if (in.symbols == nullptr || in.names == nullptr || in.sysv_hash == nullptr) return nullptr;
  for (std::uint32_t i = 1; i < in.sysv_hash[1]; ++i)
    if (const ElfW(Sym)& symbol = in.symbols[i];
        symbol.st_shndx != SHN_UNDEF && base + symbol.st_value == reinterpret_cast<ElfW(Addr)>(address))
      return in.names + symbol.st_name;
  return nullptr;
}

void* symbol_of(const dl_phdr_info& object, const char* name) {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i)
    if (const ElfW(Phdr)& part = object.dlpi_phdr[i]; part.p_type == PT_DYNAMIC)
      return symbol_of(object.dlpi_addr, pointer<ElfW(Dyn)>(0, object.dlpi_addr + part.p_vaddr), name);
  return nullptr;
}

const char* own_path() {
  const char* path = nullptr;  // lives as long as this library
  each_object([&](const dl_phdr_info& object) {
    if (!holds(object, reinterpret_cast<const void*>(&own_path))) return false;
    path = object.dlpi_name;
    return true;
  });
  return path;
}

bool lies_in_library(const void* address, std::string_view file_name_begins) {
  bool found = false;
  each_object([&](const dl_phdr_info& object) {
    if (!holds(object, address)) return false;
    found = !holds(object, reinterpret_cast<const void*>(&lies_in_library)) &&
            file_name(object.dlpi_name).starts_with(file_name_begins);
    return true;
  });
  return found;
}

}  // namespace vramtrack::probe
