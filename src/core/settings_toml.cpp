// The TOML side of the settings: the file and the texts of the command line and the environment.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/command.hpp"
#include "core/settings.hpp"
#include "core/toml_depth.hpp"

namespace vramtrack {
namespace {

struct FileError {
  std::uint32_t line = 0;
  std::string message;
};

/// nullopt for anything that no setting can hold (dates, tables, arrays of anything but texts).
std::optional<SettingValue> value_of(const toml::node& node) {
  if (const auto* b = node.as_boolean()) return SettingValue{b->get()};
  if (const auto* i = node.as_integer()) return SettingValue{i->get()};
  if (const auto* d = node.as_floating_point()) return SettingValue{d->get()};
  if (const auto* s = node.as_string()) return SettingValue{s->get()};
  const auto* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> list;
  for (const toml::node& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr) return std::nullopt;
    list.push_back(text->get());
  }
  return SettingValue{std::move(list)};
}

std::string unknown_section(std::string_view name) {
  for (const Setting& s : settings())
    if (s.key == name) return fmt::format("'{}' is outside of a section; put it under [{}]", name, s.section);
  const auto sections = setting_sections();
  const std::string_view near = near_name(name, sections);
  if (!near.empty()) return fmt::format("unknown section [{}]; the nearest is [{}]", name, near);
  return fmt::format("unknown section [{}]; the sections are {}", name, fmt::join(sections, ", "));
}

std::string unknown_key(std::string_view section, std::string_view key) {
  std::vector<std::string_view> keys;
  for (const Setting& s : settings()) {
    if (s.section == section) keys.push_back(s.key);
    if (s.key == key) return fmt::format("'{}' is not a key of [{}]; it belongs under [{}]", key, section, s.section);
  }
  return fmt::format("unknown key '{}' in [{}]; {}", key, section, near_words(key, keys));
}

const Setting* find_in_file(std::string_view section, std::string_view key) {
  for (const Setting& s : settings())
    if (s.section == section && s.key == key) return &s;
  return nullptr;
}

Result<toml::table> parse_toml(std::string_view text, std::string_view file) {
  if (const Status bounded = check_key_depth(text, file); !bounded) return fail(bounded.error());
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    return fail(fmt::format("{}:{}: not valid TOML: {}; correct this line, or start over with {}", file,
                            e.source().begin.line, e.description(), command_hint("vramtrack config init")));
  }
}

void apply_section(LayeredConfig& layers, std::string_view section, const toml::table& table, std::string_view file,
                   std::vector<FileError>& errors) {
  for (const auto& entry : table) {
    const std::string_view key = entry.first.str();
    const std::uint32_t line = entry.first.source().begin.line;
    const Setting* setting = find_in_file(section, key);
    if (setting == nullptr) {
      errors.push_back({line, unknown_key(section, key)});
      continue;
    }
    auto value = value_of(entry.second);
    if (!value) {
      errors.push_back(
          {line, fmt::format("{} has the wrong type; expected {}", setting->name(), expected_value(*setting))});
      continue;
    }
    if (Status ok = layers.apply(*setting, std::move(*value), fmt::format("{}:{}", file, line)); !ok)
      errors.push_back({line, ok.error().message});
  }
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    std::string_view element = text.substr(0, comma);
    while (!element.empty() && element.front() == ' ') element.remove_prefix(1);
    while (!element.empty() && element.back() == ' ') element.remove_suffix(1);
    if (!element.empty()) list.emplace_back(element);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

/// A TOML array if it parses as one. A regular expression may contain commas and brackets: it stays whole.
std::vector<std::string> parse_list(const Setting& setting, std::string_view text) {
  if (!text.empty() && text.front() == '[') {
    if (const auto table = parse_toml("list = " + std::string(text), ""); table && table->size() == 1) {
      const auto* node = table->get("list");
      const auto value = node == nullptr ? std::nullopt : value_of(*node);
      if (value && std::holds_alternative<std::vector<std::string>>(*value))
        return std::get<std::vector<std::string>>(*value);
    }
  }
  if (setting.unit == "names") return split_commas(text);
  return text.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::string(text)};
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [at, ec] = std::from_chars(text.data(), end, number);
  if (ec != std::errc{} || at != end) return std::nullopt;
  return number;
}

std::optional<bool> truth_in(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on", "1"})
    if (text == word) return true;
  for (const std::string_view word : {"false", "no", "off", "0"})
    if (text == word) return false;
  return std::nullopt;
}

}  // namespace

Status LayeredConfig::apply_file(std::string_view toml, std::string_view file) {
  auto table = parse_toml(toml, file);
  if (!table) return fail(table.error());
  LayeredConfig applied = *this;
  std::vector<FileError> errors;
  for (const auto& entry : *table) {
    const std::string_view section = entry.first.str();
    const std::uint32_t line = entry.first.source().begin.line;
    const auto sections = setting_sections();
    const auto* keys = entry.second.as_table();
    // The tables of policies are left to act/policy, which reads the same text.
    if (section == "policy" && entry.second.is_array_of_tables()) {
      applied.config_.policies = {std::string(file), std::string(toml)};
      continue;
    }
    if (section == "policy") {
      errors.push_back({line, "policies are an array of tables; write [[policy]] before each"});
      continue;
    }
    if (std::find(sections.begin(), sections.end(), section) == sections.end())
      errors.push_back({line, unknown_section(section)});
    else if (keys == nullptr)
      errors.push_back({line, fmt::format("'{0}' is a section; write [{0}] on a line of its own", section)});
    else
      apply_section(applied, section, *keys, file, errors);
  }
  if (!errors.empty()) {
    const auto first = std::min_element(errors.begin(), errors.end(),
                                        [](const FileError& a, const FileError& b) { return a.line < b.line; });
    return fail(fmt::format("{}:{}: {}; {} lists every key", file, first->line, first->message,
                            command_hint("vramtrack config show")));
  }
  *this = std::move(applied);
  return {};
}

Result<SettingValue> parse_setting(const Setting& setting, std::string_view text) {
  const SettingValue sample = setting.get(Config{});
  std::optional<SettingValue> value;
  if (std::holds_alternative<std::string>(sample)) {
    value = std::string(text);
  } else if (std::holds_alternative<bool>(sample)) {
    if (const auto b = truth_in(text)) value = *b;
  } else if (std::holds_alternative<std::int64_t>(sample)) {
    if (const auto i = number_in<std::int64_t>(text)) value = *i;
  } else if (std::holds_alternative<double>(sample)) {
    if (const auto d = number_in<double>(text)) value = *d;
  } else {
    value = parse_list(setting, text);
  }
  if (!value)
    return fail(fmt::format("{} = '{}' is not understood; expected {}", setting.name(), text, expected_value(setting)));
  return *value;
}

std::string toml_text(const SettingValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) {
    std::string text = fmt::format("{}", *d);
    // TOML distinguishes 1.0 from 1; inf and nan are written as they are.
    if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
    return text;
  }
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\')
        out += {'\\', c};
      else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
      else
        out += c;
    }
    return out + '"';
  };
  if (const auto* s = std::get_if<std::string>(&value)) return quoted(*s);
  std::string out = "[";
  for (const std::string& element : std::get<std::vector<std::string>>(value))
    out += (out.size() > 1 ? ", " : "") + quoted(element);
  return out + ']';
}

}  // namespace vramtrack
