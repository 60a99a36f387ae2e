// Reads lines according to --line-pattern.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/line_start.hpp"
#include "source/log/text_lines.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::Amount;
using logtext::excerpt;
using logtext::trim;

/// How to interpret amounts such as "4.000 MB".
struct Numbers {
  Grouping grouping = Grouping::by_comma;
  std::uint64_t open_unit_bytes = 0;  ///< of those, if nothing shows their grouping
};

std::size_t digits_of(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789.,"), text.size());
}

/// Reads an amount as people write it: see find_figures().
Amount read_written(std::string_view text, std::uint64_t unit, Numbers numbers, std::uint64_t& bytes) {
  text = trim(text);
  if (text.empty()) return Amount::missing;
  const std::size_t digits = digits_of(text);
  std::uint64_t written = written_unit(trim(text.substr(digits)));
  const std::size_t comma = text.find(',');
  if (digits == 0 || (written == 0 && comma == std::string_view::npos && numbers.grouping == Grouping::by_comma))
    return logtext::read_amount(text, unit, bytes, true);
  MemoryFigure figure;
  figure.number = read_number(text.substr(0, digits), written != 0 ? written : unit, numbers.grouping);
  if (written != 0 && numbers.open_unit_bytes != 0 && is_open_number(text.substr(0, digits), written))
    written = numbers.open_unit_bytes;
  figure.unit_bytes = written;
  if (figure.number < 0 || (written == 0 && digits != text.size())) return Amount::bad;
  bytes = figure.bytes(unit);
  return Amount::read;
}

class PatternLines final : public TextLines {
 public:
  PatternLines(LinePattern pattern, std::uint64_t unit, Numbers numbers, StampReader stamp,
               std::vector<std::string> assumptions)
      : TextLines(std::move(stamp), std::move(assumptions)),
        pattern_(std::move(pattern)),
        unit_(unit),
        numbers_(numbers) {}

  [[nodiscard]] bool processes_only() const override { return pattern_.has_pid(); }

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    if (!whole) return;
    TextReading reading;
    const bool matches = pattern_.read(line, reading);
    if (pattern_.has_time() || pattern_.has_step()) {
      if (matches && !(reading.time.empty() && reading.step.empty()))
        read_time(trim(reading.time.empty() ? reading.step : reading.time), rows);
    } else {
      read_time(find_stamp(line), rows);
    }
    if (!matches) return;

    TextFigures f;
    f.line = number;
    const auto amount = [&](std::string_view text, std::optional<std::uint64_t>& into) {
      std::uint64_t bytes = 0;
      const Amount read = read_written(text, unit_, numbers_, bytes);
      if (read == Amount::read) into = bytes;
      return read != Amount::bad;
    };
    const bool is_percent = trim(reading.used).ends_with('%');
    if (is_percent) {
      logtext::Decimal percent;
      if (logtext::read_decimal(trim(reading.used), percent, true)) f.percent = percent.value();
    }
    if (!(is_percent || amount(reading.used, f.used)) || !amount(reading.total, f.total) ||
        !amount(reading.free, f.free) || !amount(reading.allocated, f.allocated) ||
        !amount(reading.reserved, f.reserved))
      return rows.skip(number, fmt::format("no readable amount in '{}'", excerpt(line)));
    f.is_named = !reading.gpu.empty() || !reading.uuid.empty();
    f.gpu = named(reading);
    f.pid = logtext::whole_number<std::uint32_t>(trim(reading.pid));
    if (!reading.pid.empty() && !f.pid) return rows.skip(number, fmt::format("no readable pid in '{}'", excerpt(line)));
    f.name = trim(reading.name);
    f.user = trim(reading.user);
    take(std::move(f), rows);
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
  Numbers numbers_;
};

std::string_view first_of(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts)
    if (!text.empty()) return trim(text);
  return {};
}

/// The amounts of a reading, for choose_grouping().
void add_written(std::string_view line, const TextReading& reading, std::vector<WrittenAmount>& amounts) {
  const bool german = is_german(line);
  for (const auto group :
       {&TextReading::used, &TextReading::total, &TextReading::free, &TextReading::allocated, &TextReading::reserved}) {
    const std::string_view text = trim(reading.*group);
    const std::size_t digits = digits_of(text);
    if (digits == 0 || text.ends_with('%')) continue;
    const bool is_total = group == &TextReading::total;
    amounts.push_back({text.substr(0, digits), written_unit(trim(text.substr(digits))), is_total, german,
                       is_total                      ? "total"
                       : group == &TextReading::free ? "free"
                                                     : "used"});
  }
}

/// How the amounts are grouped; `unit`: of those without one, 0 if not given.
Numbers resolve_grouping(std::span<const WrittenAmount> amounts, std::span<const std::string_view> lines,
                         std::uint64_t unit, std::vector<std::string>& assumptions) {
  std::uint64_t written = 0;  // of the ambiguous ones
  for (const WrittenAmount& a : amounts)
    if (is_open_number(a.digits, a.unit_bytes)) written = std::max(written, a.unit_bytes);
  const GroupingChoice choice = choose_grouping(amounts, lines);
  if (!choice.is_unknown || written == 0) return {choice.grouping, 0};
  if (unit == 0) assumptions.push_back(unknown_grouping(choice.example, written));
  return {choice.grouping, unit != 0 ? unit : 1000 * written};
}

}  // namespace

Result<std::unique_ptr<LogParser>> make_pattern_lines(const LogHead& head) {
  auto pattern = LinePattern::compile(head.options->line_pattern);
  if (!pattern) return fail(std::move(pattern.error()));
  std::vector<std::string> assumptions;
  std::vector<std::string_view> used;
  std::vector<HeadReading> readings;
  std::string_view stamp_text;
  std::string_view first;
  std::string_view rest = head.text;
  std::vector<WrittenAmount> amounts;
  std::vector<std::string_view> lines;
  std::size_t matches = 0;
  std::size_t parts = 0;  // matches that are not complete readings
  for (std::uint64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = logtext::take_line(rest);
    if (trim(first).empty()) first = line;
    TextReading reading;
    const bool fits = pattern->read(line, reading);
    const std::string_view stamp = pattern->has_time() || pattern->has_step()
                                       ? fits ? first_of({reading.time, reading.step}) : std::string_view{}
                                       : find_stamp(line);
    if (!stamp.empty()) stamp_text = stamp;
    if (!fits) continue;
    ++matches;
    lines.push_back(line);
    add_written(line, reading, amounts);
    const std::string_view amount = first_of({reading.used, reading.free, reading.allocated, reading.reserved});
    if (amount.empty() ||
        (reading.used.empty() && reading.allocated.empty() && reading.reserved.empty() && reading.total.empty()))
      ++parts;
    if (amount.empty()) continue;
    used.push_back(amount);
    logtext::Decimal value;
    const std::string gpu(first_of({reading.uuid, reading.gpu}));
    const bool is_same_time = !readings.empty() && readings.back().stamp == stamp_text && readings.back().gpu == gpu;
    // In blocks, a reading has several amounts: only the one for used memory counts.
    if (reading.pid.empty() && (!reading.used.empty() || !is_same_time) && logtext::read_decimal(amount, value))
      readings.push_back({std::string(stamp_text), value.value(), number, gpu});
  }
  if (used.empty())
    return fail(fmt::format("no line of the first 256 KiB matches {} '{}'{}; the first line is '{}'",
                            name_of(Option::line_pattern), head.options->line_pattern,
                            matches > 0 ? " with an amount of used, allocated, reserved or free memory" : "",
                            excerpt(first, 160)));
  const auto given = unit_of(*head.options);
  if (!given) return fail(given.error());
  const Numbers numbers = resolve_grouping(amounts, lines, *given, assumptions);
  const bool open_unit_unknown = numbers.open_unit_bytes != 0 && *given == 0;
  std::uint64_t unit = *given;
  std::deque<std::string> grouped;  // "4.000" is 4000, which is not a fraction
  for (std::string_view& text : used)
    if (numbers.grouping == Grouping::by_dot && digits_of(text) == text.size())
      text = grouped.emplace_back(fmt::format("{}", read_number(text, 0, numbers.grouping)));
  GuessedUnit guessed{unit};
  if (unit == 0) guessed = guess_unit(used, true, head.options->capacity_bytes, std::nullopt, assumptions);
  unit = guessed.bytes;
  StampReader::Title title;
  title.step = pattern->has_step() && !pattern->has_time();
  const auto stamp_of = [&](std::string_view line) {
    if (!pattern->has_time() && !pattern->has_step()) return find_stamp(line);
    TextReading reading;
    return pattern->read(line, reading) ? first_of({reading.time, reading.step}) : std::string_view{};
  };
  auto stamp = stamp_text.empty() ? Result<StampReader>(StampReader::of_readings(*head.options, assumptions))
                                  : make_text_clock(head, stamp_of, title, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto unnamed_gpus = count_unnamed_gpus(readings, *stamp, true, assumptions);
  if (!unnamed_gpus) return fail(unnamed_gpus.error());
  auto parser =
      std::make_unique<PatternLines>(std::move(*pattern), unit, numbers, std::move(*stamp), std::move(assumptions));
  parser->expect_unnamed_gpus(*unnamed_gpus);
  parser->set_percent_bytes(head.options->capacity_bytes ? static_cast<double>(*head.options->capacity_bytes) / 100
                                                         : static_cast<double>(kBytesPerGiB));
  if (parts > 0) parser->expect_blocks();
  if (open_unit_unknown) parser->set_unit_unknown(numbers.open_unit_bytes);
  if (guessed.is_unknown) parser->set_unit_unknown(unit);
  return parser;
}

}  // namespace vramtrack
