#include "telemetry/function_offsets.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "core/errno_words.hpp"

namespace vramtrack::telemetry {

Result<std::map<std::string_view, std::uint64_t>> function_offsets(const std::string& path,
                                                                   const std::set<std::string_view>& wanted) {
  elf_version(EV_CURRENT);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(fmt::format("{}: {}", path, errno_words(errno)));
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ, nullptr), elf_end);
  std::map<std::string_view, std::uint64_t> offsets;
  std::size_t segments = 0;
  const bool is_elf = elf && elf_kind(elf.get()) == ELF_K_ELF && elf_getphdrnum(elf.get(), &segments) == 0;
  const auto offset_of = [&](std::uint64_t address) -> std::uint64_t {
    for (std::size_t i = 0; i < segments; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) != nullptr && segment.p_type == PT_LOAD &&
          address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    }
    return 0;
  };
  for (Elf_Scn* section = nullptr; is_elf && (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM || header.sh_entsize == 0) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    for (std::size_t i = 0; data != nullptr && i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
      const char* const name = elf_strptr(elf.get(), header.sh_link, symbol.st_name);
      const auto known = name == nullptr ? wanted.end() : wanted.find(name);
      if (known == wanted.end() || GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      if (const std::uint64_t offset = offset_of(symbol.st_value); offset != 0) offsets.emplace(*known, offset);
    }
  }
  ::close(fd);
  if (!is_elf) return fail(fmt::format("{} is not an ELF file", path));
  return offsets;
}

}  // namespace vramtrack::telemetry
