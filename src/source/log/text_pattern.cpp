// Lines as --line-pattern describes them.
#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/stamp_search.hpp"
#include "source/log/text_lines.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::Amount;
using logtext::excerpt;
using logtext::trim;

/// Reads an amount as people write it: see find_figures().
Amount read_written(std::string_view text, std::uint64_t unit, std::uint64_t& bytes) {
  text = trim(text);
  if (text.empty()) return Amount::missing;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.,"), text.size());
  const std::uint64_t written = written_unit(trim(text.substr(digits)));
  const std::size_t comma = text.find(',');
  if (digits == 0 || (written == 0 && comma == std::string_view::npos))
    return logtext::read_amount(text, unit, bytes, true);
  MemoryFigure figure;
  figure.number = read_number(text.substr(0, digits), written != 0 ? written : unit);
  figure.unit_bytes = written;
  if (figure.number < 0 || (written == 0 && digits != text.size())) return Amount::bad;
  bytes = figure.bytes(unit);
  return Amount::read;
}

class PatternLines final : public TextLines {
 public:
  PatternLines(LinePattern pattern, std::uint64_t unit, StampReader stamp, std::vector<std::string> assumptions)
      : TextLines(std::move(stamp), std::move(assumptions)), pattern_(std::move(pattern)), unit_(unit) {}

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
      const Amount read = read_written(text, unit_, bytes);
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
};

std::string_view first_of(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts)
    if (!text.empty()) return trim(text);
  return {};
}

}  // namespace

Result<std::unique_ptr<LogParser>> make_pattern_lines(const LogHead& head) {
  auto pattern = LinePattern::compile(head.options->line_pattern);
  if (!pattern) return fail(std::move(pattern.error()));
  std::vector<std::string> assumptions;
  std::vector<std::string_view> used;
  std::vector<UnnamedReading> unnamed;
  std::string_view stamp_text;
  std::string_view first;
  std::string_view rest = head.text;
  std::size_t matches = 0;
  std::size_t parts = 0;  // matches that are not a reading by themselves
  while (!rest.empty()) {
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
    const std::string_view amount = first_of({reading.used, reading.free, reading.allocated, reading.reserved});
    if (amount.empty() ||
        (reading.used.empty() && reading.allocated.empty() && reading.reserved.empty() && reading.total.empty()))
      ++parts;
    if (amount.empty()) continue;
    used.push_back(amount);
    logtext::Decimal number;
    const bool is_same_time = !unnamed.empty() && unnamed.back().stamp == stamp_text;
    // In blocks, a reading has several amounts: only the one for used memory counts.
    if (reading.gpu.empty() && reading.uuid.empty() && reading.pid.empty() &&
        (!reading.used.empty() || !is_same_time) && logtext::read_decimal(amount, number))
      unnamed.push_back({stamp_text, number.value()});
  }
  if (used.empty())
    return fail(fmt::format("no line of the first 256 KiB matches {} '{}'{}; the first line is '{}'",
                            name_of(Option::line_pattern), head.options->line_pattern,
                            matches > 0 ? " with an amount of used, allocated, reserved or free memory" : "",
                            excerpt(first, 160)));
  const auto given = unit_of(*head.options);
  if (!given) return fail(given.error());
  std::uint64_t unit = *given;
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
  auto stamp = settle_text_clock(head, stamp_of, title, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto places = count_places(unnamed, pattern->has_step(), assumptions);
  if (!places) return fail(places.error());
  auto parser = std::make_unique<PatternLines>(std::move(*pattern), unit, std::move(*stamp), std::move(assumptions));
  parser->expect_places(*places);
  parser->set_percent_bytes(head.options->capacity_bytes ? static_cast<double>(*head.options->capacity_bytes) / 100
                                                         : static_cast<double>(kBytesPerGiB));
  if (parts > 0) parser->expect_blocks();
  if (guessed.is_unknown) parser->set_unit_unknown(unit);
  return parser;
}

}  // namespace vramtrack
