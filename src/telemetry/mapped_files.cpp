#include "telemetry/mapped_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "core/ascii.hpp"
#include "core/read_all.hpp"
#include "host/small_file.hpp"

namespace vramtrack::telemetry {
namespace {

std::uint64_t number(std::string_view text, int base) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}
std::uint64_t hexadecimal(std::string_view text) {
  return number(text, 16);
}
std::uint64_t decimal(std::string_view text) {
  return number(text, 10);
}

bool is_same(const std::string& path, const MappedFile& file) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && found.st_dev == file.device && found.st_ino == file.inode;
}

}  // namespace

std::vector<MappedFile> executable_files(std::string_view maps) {
  std::vector<MappedFile> files;
  while (!maps.empty()) {
    std::string_view line = next_line(maps);
    // 7f10a000-7f10b000 r-xp 00001000 fd:01 1234   /usr/lib/libfoo.so
    const std::string_view range = take_word(line), rights = take_word(line), offset = take_word(line);
    const std::string_view device = take_word(line), inode = take_word(line);
    const std::size_t path = line.find('/');
    if (rights.size() < 3 || rights[2] != 'x' || path == std::string_view::npos) continue;
    const std::uint64_t begin = hexadecimal(range),
                        end = hexadecimal(range.substr(std::min(range.find('-') + 1, range.size())));
    if (end > begin)
      files.push_back(
          {std::string(line.substr(path)), begin, end - begin, hexadecimal(offset),
           ::makedev(static_cast<unsigned>(hexadecimal(device)),
                     static_cast<unsigned>(hexadecimal(device.substr(std::min(device.find(':') + 1, device.size()))))),
           decimal(inode)});
  }
  return files;
}

std::vector<MappedFile> files_of(std::uint32_t pid) {
  std::ifstream in(fmt::format("/proc/{}/maps", pid));
  const auto text = in ? read_all(in) : std::nullopt;
  return text ? executable_files(*text) : std::vector<MappedFile>{};
}

const MappedFile* file_at(const std::vector<MappedFile>& files, std::uint64_t address) {
  const auto at = std::find_if(files.begin(), files.end(), [&](const MappedFile& file) {
    return address >= file.begin && address - file.begin < file.length;
  });
  return at == files.end() ? nullptr : &*at;
}

std::string reach(std::uint32_t pid, const MappedFile& file) {
  if (is_same(file.path, file)) return file.path;
  const std::string theirs = fmt::format("/proc/{}/root{}", pid, file.path);
  if (is_same(theirs, file)) return theirs;
  // Its path leads to another file from both roots (own mounts), or it has been replaced; this needs root's rights.
  const std::string mapped = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, file.begin, file.begin + file.length);
  if (::access(mapped.c_str(), R_OK) == 0) return mapped;
  // On some file systems (overlayfs, btrfs) a mapping's device and inode differ from those of its path.
  return ::access(theirs.c_str(), R_OK) == 0 ? theirs : std::string();
}

}  // namespace vramtrack::telemetry
