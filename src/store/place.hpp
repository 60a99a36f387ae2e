// Where the store's file is, and whether it is still there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace vramtrack {

/// Makes the folders above `file` (those that are missing, mode 0700: command lines are in the store).
Status make_folder_of(const std::string& file);

/// Tells a file from another that took its name: device and inode; nullopt when there is none.
std::optional<std::pair<std::uint64_t, std::uint64_t>> file_identity(const std::string& path);

}  // namespace vramtrack
