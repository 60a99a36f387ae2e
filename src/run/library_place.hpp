// Where what programs load lies, if it is not the installed library: a process that outlives its run still loads it.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::run {

/// In the order in which they are tried: $XDG_CACHE_HOME/vramtrack, without it ~/.cache/vramtrack or, of
/// root, /var/cache/vramtrack; vramtrack-UID in the folder of temporary files.
std::vector<std::string> library_places();

/// The first of `places` that programs can load from, made where it is not there: this user's, in which nobody
/// but root can put anything else, not mounted noexec, and of a path that LD_PRELOAD can hold. The Error says of each
/// place why it is none.
Result<std::string> library_place(const std::vector<std::string>& places);

/// Whether LD_PRELOAD can hold `path`: it separates by blanks and colons, and the loader replaces what follows '$'.
bool can_be_preloaded(const std::string& path);

/// A file named like `original` in a folder of `place` that is named by its content, with the `cuda` folder (the Vulkan
/// manifest) that lies beside `original`; its path. What is there already is used again: two runs may write at a time.
Result<std::string> place_library(const std::string& bytes, const std::string& original, const std::string& place);

/// A link in `place` to the folder of `library`; the library's path through it.
Result<std::string> place_link(const std::string& library, const std::string& place);

}  // namespace vramtrack::run
