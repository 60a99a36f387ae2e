#include "source/sim/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/settings.hpp"
#include "core/time.hpp"

namespace vramtrack::sim {
namespace {

std::vector<std::string_view> split_words(std::string_view words) {
  std::vector<std::string_view> out;
  while (!words.empty()) {
    const std::size_t bar = std::min(words.find('|'), words.size());
    out.push_back(words.substr(0, bar));
    words.remove_prefix(std::min(bar + 1, words.size()));
  }
  return out;
}

std::string join(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words.begin(), words.end(), ", "));
}

/// "12.4MiB/min": an amount per unit of time. The amount may be negative.
Result<double> parse_per_time(std::string_view text, bool bytes) {
  const std::size_t slash = text.find('/');
  const auto wrong = [&] {
    return fail(fmt::format("'{}' is not a rate; write, for example, {} or a number per second", text,
                            bytes ? "12.4MiB/min, 15MiB/h" : "20/s, 3/min"));
  };
  if (slash == std::string_view::npos) return wrong();
  std::string_view amount = text.substr(0, slash);
  const bool negative = !amount.empty() && amount.front() == '-';
  if (negative) amount.remove_prefix(1);
  const std::string_view time = text.substr(slash + 1);  // "min" or "15s"
  const bool counted = !time.empty() && time.front() >= '0' && time.front() <= '9';
  const Result<double> per_s = parse_duration_s(fmt::format("{}{}", counted ? "" : "1", time));
  if (!per_s || *per_s <= 0) return wrong();
  double value = 0;
  if (bytes) {
    const Result<std::uint64_t> size = parse_bytes(amount);
    if (!size) return wrong();
    value = static_cast<double>(*size);
  } else {
    // The duration parser reads a bare count, "3", as three seconds.
    const Result<double> count = parse_duration_s(amount);
    if (!count) return wrong();
    value = *count;
  }
  return (negative ? -value : value) / *per_s;
}

Result<double> parse_in(Unit unit, std::string_view text) {
  switch (unit) {
    case Unit::bytes:
      return parse_bytes(text).map([](std::uint64_t bytes) { return static_cast<double>(bytes); });
    case Unit::seconds:
    case Unit::interval_s:
      return parse_duration_s(text);
    case Unit::bytes_per_s:
      return parse_per_time(text, true);
    case Unit::per_s:
      return parse_per_time(text, false);
    default:
      return fail(fmt::format("'{}' is text; write a number", text));
  }
}

/// A bound as a person would write it.
std::string bound(double value, Unit unit) {
  if (unit == Unit::seconds || unit == Unit::interval_s) return fmt::format("{} s", value);
  return fmt::format("{}", value);
}

}  // namespace

void Mistakes::add(const toml::source_region& where, const std::string& what) {
  const std::uint32_t line = where.begin.line;
  if (any() && line >= line_) return;
  line_ = line;
  first_ = fmt::format("{}:{}: {}", file_, line, what);
}

const toml::node* TableReader::node(std::string_view key) {
  known_.push_back(key);
  return table_.get(key);
}

void TableReader::mistake(std::string_view key, const std::string& what) {
  const toml::node* at = table_.get(key);
  mistakes_.add(at != nullptr ? at->source() : table_.source(), fmt::format("{}: {}: {}", what_, key, what));
}

double TableReader::number(std::string_view key, Unit unit, double fallback, double min, double max) {
  const toml::node* value = node(key);
  const bool required = std::isnan(fallback);
  if (required) fallback = min;  // after a mistake, reading continues, and no caller must see a NaN
  if (value == nullptr) {
    if (required) mistake(key, "is missing and has no default");
    return fallback;
  }
  double out = 0;
  if (const auto* text = value->as_string()) {
    const Result<double> parsed = parse_in(unit, text->get());
    if (!parsed) {
      mistake(key, parsed.error().message);
      return fallback;
    }
    out = *parsed;
  } else if (value->is_number()) {
    out = value->value<double>().value_or(std::nan(""));
  } else {
    mistake(key, "expected a number or a string with a unit");
    return fallback;
  }
  if (unit == Unit::count && out != std::floor(out)) {
    mistake(key, fmt::format("{} is not a whole number", out));
    return fallback;
  }
  if (!(out >= min && out <= max)) {
    mistake(key, fmt::format("{} is out of range; expected {} to {}", out, bound(min, unit), bound(max, unit)));
    return fallback;
  }
  return out;
}

std::optional<double> TableReader::maybe_number(std::string_view key, Unit unit, double min, double max) {
  if (!has(key)) {
    known_.push_back(key);
    return std::nullopt;
  }
  return number(key, unit, min, min, max);
}

std::string TableReader::text(std::string_view key, std::string fallback) {
  const toml::node* value = node(key);
  if (value == nullptr) return fallback;
  if (const auto* text = value->as_string()) return text->get();
  mistake(key, "expected a string in quotes");
  return fallback;
}

bool TableReader::boolean(std::string_view key, bool fallback) {
  const toml::node* value = node(key);
  if (value == nullptr) return fallback;
  if (const auto* flag = value->as_boolean()) return flag->get();
  mistake(key, "expected true or false");
  return fallback;
}

int TableReader::word(std::string_view key, std::string_view words, int fallback) {
  const toml::node* value = node(key);
  const std::vector<std::string_view> known = split_words(words);
  if (value == nullptr) {
    if (fallback < 0) mistake(key, fmt::format("is missing; expected one of {}", join(known)));
    return fallback;
  }
  const auto* text = value->as_string();
  if (text == nullptr) {
    mistake(key, fmt::format("expected one of {}, in quotes", join(known)));
    return fallback;
  }
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i] == text->get()) return static_cast<int>(i);
  mistake(key, fmt::format("unknown '{}'; the nearest is '{}', of {}", text->get(), nearest_name(text->get(), known),
                           join(known)));
  return fallback;
}

std::vector<std::size_t> TableReader::positions(std::string_view key, std::size_t count) {
  const toml::node* value = node(key);
  if (value == nullptr) return {0};
  std::vector<std::size_t> out;
  const auto take = [&](const toml::node& item) {
    const auto* number = item.as_integer();
    if (number != nullptr && number->get() >= 0 && static_cast<std::uint64_t>(number->get()) < count) {
      out.push_back(static_cast<std::size_t>(number->get()));
    } else {
      mistake(key, fmt::format("expected positions of [[device]] tables, 0 to {}", count - 1));
    }
  };
  if (const auto* list = value->as_array()) {
    for (const toml::node& item : *list) take(item);
  } else {
    take(*value);
  }
  if (out.empty()) {
    mistake(key, "names no device");
    out.push_back(0);
  }
  return out;
}

std::vector<std::string> TableReader::texts(std::string_view key) {
  const toml::node* value = node(key);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  const auto take = [&](const toml::node& item) {
    if (const auto text = item.value<std::string>())
      out.push_back(*text);
    else
      mistake(key, "expected texts");
  };
  if (const auto* list = value->as_array()) {
    for (const toml::node& item : *list) take(item);
  } else {
    take(*value);
  }
  return out;
}

const toml::date_time* TableReader::date_time(std::string_view key) {
  const toml::node* value = node(key);
  if (value == nullptr) return nullptr;
  if (const auto* time = value->as_date_time()) return &time->get();
  mistake(key, "expected a date and time without quotes, for example 2026-01-05T08:00:00Z");
  return nullptr;
}

std::vector<const toml::table*> TableReader::tables(std::string_view key) {
  const toml::node* value = node(key);
  std::vector<const toml::table*> out;
  if (value == nullptr) return out;
  const auto* list = value->as_array();
  if (list == nullptr) {
    mistake(key, fmt::format("expected [[{}]] tables", key));
    return out;
  }
  for (const toml::node& item : *list) {
    if (const auto* one = item.as_table()) {
      out.push_back(one);
    } else {
      mistake(key, fmt::format("expected [[{}]] tables", key));
    }
  }
  return out;
}

const toml::table* TableReader::table(std::string_view key) {
  const toml::node* value = node(key);
  if (value == nullptr) return nullptr;
  if (const auto* one = value->as_table()) return one;
  mistake(key, fmt::format("expected a table: [{}]", key));
  return nullptr;
}

void TableReader::finish() {
  for (const auto& [key, value] : table_) {
    const std::string_view name = key.str();
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    mistakes_.add(key.source(), fmt::format("{}: unknown key '{}'; the nearest known key is '{}'", what_, name,
                                            nearest_name(name, known_)));
  }
}

}  // namespace vramtrack::sim
