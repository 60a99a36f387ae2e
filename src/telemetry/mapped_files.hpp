// The executable files that a process has mapped, and how this process reaches them, even if root and mounts differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::telemetry {

/// A file mapped into a process: the address range of its mappings, from first to last byte.
struct MappedFile {
  std::string path;  ///< the path as that process sees it, or as seen from this process's root
  std::uint64_t begin = 0, length = 0, file_offset = 0;
  std::uint64_t device = 0, inode = 0;
  bool operator==(const MappedFile&) const = default;
};

/// The executable file mappings in the text of /proc/PID/maps. Pure.
std::vector<MappedFile> executable_files(std::string_view maps);

/// The executable files of a process; empty if it has ended or may not be read.
std::vector<MappedFile> files_of(std::uint32_t pid);

/// The file that contains the address; nullptr if there is none.
const MappedFile* file_at(const std::vector<MappedFile>& files, std::uint64_t address);

/// The path by which this process can open the file: the file's own path if it leads to the same file, otherwise a path
/// through the other process while that lives. Empty: unreachable.
std::string reach(std::uint32_t pid, const MappedFile& file);

}  // namespace vramtrack::telemetry
