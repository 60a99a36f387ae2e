#include "source/log/csv_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::Amount;
using logtext::excerpt;
using logtext::trim;

constexpr std::size_t kHeaderLines = 50;  ///< how far into a log its header may come
constexpr std::size_t kSurveyRows = 4000;
constexpr std::size_t kMaxFields = 512;
/// A process that is not listed for this many periods has ended.
constexpr double kEndedAfterPeriods = 3.0;

/// What the rows of one series have in common, so that most rows cost a comparison.
struct Entry {
  std::string key;  ///< the identifying fields as written
  std::size_t device = 0;
  SeriesId series{};
  bool has_series = false;
  std::size_t process = SIZE_MAX;
  std::string total_text;  ///< the total column as last written
  std::uint64_t total_bytes = 0;
  std::uint64_t round = 0;  ///< reading last seen in, for logs without a clock
};

class CsvRows final : public LogParser {
 public:
  CsvRows(ColumnPlan plan, StampReader stamp, std::vector<std::string> assumptions) : stamp_(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
    adopt(std::move(plan));
  }

  /// Sets what a title did not say.
  void set_units(std::uint64_t used, double percent_bytes) {
    default_unit_ = used;
    percent_bytes_ = percent_bytes;
    apply_units();
  }
  /// Rows of one reading tell the GPUs apart by their position: `n` of them.
  void set_positions(std::size_t n) { positions_ = n; }

  std::uint64_t parse(std::string_view lines, std::uint64_t line, bool complete, LogRows& rows) override;

  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }
  [[nodiscard]] bool processes_only() const override { return plan_.pid >= 0; }

 private:
  enum class Cut : std::uint8_t { done, short_line, odd };

  void adopt(ColumnPlan plan);
  void apply_units();
  Cut cut(const char* p, const char* end);
  Cut cut_oddly(std::string_view line);
  const char* read_row(LogRows& rows, bool last_is_whole);
  void read_line(std::string_view line, std::uint64_t number, bool complete, LogRows& rows);
  Entry* entry(LogRows& rows, Timestamp time);
  Entry* make_entry(LogRows& rows, Timestamp time);
  Amount read_percent(std::string_view text, double& percent) const;
  bool follow_process(Entry& e, Timestamp time, bool has_bytes, LogRows& rows);
  void advance_process_clock(Timestamp time, LogRows& rows);
  [[nodiscard]] std::string_view field(int column) const { return fields_[static_cast<std::size_t>(column)]; }

  ColumnPlan plan_;
  StampReader stamp_;
  std::uint64_t default_unit_ = logtext::kMiB;
  double percent_bytes_ = static_cast<double>(logtext::kGiB);
  std::uint64_t used_unit_ = 0, free_unit_ = 0, total_unit_ = 0;
  bool comma_ = false;  ///< decimal commas may occur

  std::size_t needed_ = 0;  ///< fields that must be cut from a line
  std::vector<int> key_columns_;
  std::vector<std::string_view> fields_;

  std::vector<std::unique_ptr<Entry>> entries_;
  std::unordered_map<std::string, std::size_t> entry_of_;
  std::size_t last_ = 0;  ///< entry of the row before: the next one usually follows it
  std::string key_buffer_;

  std::size_t positions_ = 0;
  std::size_t position_ = 0;
  Timestamp position_time_{};
  std::uint64_t round_ = 0;
  std::size_t value_length_ = 0;  ///< of the last used field, to tell a truncated one
  std::string stamp_buffer_;

  double process_clock_s_ = 0;  ///< time during which the log was being written
  double process_period_s_ = 0;
  Timestamp process_time_ = LogRows::kNever;
  double checked_s_ = 0;
};

void CsvRows::adopt(ColumnPlan plan) {
  plan_ = std::move(plan);
  comma_ = plan_.delimiter != ',';
  int last = 0;
  for (const int c : {plan_.time, plan_.date, plan_.used, plan_.free, plan_.total, plan_.index, plan_.uuid, plan_.pci,
                      plan_.pid, plan_.process_name, plan_.device_name, plan_.process_kind, plan_.user})
    last = std::max(last, c);
  for (const int c : plan_.series) last = std::max(last, c);
  needed_ = static_cast<std::size_t>(last) + 1;
  // The strongest identity alone is the key: a UUID makes the index redundant, but not the host's name.
  key_columns_.clear();
  if (plan_.uuid >= 0)
    key_columns_.push_back(plan_.uuid);
  else if (plan_.pci >= 0)
    key_columns_.push_back(plan_.pci);
  else if (plan_.index >= 0)
    key_columns_.push_back(plan_.index);
  for (const int c : plan_.series) key_columns_.push_back(c);
  if (plan_.pid >= 0) key_columns_.push_back(plan_.pid);
  if (plan_.pid >= 0 && plan_.process_name >= 0) key_columns_.push_back(plan_.process_name);
  entries_.clear();
  entry_of_.clear();
  last_ = 0;
  apply_units();
}

void CsvRows::apply_units() {
  used_unit_ = plan_.used_unit != 0 ? plan_.used_unit : default_unit_;
  free_unit_ = plan_.free_unit != 0 ? plan_.free_unit : used_unit_;
  total_unit_ = plan_.total_unit != 0 ? plan_.total_unit : used_unit_;
}

CsvRows::Cut CsvRows::cut(const char* p, const char* end) {
  const char delimiter = plan_.delimiter;
  std::size_t n = 0;
  while (true) {
    while (p != end && *p == ' ') ++p;
    if (p != end && *p == '"') return Cut::odd;
    const auto* stop = static_cast<const char*>(std::memchr(p, delimiter, static_cast<std::size_t>(end - p)));
    const char* field_end = stop == nullptr ? end : stop;
    while (field_end != p && field_end[-1] == ' ') --field_end;
    fields_[n++] = {p, static_cast<std::size_t>(field_end - p)};
    if (n == needed_) return Cut::done;
    if (stop == nullptr) return Cut::short_line;
    p = stop + 1;
  }
}

/// Quoted fields, and process names that contain the delimiter (nvidia-smi does not quote them).
CsvRows::Cut CsvRows::cut_oddly(std::string_view line) {
  std::vector<std::string_view> all;
  split_fields(line, plan_.delimiter, all);
  if (plan_.process_name >= 0 && all.size() > plan_.count) {
    const auto name = static_cast<std::size_t>(plan_.process_name);
    const std::size_t extra = all.size() - plan_.count;
    const char* const begin = all[name].data();
    const std::string_view& tail = all[name + extra];
    all[name] = {begin, static_cast<std::size_t>(tail.data() + tail.size() - begin)};
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(name) + 1,
              all.begin() + static_cast<std::ptrdiff_t>(name + extra) + 1);
  }
  if (all.size() < needed_) return Cut::short_line;
  std::copy_n(all.begin(), needed_, fields_.begin());
  return Cut::done;
}

std::uint64_t CsvRows::parse(std::string_view lines, std::uint64_t line, bool complete, LogRows& rows) {
  fields_.resize(std::max(needed_, std::size_t{1}));
  const char* p = lines.data();
  const char* const end = p + lines.size();
  for (; p < end; ++line) {
    const auto* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
    const char* stop = newline == nullptr ? end : newline;
    const char* const next = newline == nullptr ? end : newline + 1;
    while (stop != p && (stop[-1] == '\r' || stop[-1] == ' ')) --stop;
    rows.line = line;
    const bool whole = newline != nullptr || complete;
    // A process name may contain the delimiter: such lines have too many fields.
    const bool plain = whole && (plan_.process_name < 0 ||
                                 static_cast<std::size_t>(std::count(p, stop, plan_.delimiter)) + 1 <= plan_.count);
    if (!plain || cut(p, stop) != Cut::done || read_row(rows, true) != nullptr)
      read_line({p, static_cast<std::size_t>(stop - p)}, line, whole, rows);
    p = next;
  }
  return line;
}

void CsvRows::read_line(std::string_view line, std::uint64_t number, bool complete, LogRows& rows) {
  if (trim(line).empty() || trim(line).front() == '#') return;
  const Cut result = cut_oddly(line);
  const char* reason = nullptr;
  if (result == Cut::done) {
    // A last line without its newline may have been cut anywhere: only one that has all its fields counts.
    bool last_is_whole = true;
    if (!complete) {
      std::vector<std::string_view> all;
      split_fields(line, plan_.delimiter, all);
      const bool used_is_last = plan_.used >= 0 && static_cast<std::size_t>(plan_.used) + 1 == plan_.count;
      last_is_whole = all.size() >= plan_.count && (!used_is_last || field(plan_.used).size() >= value_length_);
    }
    reason = read_row(rows, last_is_whole);
    if (reason == nullptr) return;
  }
  // Not a row: a header again (perhaps of other columns), or broken.
  if (looks_like_header(line, plan_.delimiter)) {
    if (auto plan = plan_header(line, plan_.delimiter)) {
      const bool same_clock = (plan->time >= 0) == (stamp_.kind() != StampReader::Kind::none);
      if (same_clock) {
        if (plan_.has_header && plan->header != plan_.header) adopt(std::move(*plan));
        fields_.resize(std::max(fields_.size(), needed_));
        return;
      }
    }
  }
  if (result == Cut::short_line) {
    rows.skip(number, fmt::format("{}: '{}' has too few fields, {} are needed",
                                  complete ? "not a row" : "truncated last line", excerpt(line), needed_));
  } else {
    rows.skip(number, fmt::format("{} in '{}'", reason, excerpt(line)));
  }
}

/// Reads the cut fields; nullptr when that went well, else the reason.
const char* CsvRows::read_row(LogRows& rows, bool last_is_whole) {
  Timestamp time;
  if (plan_.date >= 0) {
    stamp_buffer_.assign(trim(field(plan_.date)));
    stamp_buffer_ += ' ';
    stamp_buffer_ += trim(field(plan_.time));
    if (!stamp_.read(stamp_buffer_, time)) return "no readable time";
  } else if (plan_.time >= 0 && !stamp_.read(field(plan_.time), time)) {
    return "no readable time";
  }

  std::uint64_t used = 0;
  double percent = 0;
  Amount amount = Amount::missing;
  if (plan_.percent) {
    amount = read_percent(field(plan_.used), percent);
    if (amount == Amount::bad) return "no readable percentage";
  } else if (plan_.used >= 0) {
    amount = logtext::read_amount(field(plan_.used), used_unit_, used, comma_);
    if (amount == Amount::bad) return "no readable amount of used memory";
    if (!last_is_whole) return "truncated last line";
    value_length_ = field(plan_.used).size();
  }
  std::uint64_t free = 0;
  Amount free_amount = Amount::missing;
  if (plan_.free >= 0 && (plan_.used < 0 || plan_.total < 0)) {
    free_amount = logtext::read_amount(field(plan_.free), free_unit_, free, comma_);
    if (plan_.used < 0 && free_amount == Amount::bad) return "no readable amount of free memory";
  }
  if (!last_is_whole) return "truncated last line";

  Entry* const e = entry(rows, time);
  if (e == nullptr) return "no readable identity (gpu, pid)";
  if (plan_.time < 0) {
    // No clock: the same GPU again is the next reading.
    if (e->round == round_ + 1) ++round_;
    e->round = round_ + 1;
    time = stamp_.at_round(round_);
  }

  if (plan_.total >= 0 && field(plan_.total) != e->total_text) {
    e->total_text = field(plan_.total);
    std::uint64_t total = 0;
    if (logtext::read_amount(e->total_text, total_unit_, total, comma_) == Amount::read) {
      e->total_bytes = total;
      rows.total(e->device, total);
    }
  }
  if (plan_.percent) {
    const double scale = e->total_bytes > 0 ? static_cast<double>(e->total_bytes) / 100 : percent_bytes_;
    used = static_cast<std::uint64_t>(std::llround(percent * scale));
  } else if (free_amount == Amount::read) {
    if (plan_.used < 0) {
      if (e->total_bytes >= free && e->total_bytes > 0) {
        used = e->total_bytes - free;
        amount = Amount::read;
      }
    } else if (amount == Amount::read) {
      rows.total(e->device, used + free);
    }
  }

  if (plan_.pid >= 0 && !follow_process(*e, time, amount == Amount::read, rows)) return "no readable pid";
  if (amount == Amount::read) rows.add(time, e->series, used);
  return nullptr;
}

Amount CsvRows::read_percent(std::string_view text, double& percent) const {
  text = trim(text);
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number, comma_)) return logtext::is_missing(text) ? Amount::missing : Amount::bad;
  const std::string_view rest = trim(text.substr(number.length));
  if ((!rest.empty() && rest != "%") || number.negative || number.whole > 100'000) return Amount::bad;
  percent = number.value();
  return Amount::read;
}

/// Keeps the row's process alive, made where it is new; false when its pid cannot be read.
bool CsvRows::follow_process(Entry& e, Timestamp time, bool has_bytes, LogRows& rows) {
  advance_process_clock(time, rows);
  if (e.process == SIZE_MAX || rows.ended(e.process) || (has_bytes && !e.has_series)) {
    const auto pid = logtext::whole_number<std::uint32_t>(trim(field(plan_.pid)));
    if (!pid || *pid == 0) return false;
    const auto text = [&](int column) { return column >= 0 ? trim(field(column)) : std::string_view{}; };
    e.process = rows.process(e.device, *pid, text(plan_.process_name), text(plan_.process_kind), text(plan_.user), {},
                             has_bytes);
    e.has_series = has_bytes;
    if (has_bytes) e.series = rows.process_series(e.process);
  }
  const double before_s = rows.seen_s(e.process);
  if (before_s > 0 && process_clock_s_ > before_s) {
    const double gap_s = process_clock_s_ - before_s;
    process_period_s_ += process_period_s_ <= 0 ? gap_s : (gap_s - process_period_s_) / 16;
  }
  rows.seen(e.process, process_clock_s_);
  return true;
}

/// The clock by which absence is measured runs only while the log is being written: a pause of the logger itself
/// counts as one and a half periods, however long it was, so that it ends no process.
void CsvRows::advance_process_clock(Timestamp time, LogRows& rows) {
  if (process_time_ == LogRows::kNever) {
    process_time_ = time;
    process_clock_s_ = 1e-9;
    return;
  }
  if (time <= process_time_) return;
  const double step_s = seconds_between(process_time_, time);
  process_time_ = time;
  process_clock_s_ += process_period_s_ > 0 ? std::min(step_s, 1.5 * process_period_s_) : step_s;
  if (process_period_s_ <= 0 || process_clock_s_ - checked_s_ < 0.5 * process_period_s_) return;
  checked_s_ = process_clock_s_;
  rows.end_unseen(LogRows::kEveryDevice, process_clock_s_ - kEndedAfterPeriods * process_period_s_, time);
}

/// The entry of the cut row; nullptr when its identity cannot be read.
Entry* CsvRows::entry(LogRows& rows, Timestamp time) {
  if (positions_ > 1) return make_entry(rows, time);
  if (key_columns_.empty()) return entries_.empty() ? make_entry(rows, time) : entries_.front().get();
  if (key_columns_.size() == 1) {
    // Rows of several GPUs come round in the same order: try the one after the last, then the last.
    const std::string_view key = field(key_columns_[0]);
    if (!entries_.empty()) {
      const std::size_t following = last_ + 1 < entries_.size() ? last_ + 1 : 0;
      if (entries_[following]->key == key) {
        last_ = following;
        return entries_[following].get();
      }
      if (entries_[last_]->key == key) return entries_[last_].get();
    }
    key_buffer_.assign(key);
  } else {
    key_buffer_.clear();
    for (const int c : key_columns_) {
      key_buffer_ += field(c);
      key_buffer_ += '\n';
    }
    if (!entries_.empty()) {
      const std::size_t following = last_ + 1 < entries_.size() ? last_ + 1 : 0;
      if (entries_[following]->key == key_buffer_) {
        last_ = following;
        return entries_[following].get();
      }
    }
  }
  const auto found = entry_of_.find(key_buffer_);
  if (found != entry_of_.end()) {
    last_ = found->second;
    return entries_[last_].get();
  }
  return make_entry(rows, time);
}

Entry* CsvRows::make_entry(LogRows& rows, Timestamp time) {
  LogDevice device;
  if (positions_ > 1) {
    // Without any id the GPUs of one reading are told apart by their order in it.
    position_ = seconds_between(position_time_, time) > 0.1 || entries_.empty() ? 0 : position_ + 1;
    position_time_ = time;
    if (position_ >= positions_) return nullptr;
    if (position_ < entries_.size()) return entries_[position_].get();
    position_ = entries_.size();
    device.index = static_cast<int>(position_);
  }
  std::string text;
  for (const int c : plan_.series) {
    if (!text.empty()) text += '/';
    text += trim(field(c));
  }
  if (plan_.uuid >= 0) device.uuid = trim(field(plan_.uuid));
  if (logtext::is_missing(device.uuid)) device.uuid.clear();
  if (plan_.pci >= 0) device.pci_bus_id = normal_pci(field(plan_.pci));
  if (plan_.index >= 0) {
    std::string_view index = trim(field(plan_.index));
    if (index.starts_with("GPU-") || index.starts_with("MIG-")) {
      device.uuid = index;
    } else {
      std::string_view digits = index;
      if (digits.starts_with("cuda:")) digits.remove_prefix(5);
      if (logtext::same_letters(digits.substr(0, 3), "gpu")) digits = trim(digits.substr(3));
      const auto number = logtext::whole_number<int>(digits);
      if (number && *number >= 0 && *number < 4096 && (digits == "0" || digits.front() != '0'))
        device.index = *number;
      else
        text += (text.empty() ? "" : "/") + std::string(index);
    }
  }
  if (!text.empty() && device.index && device.uuid.empty() && device.pci_bus_id.empty())
    text += '/' + std::to_string(*device.index);
  device.text = text;
  if (!device.uuid.empty() || !device.pci_bus_id.empty()) device.text.clear();
  if (plan_.device_name >= 0) device.name = trim(field(plan_.device_name));

  auto e = std::make_unique<Entry>();
  e->key = key_columns_.size() == 1 ? std::string(field(key_columns_[0])) : key_buffer_;
  e->device = rows.device(device);
  if (plan_.pid < 0) {
    e->series = rows.device_series(e->device);
    e->has_series = true;
  }
  entries_.push_back(std::move(e));
  last_ = entries_.size() - 1;
  if (positions_ <= 1 && !key_columns_.empty()) entry_of_.emplace(entries_.back()->key, last_);
  return entries_.back().get();
}

/// The data rows of a head, cut into fields.
std::vector<std::vector<std::string_view>> head_rows(std::string_view head, char delimiter, std::size_t count) {
  std::vector<std::vector<std::string_view>> rows;
  std::vector<std::string_view> fields;
  while (!head.empty() && rows.size() < kSurveyRows) {
    const std::string_view line = logtext::take_line(head);
    if (trim(line).empty() || line.front() == '#' || looks_like_header(line, delimiter)) continue;
    split_fields(line, delimiter, fields);
    if (fields.size() >= count && fields.size() <= kMaxFields) rows.push_back(fields);
  }
  return rows;
}

std::string_view cell(const std::vector<std::string_view>& row, int column) {
  return row[static_cast<std::size_t>(column)];
}

/// The unit of --unit: MB and GB are powers of ten there, since MiB and GiB can be said.
Result<std::uint64_t> unit_of_option(const std::string& unit) {
  if (unit == "MB") return 1'000'000;
  if (unit == "GB") return 1'000'000'000;
  if (const std::uint64_t bytes = logtext::unit_bytes(unit); bytes != 0) return bytes;
  return fail(fmt::format("unit '{}' is not known; use B, KiB, MiB, GiB, MB or GB", unit));
}

/// The unit of a used column whose title has none, from its values.
std::uint64_t guess_unit(const std::vector<std::vector<std::string_view>>& rows, int used, bool comma,
                         std::vector<std::string>& assumptions) {
  double most = 0;
  bool fraction = false;
  for (const auto& row : rows) {
    logtext::Decimal number;
    const std::string_view text = cell(row, used);
    if (!logtext::read_decimal(text, number, comma)) continue;
    if (number.length != text.size()) return logtext::kMiB;  // the values have units
    most = std::max(most, number.value());
    fraction |= number.has_fraction;
  }
  if (rows.empty()) return logtext::kMiB;
  // No GPU has 4 TiB, and none is watched whose use stays below 512 MiB to the fraction of a MiB.
  const std::string_view unit = most >= 4e6 ? "bytes" : fraction && most <= 512 ? "GiB" : "MiB";
  assumptions.push_back(fmt::format(
      "the used column has no unit: {} are assumed from its values (up to {:.6g}); else give --unit", unit, most));
  return unit == "bytes" ? 1 : unit == "GiB" ? logtext::kGiB : logtext::kMiB;
}

/// A column of ids that differs in every row is a row number, not a GPU.
bool is_row_counter(const std::vector<std::vector<std::string_view>>& rows, int column) {
  constexpr std::size_t kRows = 24;
  if (rows.size() < kRows) return false;
  std::vector<std::string_view> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(cell(row, column));
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

/// How many GPUs a log without ids interleaves: the constant number of rows a reading, 1 when there is no such.
std::size_t count_positions(const std::vector<std::vector<std::string_view>>& rows, int time, StampReader stamp) {
  constexpr double kTogether_s = 0.1;
  std::vector<std::size_t> groups;
  Timestamp before{};
  double shortest_gap_s = 1e18;
  for (const auto& row : rows) {
    Timestamp now;
    if (!stamp.read(cell(row, time), now)) continue;
    const double gap_s = seconds_between(before, now);
    if (!groups.empty() && gap_s >= 0 && gap_s <= kTogether_s) {
      ++groups.back();
    } else {
      if (!groups.empty()) shortest_gap_s = std::min(shortest_gap_s, gap_s);
      groups.push_back(1);
    }
    before = now;
  }
  if (groups.size() < 3 || shortest_gap_s < 4 * kTogether_s) return 1;
  groups.pop_back();
  for (const std::size_t n : groups)
    if (n != groups.front()) return 1;
  return groups.front();
}

}  // namespace

std::optional<ColumnPlan> find_header(std::string_view head) {
  for (std::size_t i = 0; i < kHeaderLines && !head.empty(); ++i) {
    std::string_view line = logtext::take_line(head);
    // "# timestamp, memory.used": a commented header.
    while (!line.empty() && (line.front() == '#' || line.front() == ' ')) line.remove_prefix(1);
    const char delimiter = find_delimiter(line);
    const char cut = delimiter == '\0' ? ',' : delimiter;
    if (line.size() > 65'536 || !looks_like_header(line, cut)) continue;
    // One word alone ("memory") is a header only when it says what it is.
    if (delimiter == '\0' && line.find('[') == std::string_view::npos) continue;
    if (auto plan = plan_header(line, cut)) return std::move(*plan);
  }
  return std::nullopt;
}

Result<ColumnPlan> infer_from_head(std::string_view head, std::vector<std::string>& assumptions) {
  std::string_view rest = head;
  char delimiter = '\0';
  std::size_t width = 0;
  std::size_t tried = 0;
  // The first line that looks like the others: the commonest would cost a pass for nothing.
  while (!rest.empty() && tried < kHeaderLines) {
    const std::string_view line = logtext::take_line(rest);
    if (trim(line).empty()) continue;
    ++tried;
    const char c = find_delimiter(line);
    const auto n = static_cast<std::size_t>(std::count(line.begin(), line.end(), c));
    if (c != '\0' && n > width) {
      delimiter = c;
      width = n;
    }
  }
  const char cut = delimiter == '\0' ? ',' : delimiter;
  const auto rows = head_rows(head, cut, width + 1);
  if (rows.empty()) return fail("there is no header line and no row of values");
  if (rows.front().size() > kMaxFields) return fail("more than 512 columns: not a log of memory");
  return infer_columns(rows, cut, assumptions);
}

Result<std::unique_ptr<LogParser>> make_csv_parser(const LogHead& head, bool strict) {
  std::vector<std::string> assumptions;
  ColumnPlan plan;
  if (auto header = find_header(head.text)) {
    plan = std::move(*header);
  } else {
    // A first line of words is a header that lacks the column; say so rather than infer.
    std::string_view rest = head.text;
    const std::string_view first = logtext::take_line(rest);
    const char delimiter = find_delimiter(first);
    const bool titles = delimiter != '\0' && std::none_of(first.begin(), first.end(), logtext::is_digit);
    if (titles) {
      auto refused = plan_header(first, delimiter);
      if (!refused) return fail(std::move(refused.error()));
    }
    auto inferred = infer_from_head(head.text, assumptions);
    if (!inferred) return fail(std::move(inferred.error()));
    plan = std::move(*inferred);
  }
  if (plan.count > kMaxFields) return fail("more than 512 columns: not a log of memory");

  const auto rows = head_rows(head.text, plan.delimiter, plan.count);
  const bool comma = plan.delimiter != ',';

  if (plan.index >= 0 && is_row_counter(rows, plan.index)) {
    assumptions.emplace_back("the index column numbers the rows: it is not read as a GPU's index");
    if (plan.time < 0) {
      plan.time = plan.index;
      plan.time_title.step = true;
    }
    plan.index = -1;
  }
  std::erase_if(plan.series, [&](int column) { return is_row_counter(rows, column); });

  // "date,time" in two columns, unless the time column has the date in it.
  if (plan.date >= 0 && !rows.empty()) {
    Civil civil;
    const std::string_view text = cell(rows.front(), plan.time);
    if (!read_civil(text, DateOrder::month_first, civil) || civil.has_date) plan.date = -1;
  }

  StampReader stamp;
  if (plan.time < 0) {
    stamp = StampReader::without_clock(*head.options, assumptions);
  } else {
    constexpr std::size_t kEnds = 300;
    std::vector<std::string> joined;
    std::vector<std::string_view> samples;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i >= kEnds && i + kEnds < rows.size()) continue;
      if (plan.date >= 0)
        joined.push_back(std::string(cell(rows[i], plan.date)) + ' ' + std::string(cell(rows[i], plan.time)));
      else
        samples.push_back(cell(rows[i], plan.time));
    }
    for (const std::string& text : joined) samples.emplace_back(text);
    if (samples.empty()) samples.emplace_back("2000-01-01 00:00:00");
    auto detected = StampReader::detect(samples, plan.time_title, *head.options, *head.zone, assumptions);
    if (!detected) return fail(std::move(detected.error()));
    stamp = std::move(*detected);
  }

  std::uint64_t unit = logtext::kMiB;
  if (!head.options->unit.empty()) {
    const auto given = unit_of_option(head.options->unit);
    if (!given) return fail(given.error());
    unit = *given;
  } else if (!plan.percent && plan.used >= 0 && plan.used_unit == 0 && !strict) {
    unit = guess_unit(rows, plan.used, comma, assumptions);
  }
  double percent_bytes = static_cast<double>(logtext::kGiB);
  if (plan.percent && plan.total < 0) {
    if (head.options->capacity_bytes) {
      percent_bytes = static_cast<double>(*head.options->capacity_bytes) / 100;
    } else {
      assumptions.emplace_back(
          "the used column is a percentage: 1 % is shown as 1 GiB, a nominal scale; give --capacity for true sizes");
    }
  }

  std::size_t positions = 1;
  if (plan.index < 0 && plan.uuid < 0 && plan.pci < 0 && plan.pid < 0 && plan.series.empty() && plan.time >= 0 &&
      plan.date < 0)
    positions = count_positions(rows, plan.time, stamp);
  if (positions > 1)
    assumptions.push_back(
        fmt::format("{} rows a reading and no GPU index: the rows are taken for {} GPUs in that order; "
                    "record index or uuid as well",
                    positions, positions));

  auto parser = std::make_unique<CsvRows>(std::move(plan), std::move(stamp), std::move(assumptions));
  parser->set_units(unit, percent_bytes);
  parser->set_positions(positions);
  return parser;
}

}  // namespace vramtrack
