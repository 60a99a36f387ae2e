// Reads one TOML table with checks: types, units, ranges, misspelt keys. Only for the scenario parser's .cpp
// files: this header pulls in toml++.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "source/sim/shape.hpp"

namespace vramtrack::sim {

/// The first mistake in the file, by line.
class Mistakes {
 public:
  explicit Mistakes(std::string_view file) : file_(file) {}
  void add(const toml::source_region& where, const std::string& what);
  [[nodiscard]] bool any() const { return !first_.empty(); }
  [[nodiscard]] const std::string& first() const { return first_; }

 private:
  std::string file_;
  std::string first_;
  std::uint32_t line_ = 0;
};

/// Reads keys of `table` and records mistakes; finish() reports the keys that were never read. Each read returns the
/// fallback if the key is absent or wrong.
class TableReader {
 public:
  /// `what`: the name of the table in errors, such as "[[process]] 'trainer'".
  TableReader(const toml::table& table, std::string what, Mistakes& mistakes)
      : table_(table), what_(std::move(what)), mistakes_(mistakes) {}

  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  /// A number in the unit of the key, or a string with a unit. `fallback` NaN: required.
  double number(std::string_view key, Unit unit, double fallback, double min, double max);
  std::optional<double> maybe_number(std::string_view key, Unit unit, double min, double max);
  std::string text(std::string_view key, std::string fallback = {});
  bool boolean(std::string_view key, bool fallback);
  /// The index of the key's value in `words` ("a|b|c").
  int word(std::string_view key, std::string_view words, int fallback);
  /// The strings of an array, or a single string; empty if absent.
  std::vector<std::string> texts(std::string_view key);
  /// A whole number or an array of them, each in [0, count).
  std::vector<std::size_t> positions(std::string_view key, std::size_t count);
  /// An offset date-time as in TOML.
  const toml::date_time* date_time(std::string_view key);
  /// The tables of an array of tables; empty if absent.
  std::vector<const toml::table*> tables(std::string_view key);
  const toml::table* table(std::string_view key);

  void mistake(std::string_view key, const std::string& what);
  void finish();

 private:
  const toml::node* node(std::string_view key);

  const toml::table& table_;
  std::string what_;
  Mistakes& mistakes_;
  std::vector<std::string_view> known_;
};

}  // namespace vramtrack::sim
