// Text for people that tells the use of GPU memory among other things: lines that --line-pattern describes, or, without
// it, lines with a pair of used and total memory ("GPU Memory: 8123 / 24576 MB"). The time stands in the line, or in
// the last line before it that has one.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/units.hpp"
#include "source/log/dumps.hpp"
#include "source/log/interleave.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/memory_pair.hpp"
#include "source/log/stamp_search.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::Amount;
using logtext::excerpt;
using logtext::trim;

/// What the lines of both kinds have in common: the clock.
class TextLines : public LineParser {
 public:
  TextLines(StampReader stamp, std::vector<std::string> assumptions) : LineParser(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
  }

  [[nodiscard]] std::string_view needs_file_order() const final {
    if (places_ > 1) return "its rows do not name the GPU";
    return borrows_time_ ? "some of its rows have no time of their own" : std::string_view{};
  }

 protected:
  /// Takes over the time of a line that stands in `text`, if one does.
  void read_time(std::string_view text, LogRows& rows) {
    is_own_ = false;
    Timestamp time;
    if (stamp_.kind() == StampReader::Kind::none || !stamp_.read(text, time)) return;
    time_ = time;
    stamped_ = is_own_ = true;
    rows.row_time(time);
  }
  /// Without a clock, a series that comes again begins the next reading.
  bool has_time(std::size_t device, std::uint32_t pid) {
    if (stamp_.kind() != StampReader::Kind::none) {
      borrows_time_ |= !is_own_;
      return stamped_;
    }
    const std::pair<std::size_t, std::uint32_t> series{device, pid};
    if (std::find(in_round_.begin(), in_round_.end(), series) != in_round_.end()) {
      ++round_;
      in_round_.clear();
    }
    in_round_.push_back(series);
    time_ = stamp_.at_round(round_);
    return true;
  }

  /// The index of a GPU that its line does not name: its place among the lines of one time. nullopt: beyond the last.
  std::optional<int> place() {
    if (places_ <= 1) return 0;
    place_ = time_ == place_time_ ? place_ + 1 : 0;
    place_time_ = time_;
    if (place_ >= places_) return std::nullopt;
    return static_cast<int>(place_);
  }

  Timestamp time_{};

 public:
  /// Each time has lines of `n` GPUs that they do not name.
  void expect_places(std::size_t n) { places_ = n; }

 private:
  std::size_t places_ = 1;
  std::size_t place_ = 0;
  Timestamp place_time_ = LogRows::kNever;
  bool stamped_ = false;
  bool is_own_ = false;        ///< the time stands in the line that is read
  bool borrows_time_ = false;  ///< of some line it did not
  std::uint64_t round_ = 0;
  std::vector<std::pair<std::size_t, std::uint32_t>> in_round_;
};

/// A line of the head whose GPU has no name.
struct Unnamed {
  std::string_view stamp;
  double used_bytes = 0;
};

/// How many GPUs the lines are of: by the constant number of lines a time. Without times, an Error where the use
/// jumps from line to line as that of several does.
Result<std::size_t> count_places(const std::vector<Unnamed>& lines, std::vector<std::string>& assumptions) {
  if (lines.size() < 3 || lines.front().stamp.empty()) {
    std::vector<double> used;
    for (const Unnamed& line : lines) used.push_back(line.used_bytes);
    if (const std::size_t n = count_interleaved(used); n > 1)
      return fail(fmt::format(
          "the lines seem to be of {} GPUs in turn, and neither name them nor have a time; pass --line-pattern with a "
          "group gpu, or record the time of each reading",
          n));
    return 1;
  }
  std::vector<std::size_t> groups;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 && lines[i].stamp == lines[i - 1].stamp)
      ++groups.back();
    else
      groups.push_back(1);
  }
  if (groups.size() < 3) return 1;
  groups.pop_back();
  const bool constant = std::all_of(groups.begin(), groups.end(), [&](std::size_t n) { return n == groups.front(); });
  if (!constant || groups.front() == 1) return 1;
  assumptions.push_back(fmt::format(
      "{} lines per time and no GPU index: they are taken for {} GPUs in that order; name them in a group gpu of "
      "--line-pattern",
      groups.front(), groups.front()));
  return groups.front();
}

constexpr std::string_view kNoTime = "no line with a time before it";
constexpr std::string_view kAbove = "used memory above the total";

/// Whether two pairs are of one GPU, and nothing says which of them is meant.
bool is_ambiguous(const std::vector<MemoryPair>& pairs) {
  for (std::size_t i = 1; i < pairs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (pairs[i].gpu == pairs[j].gpu) return true;
  return false;
}

class PairLines final : public TextLines {
 public:
  using TextLines::TextLines;

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    if (!whole) return;
    read_time(find_stamp(line), rows);
    find_memory_pairs(line, pairs_);
    if (is_ambiguous(pairs_))
      return rows.skip(number, fmt::format("several pairs of used and total memory in '{}'", excerpt(line)));
    for (const MemoryPair& pair : pairs_) {
      LogDevice gpu;
      gpu.index = pair.gpu >= 0 ? pair.gpu : place();
      if (!gpu.index) return rows.skip(number, fmt::format("one GPU more than at other times: '{}'", excerpt(line)));
      const std::size_t device = rows.device(gpu);
      if (!has_time(device, 0)) return rows.skip(number, kNoTime);
      rows.total(time_, device, pair.total_bytes);
      rows.add(time_, rows.device_series(device), pair.used_bytes);
    }
  }

  std::vector<MemoryPair> pairs_;
};

class PatternLines final : public TextLines {
 public:
  PatternLines(LinePattern pattern, std::uint64_t unit, bool has_pid, StampReader stamp,
               std::vector<std::string> assumptions)
      : TextLines(std::move(stamp), std::move(assumptions)),
        pattern_(std::move(pattern)),
        unit_(unit),
        has_pid_(has_pid) {}

  [[nodiscard]] bool processes_only() const override { return has_pid_; }

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    if (!whole) return;
    TextReading reading;
    const bool matches = pattern_.read(line, reading);
    if (!pattern_.has_time())
      read_time(find_stamp(line), rows);
    else if (matches)
      read_time(trim(reading.time), rows);
    if (!matches) return;

    std::uint64_t used = 0;
    std::uint64_t total = 0;
    std::uint64_t free = 0;
    const Amount has_used = amount(reading.used, used);
    const Amount has_total = amount(reading.total, total);
    const Amount has_free = amount(reading.free, free);
    for (const Amount read : {has_used, has_total, has_free})
      if (read == Amount::bad) return rows.skip(number, fmt::format("no readable amount in '{}'", excerpt(line)));
    bool known = has_used == Amount::read;
    if (!known && has_free == Amount::read && has_total == Amount::read && free <= total) {
      used = total - free;
      known = true;
    }
    if (has_total != Amount::read && known && has_free == Amount::read) total = used + free;
    if (known && total > 0 && used > total + total / 20)
      return rows.skip(number, fmt::format("{} in '{}'", kAbove, excerpt(line)));

    LogDevice gpu = named(reading);
    if (reading.gpu.empty() && gpu.uuid.empty() && reading.pid.empty()) {
      gpu.index = place();
      if (!gpu.index) return rows.skip(number, fmt::format("one GPU more than at other times: '{}'", excerpt(line)));
    }
    const std::size_t device = rows.device(gpu);
    const auto pid = logtext::whole_number<std::uint32_t>(trim(reading.pid));
    if (!reading.pid.empty() && !pid) return rows.skip(number, fmt::format("no readable pid in '{}'", excerpt(line)));
    if (!has_time(device, pid.value_or(0))) return rows.skip(number, kNoTime);
    if (total > 0) rows.total(time_, device, total);
    if (!pid) {
      if (known) rows.add(time_, rows.device_series(device), used);
      return;
    }
    const std::size_t process =
        rows.process(device, *pid, trim(reading.name), {}, trim(reading.user), trim(reading.name), known);
    if (known) rows.add(time_, rows.process_series(process), used);
  }

  Amount amount(std::string_view text, std::uint64_t& bytes) const {
    text = trim(text);
    return text.empty() ? Amount::missing : logtext::read_amount(text, unit_, bytes, true);
  }

  static LogDevice named(const TextReading& reading) {
    LogDevice gpu;
    gpu.uuid = trim(reading.uuid);
    const std::string_view text = trim(reading.gpu);
    const auto index = logtext::whole_number<int>(text);
    if (index && *index >= 0 && *index < 4096)
      gpu.index = *index;
    else if (text.empty())
      gpu.index = 0;
    else
      gpu.text = text;
    if (reading.pid.empty()) gpu.name = trim(reading.name);
    return gpu;
  }

  LinePattern pattern_;
  std::uint64_t unit_;
  bool has_pid_;
};

/// The times of a head: of the lines that `of` finds one in.
template <class Of>
Result<StampReader> settle_clock(const LogHead& head, Of of, std::vector<std::string>& assumptions) {
  constexpr std::size_t kMost = 600;
  std::vector<std::string_view> samples;
  std::string_view rest = head.text;
  while (!rest.empty() && samples.size() < kMost)
    if (const std::string_view stamp = of(logtext::take_line(rest)); !stamp.empty()) samples.push_back(stamp);
  if (samples.empty()) return StampReader::without_clock(*head.options, assumptions);
  return StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
}

Result<std::unique_ptr<LogParser>> make_by_pattern(const LogHead& head) {
  auto pattern = LinePattern::compile(head.options->line_pattern);
  if (!pattern) return fail(std::move(pattern.error()));
  std::vector<std::string> assumptions;
  std::vector<std::string_view> used;
  std::vector<Unnamed> unnamed;
  std::string_view stamp_text;
  std::string_view first;
  std::string_view rest = head.text;
  while (!rest.empty()) {
    const std::string_view line = logtext::take_line(rest);
    if (trim(first).empty()) first = line;
    TextReading reading;
    const bool matches = pattern->read(line, reading);
    const std::string_view stamp = !pattern->has_time() ? find_stamp(line)
                                   : matches            ? reading.time
                                                        : std::string_view{};
    if (!stamp.empty()) stamp_text = stamp;
    if (!matches) continue;
    used.push_back(trim(reading.used.empty() ? reading.free : reading.used));
    logtext::Decimal number;
    if (reading.gpu.empty() && reading.uuid.empty() && reading.pid.empty() &&
        logtext::read_decimal(used.back(), number))
      unnamed.push_back({stamp_text, number.value()});
  }
  if (used.empty())
    return fail(fmt::format("no line of the first 256 KiB matches --line-pattern '{}'; the first line is '{}'",
                            head.options->line_pattern, excerpt(first, 160)));
  std::uint64_t unit = kBytesPerMiB;
  if (!head.options->unit.empty()) {
    const auto given = unit_of(*head.options);
    if (!given) return fail(given.error());
    unit = *given;
  } else {
    unit = guess_unit(used, true, assumptions);
  }
  const auto stamp_of = [&](std::string_view line) {
    if (!pattern->has_time()) return find_stamp(line);
    TextReading reading;
    return pattern->read(line, reading) ? trim(reading.time) : std::string_view{};
  };
  auto stamp = settle_clock(head, stamp_of, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto places = count_places(unnamed, assumptions);
  if (!places) return fail(places.error());
  const bool has_pid = pattern->has_pid();
  auto parser =
      std::make_unique<PatternLines>(std::move(*pattern), unit, has_pid, std::move(*stamp), std::move(assumptions));
  parser->expect_places(*places);
  return parser;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (!head.options->line_pattern.empty()) return make_by_pattern(head);
  std::vector<std::string> assumptions;
  std::vector<MemoryPair> pairs;
  std::vector<Unnamed> unnamed;
  std::string_view stamp_text;
  std::string_view rest = head.text;
  bool found = false;
  bool bare = false;
  while (!rest.empty()) {
    const std::string_view line = logtext::take_line(rest);
    if (const std::string_view stamp = find_stamp(line); !stamp.empty()) stamp_text = stamp;
    find_memory_pairs(line, pairs);
    if (pairs.empty()) continue;
    if (!found && is_ambiguous(pairs))
      return fail("a line has several pairs of used and total memory; pass --line-pattern to say which is meant");
    found = true;
    bare |= pairs.front().bare;
    if (pairs.front().gpu < 0) unnamed.push_back({stamp_text, static_cast<double>(pairs.front().used_bytes)});
  }
  if (!found)
    return fail(
        "no line has a pair of used and total GPU memory with a unit, such as 'GPU Memory: 8123 / 24576 MB'; pass "
        "--line-pattern to say what a line holds");
  if (bare)
    assumptions.emplace_back(
        "pairs such as '841MiB / 8192MiB' are read as used and total GPU memory; pass --line-pattern if they are not");
  auto stamp = settle_clock(head, find_stamp, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto places = count_places(unnamed, assumptions);
  if (!places) return fail(places.error());
  auto parser = std::make_unique<PairLines>(std::move(*stamp), std::move(assumptions));
  parser->expect_places(*places);
  return parser;
}

/// By a few lines that have pairs: one alone is a word in passing.
int recognise(std::string_view head) {
  constexpr std::size_t kLooked = 2000;
  std::vector<MemoryPair> pairs;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < kLooked && !head.empty() && lines < 2; ++i) {
    find_memory_pairs(logtext::take_line(head), pairs);
    if (!pairs.empty()) ++lines;
  }
  return lines >= 2 ? 34 : lines == 1 ? 4 : 0;
}

}  // namespace

extern const LogFormatInfo text_log_format;
const LogFormatInfo text_log_format{"text", "lines of any text with used and total memory, or as --line-pattern says",
                                    recognise, make, each_line_is_a_record};

}  // namespace vramtrack
