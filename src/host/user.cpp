#include "host/user.hpp"

#include <pwd.h>

#include <array>
#include <charconv>

#include "host/process.hpp"

namespace vramtrack {

std::optional<std::string> listed_user(const std::string& name_or_number) {
  if (!user_exists(name_or_number)) return std::nullopt;
  uid_t uid = 0;
  const char* const end = name_or_number.data() + name_or_number.size();
  if (const auto read = std::from_chars(name_or_number.data(), end, uid); read.ec != std::errc{} || read.ptr != end)
    return name_or_number;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return name_or_number;
  return found->pw_name;
}

}  // namespace vramtrack
