// Rows of a table with a column for each series: see find_wide().
#include <cmath>

#include "source/log/csv_rows.hpp"
#include "source/log/listed.hpp"

namespace vramtrack {

using logtext::Amount;

/// A row with a column for each GPU. A missing value affects only its GPU; an unreadable one makes the row broken.
const char* CsvRows::read_wide_row(Timestamp time, bool last_is_whole, LogRows& rows) {
  if (!last_is_whole) return "truncated last line";
  wide_used_.assign(plan_.wide.size(), std::nullopt);
  for (std::size_t i = 0; i < plan_.wide.size(); ++i) {
    std::string_view text = field(plan_.wide[i].used);
    if (const int part = plan_.wide[i].part; part >= 0) {
      const auto parts = parts_of_list(text);
      if (parts.empty() && !text.empty()) return "no list of amounts of used memory";
      if (parts.size() > plan_.wide.size()) return "a longer list than in the first rows";
      text = static_cast<std::size_t>(part) < parts.size() ? parts[static_cast<std::size_t>(part)] : std::string_view{};
    }
    double percent = 0;
    std::uint64_t bytes = 0;
    const Amount amount =
        plan_.percent ? read_percent(text, percent) : logtext::read_amount(text, used_unit_, bytes, comma_);
    if (amount == Amount::bad) return plan_.percent ? "no readable percentage" : "no readable amount of used memory";
    if (amount == Amount::missing) continue;
    wide_used_[i] = plan_.percent ? static_cast<std::uint64_t>(std::llround(percent * percent_bytes_)) : bytes;
  }
  if (plan_.time < 0 && !plan_.clock_lines) time = stamp_.at_round(round_++);
  if (entries_.empty())
    for (const ColumnPlan::Wide& wide : plan_.wide) {
      LogDevice device;
      if (wide.label.starts_with("GPU-"))
        device.uuid = wide.label;
      else if (!wide.label.empty())
        device.text = wide.label + (wide.gpu >= 0 ? "/" + std::to_string(wide.gpu) : "");
      if (wide.gpu >= 0) device.index = wide.gpu;
      auto e = std::make_unique<CsvEntry>();
      e->device = rows.device(device);
      begin_series(*e, wide.further, 0, rows);
      entries_.push_back(std::move(e));
    }
  for (std::size_t i = 0; i < plan_.wide.size(); ++i) {
    CsvEntry& e = *entries_[i];
    if (plan_.wide[i].total >= 0 && field(plan_.wide[i].total) != e.total_text) {
      e.total_text = field(plan_.wide[i].total);
      std::uint64_t total = 0;
      if (logtext::read_amount(e.total_text, total_unit_, total, comma_) == Amount::read) {
        e.total_bytes = total;
        rows.total(time, e.device, total);
      }
    }
    if (wide_used_[i] && !plan_.percent && is_above(*wide_used_[i], e.total_bytes))
      return "used memory above the total";
    if (wide_used_[i]) rows.add(time, e.series, *wide_used_[i]);
    if (!e.further.empty()) add_further(time, e, plan_.wide[i].further, rows);
  }
  return nullptr;
}

}  // namespace vramtrack
