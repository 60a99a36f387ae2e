// Users of this machine, as commands name them and as processes are listed.
#pragma once

#include <optional>
#include <string>

namespace vramtrack {

/// The ProcessInfo::user of processes of a user given by name or number: "ada" for "ada" and for "1000", "12345"
/// for a number without a name, such as a container's user. nullopt if there is no such user here.
std::optional<std::string> listed_user(const std::string& name_or_number);

}  // namespace vramtrack
