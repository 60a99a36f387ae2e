// The settings as text for people: the initial file, the reference.
#include <fmt/format.h>

#include "core/settings.hpp"

namespace vramtrack {
namespace {

std::string range(const Setting& s) {
  return s.max > 0 ? fmt::format("{} to {}", s.min, s.max) : "";
}

std::string_view reload_words(Reload reload) {
  return reload == Reload::live ? "live" : reload == Reload::restart ? "restart" : "";
}

/// Breaks `text` into comment lines of at most 100 columns.
std::string comment(std::string_view text) {
  constexpr std::size_t kColumns = 98;
  std::string out;
  while (!text.empty()) {
    std::size_t length = text.size();
    if (length > kColumns) {
      length = text.rfind(' ', kColumns);
      if (length == std::string_view::npos) length = kColumns;
    }
    out += fmt::format("# {}\n", text.substr(0, length));
    text.remove_prefix(length);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::string config_template() {
  std::string out =
      "# vramtrack's settings. Every line shows the default: remove the '#' before a key to change it.\n"
      "# 'vramtrack config show' prints the values in force and where they came from; docs/CONFIG.md explains each "
      "key.\n";
  std::string_view section;
  const Config defaults;
  for (const Setting& s : settings()) {
    if (s.section != section) out += fmt::format("\n[{}]\n", section = s.section);
    out += '\n' + comment(s.help) + comment(fmt::format("Unit: {}. {}", s.unit, s.when));
    out += fmt::format("#{} = {}\n", s.key, toml_text(s.get(defaults)));
  }
  return out;
}

std::string reference_table(std::string_view section) {
  std::string out =
      "| key | unit | default | range | affects | reload | what it is | when to change it |\n"
      "|---|---|---|---|---|---|---|---|\n";
  const Config defaults;
  for (const Setting& s : settings())
    if (s.section == section)
      out += fmt::format("| `{}` | {} | `{}` | {} | {} | {} | {} | {} |\n", s.key, s.unit, toml_text(s.get(defaults)),
                         range(s), s.binds, reload_words(s.reload), s.help, s.when);
  return out;
}

}  // namespace vramtrack
