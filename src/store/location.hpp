// The location of the store's file, and whether it still exists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace vramtrack {

/// Creates the missing folders above `file` (mode 0700: command lines are in the store). Errors: one
/// cannot be created; those of check_links().
Status make_folder_of(const std::string& file);

/// Device and inode: distinguishes a file from another that took its name.
using FileIdentity = std::pair<std::uint64_t, std::uint64_t>;
/// nullopt if there is none.
std::optional<FileIdentity> file_identity(const std::string& path);
/// Whether `path` is now another file than `known`, or no file. If the system cannot determine it, the answer is no.
bool was_replaced(const std::string& path, const FileIdentity& known);

}  // namespace vramtrack
