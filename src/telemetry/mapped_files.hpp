// The files whose code a process runs, and how this process reaches them, whatever root and mounts the other one has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::telemetry {

/// A file that is mapped into a process, from its first to its last byte there.
struct MappedFile {
  std::string path;  ///< as the process knows it, or as it is from our root
  std::uint64_t begin = 0, length = 0, file_offset = 0;
  std::uint64_t device = 0, inode = 0;
  bool operator==(const MappedFile&) const = default;
};

/// The executable mappings of files in the text of /proc/PID/maps. Pure.
std::vector<MappedFile> executable_files(std::string_view maps);

/// Those of a process; empty: it has ended, or may not be read.
std::vector<MappedFile> files_of(std::uint32_t pid);

/// The file at the address; nullptr: none.
const MappedFile* file_at(const std::vector<MappedFile>& files, std::uint64_t address);

/// By which path this process opens the file: by its own where that is the same one, else through the other process,
/// while that lives. Empty: it cannot be reached.
std::string reach(std::uint32_t pid, const MappedFile& file);

}  // namespace vramtrack::telemetry
