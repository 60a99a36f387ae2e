// The folders of libraries for programs, if not the installed one: a process that outlives its run still loads them.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

/// The folders in the order in which they are tried: $XDG_CACHE_HOME/vramtrack, or without that variable
/// ~/.cache/vramtrack (for root, /var/cache/vramtrack); vramtrack-UID in the folder for temporary files.
std::vector<std::string> library_folders();

/// The first of `directories` that programs can load from, created if missing: owned by this user, writable by nobody
/// else except root, not mounted noexec, and with a path that LD_PRELOAD can hold. The Error states for each one why it
/// is unsuitable.
Result<std::string> usable_library_folder(const std::vector<std::string>& directories);

/// Whether LD_PRELOAD can hold `path`: its separators are blanks and colons, and the loader expands '$'.
bool can_be_preloaded(const std::string& path);

/// Writes a copy with the name of `original` to a subfolder of `directory` named after its content, next to the `cuda`
/// folder (the Vulkan manifest) from `original`; returns its path. Reuses an existing copy: two runs may write at once.
Result<std::string> copy_library(const std::string& bytes, const std::string& original, const std::string& directory);

/// Creates a link in `directory` to the folder of `library`; returns the library's path through it.
Result<std::string> link_library(const std::string& library, const std::string& directory);

}  // namespace vramtrack::run
