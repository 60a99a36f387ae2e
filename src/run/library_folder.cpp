#include "run/library_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "core/errno_words.hpp"
#include "core/file_way.hpp"
#include "core/text_hash.hpp"

namespace vramtrack::run {
namespace {

namespace fs = std::filesystem;

/// Whether only this user and root can write to the folder or replace it.
bool is_ours_alone(const std::string& folder) {
  struct stat status {};  // not a link, because its target may change later
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         others_who_write(folder).empty();
}

/// Why programs cannot load from `folder`, which is created if missing; empty: they can.
std::string obstacle(const std::string& folder) {
  if (!can_be_preloaded(folder)) return "its path contains a space, a colon or '$', which LD_PRELOAD cannot hold";
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_words(errno);
  if (!is_ours_alone(folder)) return "it is not a folder that only you can write to";
  struct statvfs mount {};
  if (::statvfs(folder.c_str(), &mount) != 0) return errno_words(errno);
  return (mount.f_flag & ST_NOEXEC) != 0 ? "it is mounted noexec" : "";
}

bool has_content(const fs::path& file, const std::string& bytes) {
  std::ifstream in(file, std::ios::binary);
  return in && std::string(std::istreambuf_iterator<char>(in), {}) == bytes;
}

/// Writes the library next to its Vulkan manifest, which names it by a relative path.
std::error_code write_library(const fs::path& folder, const std::string& bytes, const fs::path& original) {
  std::error_code error;
  fs::remove_all(folder, error);  // left by an earlier process with this pid
  fs::create_directory(folder, error);
  const fs::path manifests = original.parent_path() / "cuda";
  if (std::error_code none; !error && fs::is_directory(manifests, none)) fs::copy(manifests, folder / "cuda", error);
  if (error) return error;
  errno = 0;
  std::ofstream out(folder / original.filename(), std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) error.assign(errno == 0 ? EIO : errno, std::generic_category());
  return error;
}

}  // namespace

bool can_be_preloaded(const std::string& path) {
  return path.find_first_of(" :$") == std::string::npos;
}

std::vector<std::string> library_folders() {
  std::vector<std::string> directories;
  if (const std::string cache = absolute_variable("XDG_CACHE_HOME"); !cache.empty())
    directories.push_back(cache + "/vramtrack");
  else if (::geteuid() == 0)
    directories.emplace_back("/var/cache/vramtrack");  // with sudo, the home folder may be another user's
  else if (const std::string home = absolute_variable("HOME"); !home.empty())
    directories.push_back(home + "/.cache/vramtrack");
  std::error_code error;
  if (const fs::path temporary = fs::temp_directory_path(error); !error)
    directories.push_back((temporary / fmt::format("vramtrack-{}", ::geteuid())).string());
  return directories;
}

Result<std::string> usable_library_folder(const std::vector<std::string>& directories) {
  std::string reasons;
  for (const std::string& directory : directories) {
    const std::string reason = obstacle(directory);
    if (reason.empty()) return directory;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", directory, reason);
  }
  return fail(reasons);
}

Result<std::string> copy_library(const std::string& bytes, const std::string& original, const std::string& directory) {
  const fs::path folder = fs::path(directory) / text_hash(bytes);
  const fs::path library = folder / fs::path(original).filename();
  if (has_content(library, bytes)) return library.string();
  const fs::path draft = folder.string() + fmt::format(".{}", ::getpid());
  std::error_code error = write_library(draft, bytes, original), ignored;
  if (!error) {
    fs::rename(draft, folder, error);
    if (error && !has_content(library, bytes)) {  // it is damaged, not another run's
      fs::remove_all(folder, ignored);
      fs::rename(draft, folder, error);
    }
  }
  fs::remove_all(draft, ignored);
  if (!has_content(library, bytes))
    return fail(fmt::format("{}: {}", folder.string(), error ? error.message() : "it was not completely written"));
  return library.string();
}

Result<std::string> link_library(const std::string& library, const std::string& directory) {
  const fs::path target = fs::path(library).parent_path();
  const fs::path link = fs::path(directory) / ("link-" + text_hash(target.string()));
  std::error_code error;
  if (fs::read_symlink(link, error) != target) {
    const fs::path draft = link.string() + fmt::format(".{}", ::getpid());
    std::error_code ignored;
    fs::remove(draft, ignored);
    fs::create_directory_symlink(target, draft, error);
    if (!error) fs::rename(draft, link, error);
    if (error) return fail(fmt::format("cannot create the link {}: {}", link.string(), error.message()));
  }
  return (link / fs::path(library).filename()).string();
}

}  // namespace vramtrack::run
