// config show|path|init.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/output_file.hpp"

namespace vramtrack::cli {
namespace {

constexpr std::size_t kOriginColumn = 44;

struct ConfigOptions {
  ConfigRequest config;
  bool force = false;  ///< for init
};

int no_home(Console& console) {
  console.error(
      "cannot find the configuration: neither XDG_CONFIG_HOME nor HOME is set; name the file with --config FILE");
  return 2;
}

int show(const ConfigOptions& options, const LayeredConfig& layers, Console& console) {
  const std::string file = config_path(options.config);
  std::error_code ec;
  std::string out = fmt::format("# file: {}{}\n", file, std::filesystem::exists(file, ec) ? "" : " (does not exist)");
  std::string_view section;
  for (const Setting& s : settings()) {
    if (s.section != section) out += fmt::format("\n[{}]\n", section = s.section);
    const std::string line = fmt::format("{} = {}", s.key, toml_text(s.get(layers.config())));
    out += fmt::format("{:<{}} # {}\n", line, kOriginColumn, layers.origin(s));
  }
  console.write(out);
  return 0;
}

int path(const ConfigOptions& options, Console& console) {
  const std::string file = config_path(options.config);
  if (file.empty()) return no_home(console);
  console.write(file + '\n');
  return 0;
}

int init(const ConfigOptions& options, Console& console) {
  const std::string file = config_path(options.config);
  if (file.empty()) return no_home(console);
  std::error_code ec;
  if (const auto folder = std::filesystem::path(file).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, ec);
  std::error_code unknown;
  if (!options.force && std::filesystem::exists(std::filesystem::symlink_status(file, unknown))) {
    console.error(fmt::format("cannot write {}: the file exists; edit it, or replace it with --force", file));
    return 2;
  }
  if (const Status written = write_output(file, config_template()); !written) {
    console.error(written.error().message + " with --config FILE");
    return 2;
  }
  console.write("wrote " + file + '\n');
  return 0;
}

Runner declare_show(Arguments& arguments) {
  const auto options = std::make_shared<ConfigOptions>();
  add_config(arguments, options->config);
  return configured<ConfigOptions>(options, show);
}

/// Does not use configured(): the file need not be valid, or even exist.
Runner declare_path(Arguments& arguments) {
  const auto options = std::make_shared<ConfigOptions>();
  add_config(arguments, options->config);
  return [options](Console& console) { return path(*options, console); };
}

Runner declare_init(Arguments& arguments) {
  const auto options = std::make_shared<ConfigOptions>();
  arguments.flag("--force", "Replace an existing file", options->force);
  add_config(arguments, options->config);
  return [options](Console& console) { return init(*options, console); };
}

constexpr CommandInfo kShow{"show", "Print every setting and where its value came from",
                            "Example:\n  vramtrack config show --set min-r-squared=0.8", declare_show};
constexpr CommandInfo kPath{"path", "Print the path of the configuration file",
                            "Example:\n  \"$EDITOR\" \"$(vramtrack config path)\"", declare_path};
constexpr CommandInfo kInit{"init", "Write a configuration file with every key, explained and commented out",
                            "Example:\n  vramtrack config init && \"$EDITOR\" \"$(vramtrack config path)\"",
                            declare_init};
constexpr const CommandInfo* kVerbs[] = {&kShow, &kPath, &kInit};

}  // namespace

const CommandInfo config_command{"config", "Show the settings, find their file, or write one to start from",
                                 "Examples:\n  vramtrack config show\n  vramtrack config init", nullptr, kVerbs};

}  // namespace vramtrack::cli
