// config show|path|init.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::size_t kOriginColumn = 44;

int no_home(Console& console) {
  console.error(
      "cannot find the configuration: neither XDG_CONFIG_HOME nor HOME is set; name the file with --config FILE");
  return 2;
}

}  // namespace

int config_show(const Options& options, const LayeredConfig& layers, Console& console) {
  const std::string path = config_path(options);
  std::error_code ec;
  std::string out = fmt::format("# file: {}{}\n", path, std::filesystem::exists(path, ec) ? "" : " (not there)");
  std::string_view section;
  for (const Setting& s : settings()) {
    if (s.section != section) out += fmt::format("\n[{}]\n", section = s.section);
    const std::string line = fmt::format("{} = {}", s.key, toml_text(s.get(layers.config())));
    out += fmt::format("{:<{}} # {}\n", line, kOriginColumn, layers.origin(s));
  }
  console.write(out);
  return 0;
}

int config_path_command(const Options& options, Console& console) {
  const std::string path = config_path(options);
  if (path.empty()) return no_home(console);
  console.write(path + '\n');
  return 0;
}

int config_init(const Options& options, Console& console) {
  const std::string path = config_path(options);
  if (path.empty()) return no_home(console);
  std::error_code ec;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, ec);
  // O_EXCL: a file that somebody wrote in the meantime is never lost.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (options.force ? O_TRUNC : O_EXCL), 0644);
  if (fd < 0 && errno == EEXIST) {
    console.error(fmt::format("cannot write {}: it is there already; edit it, or replace it with --force", path));
    return 2;
  }
  const std::string text = config_template();
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int cause = errno;
  if (fd >= 0) ::close(fd);
  if (!written) {
    console.error(
        fmt::format("cannot write {}: {}; choose another place with --config FILE", path, std::strerror(cause)));
    return 2;
  }
  console.write("wrote " + path + '\n');
  return 0;
}

}  // namespace vramtrack::cli
