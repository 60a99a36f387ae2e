#include "store/location.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/errno_words.hpp"
#include "core/file_way.hpp"
#include "store/store.hpp"

namespace vramtrack {
namespace {

std::string home() {
  if (const char* from_environment = std::getenv("HOME"); from_environment && *from_environment)
    return from_environment;
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (::getpwuid_r(::getuid(), &entry, buffer, sizeof buffer, &found) == 0 && found && found->pw_dir)
    return found->pw_dir;
  return "/";
}

}  // namespace

std::string default_store_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  // The XDG specification: a relative path is invalid and must be ignored.
  const std::string base = state && *state == '/' ? std::string(state) : home() + "/.local/state";
  return base + "/vramtrack/vramtrack.db";
}

std::string store_path(const StoreConfig& config) {
  return config.path.empty() ? default_store_path() : config.path;
}

Status make_folder_of(const std::string& file) {
  if (Status ours = check_links(file); !ours) return ours;
  for (std::size_t slash = file.find('/', 1); slash != std::string::npos; slash = file.find('/', slash + 1)) {
    const std::string folder = file.substr(0, slash);
    struct stat there {};
    if (::stat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) continue;
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return fail(fmt::format(
          "{}: cannot create the folder {}: {}; create it, or set store.path to a place that can be written", file,
          folder, errno_words(errno)));
  }
  return {};
}

std::optional<FileIdentity> file_identity(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return std::nullopt;
  return FileIdentity{there.st_dev, there.st_ino};
}

bool was_replaced(const std::string& path, const FileIdentity& known) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
  return FileIdentity{there.st_dev, there.st_ino} != known;
}

}  // namespace vramtrack
