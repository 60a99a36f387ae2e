#include "run/build_id.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace vramtrack::run {
namespace {

constexpr std::size_t kMostNoteBytes = 65536;
constexpr std::size_t kMostHeaders = 256;

template <class T>
bool read_at(std::ifstream& in, std::uint64_t offset, T* into, std::size_t count) {
  in.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(into), static_cast<std::streamsize>(count * sizeof(T))));
}

/// The build id in one note segment.
std::string in_notes(const std::vector<char>& notes) {
  const auto aligned = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t text = name + aligned(note.n_namesz);
    if (note.n_namesz > notes.size() || note.n_descsz > notes.size() || text + note.n_descsz > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(notes[text + i]));
      return id;
    }
    at = text + aligned(note.n_descsz);
  }
  return {};
}

}  // namespace

std::string build_id_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!read_at(in, 0, &header, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > kMostHeaders)
    return {};
  std::vector<Elf64_Phdr> headers(header.e_phnum);
  if (!read_at(in, header.e_phoff, headers.data(), headers.size())) return {};
  for (const Elf64_Phdr& segment : headers) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNoteBytes) continue;
    std::vector<char> notes(segment.p_filesz);
    if (!read_at(in, segment.p_offset, notes.data(), notes.size())) continue;
    if (std::string id = in_notes(notes); !id.empty()) return id;
  }
  return {};
}

}  // namespace vramtrack::run
