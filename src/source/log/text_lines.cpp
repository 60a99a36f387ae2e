// Reads lines of free text as planned: finds their figures, and assigns them to a time and a series.
#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "core/pci_address.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/line_prefix.hpp"
#include "source/log/owners.hpp"
#include "source/log/positioned_rows.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

class TextLines final : public LineReader {
 public:
  /// `has_capacity`: the user has given the total memory of the GPUs.
  TextLines(PlannedText planned, LineCutter cutter, bool has_capacity, std::vector<std::string> assumptions);

  void finish(LogRows& rows) override;
  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }
  [[nodiscard]] bool clock_wraps() const override { return stamp_.wraps(); }
  [[nodiscard]] bool processes_only() const override { return plan_.pid_is_process; }
  [[nodiscard]] std::string_view needs_file_order() const override {
    if (held_.gpus() > 1) return "its rows do not name the GPU";
    if (plan_.in_blocks) return "several lines make a reading";
    return borrows_time_ ? "some of its rows have no time of their own" : std::string_view{};
  }
  [[nodiscard]] Scale scale() const override;

 private:
  void read_line(std::string_view raw, std::uint64_t number, bool whole, LogRows& rows) override;
  void end_reading(LogRows& rows) override {
    flush(rows);
    if (held_.is_complete()) end_held(rows);
  }
  Timestamp time_of_message(std::string_view line) override;
  std::string count_of_line();
  void read_clock(LogRows& rows);
  void read_time(std::string_view text, LogRows& rows);
  void name(TextFigures& out, int gpu) const;
  void skip_line(std::string_view line, std::uint64_t number);
  void take(TextFigures figures, LogRows& rows);
  void flush(LogRows& rows);
  bool has_time(std::size_t device, std::uint32_t pid);
  /// Figures of a line that names no GPU.
  struct HeldFigures {
    Timestamp time;
    std::uint64_t line = 0;
    TextFigures figures;
  };
  void end_held(LogRows& rows, bool at_end = false);
  void emit(TextFigures& figures, LogRows& rows);

  StampReader stamp_;
  WordPlan plan_;
  std::function<std::string()> correction_;  ///< see PlannedText
  LineCutter cutter_;
  LineFigures found_;
  int head_gpu_ = -1;
  EpochCounter counter_;
  std::uint64_t epoch_ = 0;  ///< as last given
  std::uint64_t skipped_ = 0;
  std::uint64_t last_read_ = 0;
  std::uint64_t otherwise_ = 0;  ///< lines after the last reading that give memory in use in other words
  std::uint64_t first_otherwise_ = 0;
  std::string first_otherwise_text_;
  std::uint64_t doubled_ = 0, first_doubled_ = 0;  ///< figures of one kind next to another in their line

  Timestamp time_{};
  std::vector<TextFigures> pending_;
  std::map<int, std::uint64_t> index_totals_;  ///< by index, from lines without a reading
  std::uint64_t most_free_bytes_ = 0;          ///< see PlannedText
  bool are_events_ = false;                    ///< see PlannedText
  bool has_capacity_ = false;                  ///< that, or --capacity, stands for a total that is not given
  PositionedRows<HeldFigures> held_;
  bool stamped_ = false;
  bool is_own_ = false;        ///< the time is in the line being read
  bool borrows_time_ = false;  ///< some line had no time of its own
  std::uint64_t round_ = 0;
  std::vector<std::pair<std::size_t, std::uint32_t>> in_round_;
};

constexpr std::string_view kNoTime = "no line with a time before it";
/// From this many lines with memory in use in other words on, the form of the log has changed.
constexpr std::uint64_t kGoesOnOtherwise = 20;

bool is_same_gpu(const TextFigures& a, const TextFigures& b) {
  return a.gpu.uuid == b.gpu.uuid && a.gpu.index == b.gpu.index && a.gpu.text == b.gpu.text && a.pid == b.pid;
}

}  // namespace

TextLines::TextLines(PlannedText planned, LineCutter cutter, bool has_capacity, std::vector<std::string> assumptions)
    : stamp_(std::move(planned.stamp)),
      plan_(std::move(planned.plan)),
      correction_(std::move(planned.correction)),
      cutter_(std::move(cutter)),
      most_free_bytes_(planned.most_free_bytes),
      are_events_(planned.are_events),
      has_capacity_(planned.most_free_bytes > 0 || has_capacity),
      held_(planned.unnamed_gpus) {
  assumptions_ = std::move(assumptions);
}

Scale TextLines::scale() const {
  Scale scale = stamp_.scale();
  if (plan_.unit_unknown)
    scale.count(AmountUnit::unknown,
                static_cast<double>(plan_.open_unit_bytes != 0 ? plan_.open_unit_bytes : plan_.unit_bytes));
  return scale;
}

void TextLines::finish(LogRows& rows) {
  flush(rows);
  end_held(rows, true);
  if (!correction_ || !rows.has_notes()) return;  // with a pattern, the user knows what is read
  rows.warn(
      fmt::format("{}; {} other line{} skipped; {}", plan_.read_as, skipped_, skipped_ == 1 ? "" : "s", correction_()));
  if (doubled_ > 0)
    rows.warn(fmt::format("{} figure{} of a kind that {} line already gave {} not read, first on line {}", doubled_,
                          doubled_ == 1 ? "" : "s", doubled_ == 1 ? "its" : "their", doubled_ == 1 ? "was" : "were",
                          first_doubled_));
  if (otherwise_ >= kGoesOnOtherwise)
    rows.warn(
        fmt::format("no reading is behind line {}, although {} lines there give memory in use in other words, first "
                    "line {}: '{}'; "
                    "they are not read: analyze them by themselves, or describe them with {}",
                    last_read_, otherwise_, first_otherwise_, first_otherwise_text_, name_of(Option::line_pattern)));
}

void TextLines::read_line(std::string_view raw, std::uint64_t number, bool whole, LogRows& rows) {
  if (!whole) return;
  if (are_events_) rows.expect_events();
  const std::string_view line = cutter_.line(raw);
  cutter_.cut(line, plan_.grouping, found_);
  if (plan_.unclear) found_.figures.swap(found_.unclear);
  plan_.use_peaks(found_);
  plan_.convert_ratios(found_);
  if (!plan_.tag.empty()) found_.tag = field_of(line, plan_.tag);
  read_clock(rows);
  if (!cutter_.fault().empty()) return rows.skip(number, fmt::format("{} in '{}'", cutter_.fault(), excerpt(line)));
  for (const MemoryFigure& f : found_.capacities) index_totals_[f.gpu] = f.bytes(1);
  // Figures of one GPU make one reading; each GPU of the line has its own.
  std::vector<int> gpus;
  for (const MemoryFigure& f : found_.figures)
    if (plan_.takes(f) && std::find(gpus.begin(), gpus.end(), f.gpu) == gpus.end()) gpus.push_back(f.gpu);
  if (gpus.empty()) return skip_line(line, number);
  if (!cutter_.pattern() && plan_.is_other_list(found_))
    return rows.skip(number, reading_of_another_size(found_.listed, plan_.listed));
  last_read_ = number;
  otherwise_ = 0;
  if (!plan_.tag.empty() && found_.tag.empty())
    return rows.skip(number, "no name of the kind that says whose the figures of the other lines are");
  if (plan_.pid_is_process && !cutter_.pattern() && found_.pid == 0U) return rows.skip(number, kNoPid);
  for (const int gpu : gpus) {
    TextFigures out;
    out.line = number;
    out.memory.most_free_bytes = most_free_bytes_;
    name(out, gpu);
    for (const MemoryFigure& f : found_.figures) {
      if (f.gpu != gpu || !plan_.takes(f)) continue;
      if (f.percent) {
        out.memory.percent = plan_.free_percents ? 100 - f.number : f.number;
        continue;
      }
      std::optional<std::uint64_t>& into = out.of(f.role);
      if (into) {
        ++doubled_;  // the first one is read, as the warning about the others says
        if (doubled_ == 1) first_doubled_ = number;
        continue;
      }
      into = plan_.bytes(f);
      out.memory.grain_bytes = std::max(out.memory.grain_bytes, plan_.unit_bytes_of(f));
    }
    take(std::move(out), rows);
  }
}

/// A line without a figure that is read.
void TextLines::skip_line(std::string_view line, std::uint64_t number) {
  if (plan_.heads_name_gpu && found_.gpu >= 0) head_gpu_ = found_.gpu;
  if (!trim(line).empty()) ++skipped_;
  const bool is_used = std::any_of(found_.figures.begin(), found_.figures.end(),
                                   [](const MemoryFigure& f) { return f.role == Meaning::used && !f.percent; });
  if (!is_used || otherwise_++ > 0) return;
  first_otherwise_ = number;
  first_otherwise_text_ = excerpt(trim(line));
}

Timestamp TextLines::time_of_message(std::string_view line) {
  Timestamp time;
  const bool has_times =
      !plan_.counted && !plan_.elapsed && !plan_.no_stamps && stamp_.kind() != StampReader::Kind::none;
  return has_times && stamp_.read(find_stamp(line), time) ? time : LogRows::kNever;
}

/// As a plain number: "1,200" is written differently.
std::string TextLines::count_of_line() {
  if (plan_.count_in_epochs) epoch_ = count_of(found_, Meaning::epoch).value_or(epoch_);
  const auto count = count_of(found_, *plan_.counted);
  return count ? std::to_string(counter_.next(*count, epoch_)) : std::string();
}

void TextLines::read_clock(LogRows& rows) {
  if (plan_.counted)
    read_time(count_of_line(), rows);
  else if (plan_.elapsed)
    read_time(stamp_of(found_.elapsed), rows);
  else if (!plan_.no_stamps)
    read_time(found_.stamp.empty() && plan_.minutes ? found_.minute : found_.stamp, rows);
}

/// Takes the time in `text` as the current one, if there is one.
void TextLines::read_time(std::string_view text, LogRows& rows) {
  is_own_ = false;
  Timestamp time;
  if (stamp_.kind() == StampReader::Kind::none || !stamp_.read(text, time)) return;
  if (time != time_) flush(rows);
  time_ = time;
  stamped_ = is_own_ = true;
  rows.row_time(time);
}

/// Without a clock, the next reading begins when a series repeats.
bool TextLines::has_time(std::size_t device, std::uint32_t pid) {
  if (stamp_.kind() != StampReader::Kind::none) return stamped_;
  const std::pair<std::size_t, std::uint32_t> series{device, pid};
  if (std::find(in_round_.begin(), in_round_.end(), series) != in_round_.end()) {
    ++round_;
    in_round_.clear();
  }
  in_round_.push_back(series);
  time_ = stamp_.at_round(round_);
  return true;
}

/// Delivers the lines of one time that name no GPU. `at_end`: of the log.
void TextLines::end_held(LogRows& rows, bool at_end) {
  const Timestamp time = time_;
  held_.end(rows, at_end, [&](HeldFigures& held, std::size_t position) {
    held.figures.gpu.index = static_cast<int>(position);
    held.figures.is_named = true;
    time_ = held.time;
    emit(held.figures, rows);
  });
  time_ = time;
}

void TextLines::name(TextFigures& out, int gpu) const {
  if (cutter_.pattern()) return cutter_.name(out);
  if (plan_.pid_is_process) out.pid = found_.pid;
  const std::string_view origin = found_.uuid.empty() ? plan_.origin(found_) : std::string_view{};
  const bool is_below_heading = gpu < 0 && plan_.heads_name_gpu && origin.empty() && found_.uuid.empty();
  if (is_below_heading) gpu = head_gpu_;
  out.is_named = gpu >= 0 || !origin.empty() || !found_.uuid.empty();
  if (gpu >= 0) out.gpu.index = gpu;
  if (origin.empty() && found_.uuid.empty()) return;
  OwnerIds ids;
  ids.uuid = found_.uuid;
  const std::string index = gpu >= 0 ? std::to_string(gpu) : std::string();
  ids.index = index;
  const std::string pci = origin.find(':') == std::string_view::npos ? std::string() : pci_address_of(origin);
  ids.pci_bus_id = pci;
  // A number alone, or that of a rank, is that of the GPU.
  const bool is_index = (gpu < 0 && logtext::whole_number<int>(origin)) || origin == index;
  if (pci.empty()) (is_index ? ids.index : ids.origin) = origin;
  out.gpu = device_of(ids);
}

/// Adds the fields of a line to the current reading. If one may span several lines, it ends when another time begins,
/// or when a figure repeats.
void TextLines::take(TextFigures figures, LogRows& rows) {
  figures.is_timed = is_own_;
  if (!plan_.in_blocks) return emit(figures, rows);
  for (TextFigures& known : pending_) {
    if (!is_same_gpu(known, figures)) continue;
    if (known.memory.take(figures.memory)) return;
    flush(rows);
    break;
  }
  pending_.push_back(std::move(figures));
}

/// Delivers incomplete readings with the fields known so far.
void TextLines::flush(LogRows& rows) {
  const std::uint64_t line = rows.line;
  for (TextFigures& figures : pending_) {
    rows.line = figures.line;
    emit(figures, rows);
  }
  rows.line = line;
  pending_.clear();
}

void TextLines::emit(TextFigures& f, LogRows& rows) {
  GpuMemory& memory = f.memory;
  const bool has_use = memory.used || memory.allocated || memory.reserved || memory.percent;
  const bool has_free = memory.free && (memory.total || has_capacity_);
  if (!f.is_named && !f.pid) {
    // A line that has only a total is not part of a reading.
    if (held_.gpus() > 1 && (has_use || has_free)) {
      if (!stamped_) return rows.skip(f.line, kNoTime);
      borrows_time_ |= !f.is_timed;
      if (held_.is_of_other_reading(time_)) end_held(rows);
      held_.reading().push_back({time_, f.line, f});
      return;
    }
    f.gpu.index = 0;
  }
  const std::size_t device = rows.device(f.gpu);
  const bool knows_total = rows.total_of(device) > 0;
  const bool is_total = memory.total && !has_use && !has_free;  // and nothing else
  if (is_total && (!knows_total || stamped_ || stamp_.kind() == StampReader::Kind::none))
    rows.total(time_, device, *memory.total);
  const auto known = index_totals_.find(f.gpu.index.value_or(-1));
  if (!memory.total && !knows_total && known != index_totals_.end()) memory.total = known->second;
  if (is_total || (!has_use && !(memory.free && (has_free || knows_total || memory.total)))) return;
  borrows_time_ |= stamp_.kind() != StampReader::Kind::none && !f.is_timed;
  if (!has_time(device, f.pid.value_or(0))) return rows.skip(f.line, kNoTime);
  if (const char* const why = rows.complete(time_, device, memory)) rows.skip(f.line, why);
  if (!f.pid) return rows.add(time_, device, memory, 0);
  rows.add_allocator(time_, device, memory, *f.pid);
  const std::size_t process = rows.process(device, *f.pid, f.name, {}, f.user, f.name, memory.used.has_value());
  if (memory.used) rows.add(time_, rows.process_series(process), *memory.used);
}

std::unique_ptr<LogParser> make_text_lines(PlannedText planned, LineCutter cutter, bool has_capacity,
                                           std::vector<std::string> assumptions) {
  return std::make_unique<TextLines>(std::move(planned), std::move(cutter), has_capacity, std::move(assumptions));
}

}  // namespace vramtrack
