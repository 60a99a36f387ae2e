#include "run/elf_symbols.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unordered_map>

namespace vramtrack::run {
namespace {

template <class T>
T at(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <class T>
void put(std::string* bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes->data() + offset, &value, sizeof value);
}

bool lies_within(std::uint64_t offset, std::uint64_t size, std::size_t file_bytes) {
  return offset <= file_bytes && size <= file_bytes - offset;
}

/// System V ABI, "Hash Table".
std::uint32_t sysv_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4U) + static_cast<unsigned char>(c);
    hash = (hash ^ (hash >> 24U & 0xf0U)) & 0x0fffffffU;
  }
  return hash;
}

bool is_exported_function(const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info);
  const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && (binding == STB_GLOBAL || binding == STB_WEAK) &&
         symbol.st_shndx != SHN_UNDEF && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

}  // namespace

Result<ElfSymbols> ElfSymbols::read(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size =
      std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  std::ifstream in(path, std::ios::binary);
  std::string bytes(error ? 0 : size, '\0');
  if (error || !in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    return fail(fmt::format("cannot read {}", path));
  return parse(std::move(bytes), path);
}

Result<ElfSymbols> ElfSymbols::parse(std::string bytes, const std::string& path) {
  ElfSymbols file;
  file.bytes_ = std::move(bytes);
  const std::size_t size = file.bytes_.size();
  if (size < sizeof(Elf64_Ehdr) || file.bytes_.compare(0, SELFMAG, ELFMAG) != 0 ||
      file.bytes_[EI_CLASS] != ELFCLASS64 || file.bytes_[EI_DATA] != ELFDATA2LSB)
    return fail(fmt::format("{} is not a 64-bit ELF file", path));
  const auto header = at<Elf64_Ehdr>(file.bytes_, 0);
  const std::uint64_t sections_bytes = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !lies_within(header.e_shoff, sections_bytes, size))
    return fail(fmt::format("{} has no section table", path));
  const auto section = [&](std::size_t index) {
    return at<Elf64_Shdr>(file.bytes_, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr part = section(i);
    if (part.sh_type == SHT_NOBITS || !lies_within(part.sh_offset, part.sh_size, size)) continue;
    const Part found{part.sh_offset, part.sh_size};
    if (part.sh_type == SHT_HASH) file.hash_ = found;
    if (part.sh_type == SHT_DYNAMIC) file.dynamic_ = found;
    if (part.sh_type != SHT_DYNSYM || part.sh_link >= header.e_shnum) continue;
    const Elf64_Shdr names = section(part.sh_link);
    if (names.sh_type != SHT_STRTAB || !lies_within(names.sh_offset, names.sh_size, size)) continue;
    file.symbols_ = found;
    file.names_ = {names.sh_offset, names.sh_size};
  }
  if (file.symbols_.bytes == 0) return fail(fmt::format("{} has no dynamic symbol table", path));
  return file;
}

std::size_t ElfSymbols::count() const {
  return symbols_.bytes / sizeof(Elf64_Sym);
}

std::string_view ElfSymbols::name(std::size_t index) const {
  const auto symbol = at<Elf64_Sym>(bytes_, symbols_.offset + index * sizeof(Elf64_Sym));
  if (symbol.st_name >= names_.bytes) return {};
  const std::string_view rest(bytes_.data() + names_.offset + symbol.st_name, names_.bytes - symbol.st_name);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::vector<std::string_view> ElfSymbols::functions() const {
  std::vector<std::string_view> found;
  for (std::size_t i = 1; i < count(); ++i)
    if (is_exported_function(at<Elf64_Sym>(bytes_, symbols_.offset + i * sizeof(Elf64_Sym))) && !name(i).empty())
      found.push_back(name(i));
  return found;
}

bool ElfSymbols::rename(const std::vector<std::pair<std::string, std::string>>& names) {
  const std::string before = bytes_;
  std::unordered_map<std::string_view, std::size_t> offsets;
  for (std::size_t i = 1; i < count(); ++i)
    if (const std::string_view old = name(i); !old.empty())
      offsets[std::string_view(before).substr(static_cast<std::size_t>(old.data() - bytes_.data()), old.size())] =
          static_cast<std::size_t>(old.data() - bytes_.data());
  for (const auto& [from, to] : names) {
    const auto found = offsets.find(from);
    if (found == offsets.end() || to.size() > from.size()) continue;
    std::memcpy(bytes_.data() + found->second, to.c_str(), to.size() + 1);
  }
  if (!fill_hash_table()) {
    bytes_ = before;
    return false;
  }
  hide_gnu_hash();
  return true;
}

bool ElfSymbols::fill_hash_table() {
  using Word = std::uint32_t;
  if (hash_.bytes < 2 * sizeof(Word)) return false;
  const Word buckets = at<Word>(bytes_, hash_.offset), chains = at<Word>(bytes_, hash_.offset + sizeof(Word));
  if (buckets == 0 || chains != count() || hash_.bytes < (2 + std::uint64_t{buckets} + chains) * sizeof(Word))
    return false;
  const auto bucket = [&](std::size_t index) { return hash_.offset + (2 + index) * sizeof(Word); };
  for (std::size_t i = 0; i < buckets; ++i) put<Word>(&bytes_, bucket(i), 0);
  for (Word i = 1; i < chains; ++i) {
    const std::size_t head = bucket(sysv_hash(name(i)) % buckets);
    put<Word>(&bytes_, bucket(buckets + i), at<Word>(bytes_, head));
    put<Word>(&bytes_, head, i);
  }
  return true;
}

void ElfSymbols::hide_gnu_hash() {
  // A tag in the operating system's range without a meaning: loaders ignore unknown tags.
  constexpr Elf64_Sxword kNothing = DT_LOOS + 0x7654;
  for (std::size_t i = 0; i + sizeof(Elf64_Dyn) <= dynamic_.bytes; i += sizeof(Elf64_Dyn)) {
    auto entry = at<Elf64_Dyn>(bytes_, dynamic_.offset + i);
    if (entry.d_tag == DT_NULL) return;
    if (entry.d_tag != DT_GNU_HASH) continue;
    entry.d_tag = kNothing;
    put(&bytes_, dynamic_.offset + i, entry);
  }
}

}  // namespace vramtrack::run
