// Users of this machine, as commands name them and as processes are listed.
#pragma once

#include <optional>
#include <string>

namespace vramtrack {

/// What ProcessInfo::user is for processes of a user that is named or numbered: "ada" for "ada" and for "1000", "12345"
/// for a number without a name, as of a container's user. nullopt: there is no such user here.
std::optional<std::string> listed_user(const std::string& name_or_number);

}  // namespace vramtrack
