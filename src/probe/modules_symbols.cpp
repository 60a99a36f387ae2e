#include <elf.h>

#include <cstring>

#include "probe/modules.hpp"

namespace vramtrack::probe {
namespace {

struct Tables {
  std::uint64_t symbols = 0;
  std::uint64_t strings = 0;
  std::uint64_t gnu_hash = 0;
  std::uint64_t hash = 0;
};

/// glibc makes the addresses in the dynamic section absolute; other loaders do not, nor does the vDSO.
std::uint64_t absolute(const Module& module, std::uint64_t address) {
  return address >= module.bias ? address : address + module.bias;
}

bool is_symbol(const Tables& tables, std::uint32_t index, std::string_view name, Elf64_Sym& into) {
  char text[64];
  return read_memory(tables.symbols + index * sizeof(Elf64_Sym), &into, sizeof into) && into.st_shndx != SHN_UNDEF &&
         name.size() < sizeof text && read_memory(tables.strings + into.st_name, text, name.size() + 1) &&
         std::memcmp(text, name.data(), name.size()) == 0 && text[name.size()] == '\0';
}

bool in_gnu_hash(const Tables& tables, std::string_view name, Elf64_Sym& into) {
  std::uint32_t head[4];  // buckets, first symbol, words of the bloom filter, its shift
  if (!read_memory(tables.gnu_hash, head, sizeof head) || head[0] == 0) return false;
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  const std::uint64_t buckets = tables.gnu_hash + sizeof head + std::uint64_t{head[2]} * 8;
  const std::uint64_t chains = buckets + std::uint64_t{head[0]} * 4;
  auto index = peek<std::uint32_t>(buckets + std::uint64_t{hash % head[0]} * 4);
  if (index < head[1]) return false;
  for (int i = 0; i < 4096; ++i, ++index) {
    std::uint32_t chain = 0;
    if (!read_memory(chains + std::uint64_t{index - head[1]} * 4, &chain, sizeof chain)) return false;
    if ((chain | 1U) == (hash | 1U) && is_symbol(tables, index, name, into)) return true;
    if ((chain & 1U) != 0) return false;
  }
  return false;
}

bool in_hash(const Tables& tables, std::string_view name, Elf64_Sym& into) {
  std::uint32_t head[2];  // buckets, symbols
  if (!read_memory(tables.hash, head, sizeof head) || head[0] == 0) return false;
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4U) + static_cast<unsigned char>(c);
    hash = (hash ^ (hash >> 24U & 0xf0U)) & 0x0fff'ffffU;
  }
  auto index = peek<std::uint32_t>(tables.hash + 8 + std::uint64_t{hash % head[0]} * 4);
  for (int i = 0; i < 4096 && index != 0 && index < head[1]; ++i) {
    if (is_symbol(tables, index, name, into)) return true;
    index = peek<std::uint32_t>(tables.hash + 8 + (std::uint64_t{head[0]} + index) * 4);
  }
  return false;
}

}  // namespace

std::uint64_t find_symbol(const Module& module, std::string_view name) {
  if (module.dynamic == 0) return 0;
  Tables tables;
  for (unsigned i = 0; i < 256; ++i) {
    Elf64_Dyn entry{};
    if (!read_memory(module.dynamic + i * sizeof entry, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB) tables.symbols = absolute(module, entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRTAB) tables.strings = absolute(module, entry.d_un.d_ptr);
    if (entry.d_tag == DT_GNU_HASH) tables.gnu_hash = absolute(module, entry.d_un.d_ptr);
    if (entry.d_tag == DT_HASH) tables.hash = absolute(module, entry.d_un.d_ptr);
  }
  if (tables.symbols == 0 || tables.strings == 0) return 0;
  Elf64_Sym symbol{};
  const bool found =
      tables.gnu_hash != 0 ? in_gnu_hash(tables, name, symbol) : tables.hash != 0 && in_hash(tables, name, symbol);
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (!found || (type != STT_FUNC && type != STT_OBJECT)) return 0;
  return module.bias + symbol.st_value;
}

}  // namespace vramtrack::probe
