// Cuts a line by --line-pattern: its groups are the figures, their time and their owner.
#include <algorithm>

#include "source/log/line_start.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// Reads `text`, a part of `line`, as people write amounts: see find_figures(). False: it is none.
bool read_figure(std::string_view line, std::string_view text, Grouping grouping, MemoryFigure& out) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.,"), text.size());
  const std::string_view unit = trim(text.substr(digits));
  out.begin = static_cast<std::size_t>(text.data() - line.data());
  out.digits_end = out.begin + digits;
  out.end = out.begin + text.size();
  out.percent = out.role == Meaning::used && unit == "%";
  out.unit_bytes = written_unit(unit);
  if (logtext::Decimal plain; out.unit_bytes == 0 && !out.percent && digits < text.size()) {  // "1.2e9"
    if (!logtext::read_decimal(text, plain) || plain.length != text.size()) return false;
    out.number = plain.value();
    return out.number >= 0;
  }
  const std::string_view number = text.substr(0, digits);
  out.number = read_number(number, out.unit_bytes, grouping);
  out.is_open =
      (out.unit_bytes != 0 || grouping == Grouping::by_dot) && is_open_number(number, out.unit_bytes) && !out.percent;
  return out.number >= 0;
}

std::string_view first_of(std::string_view a, std::string_view b) {
  return trim(a.empty() ? b : a);
}

}  // namespace

void LineCutter::cut_by_pattern(std::string_view line, Grouping grouping, LineFigures& out) {
  out = {};
  fault_ = {};
  matches_ = pattern_->read(line, groups_);
  if (!pattern_->has_time() && !pattern_->has_step())
    out.stamp = find_stamp(line);
  else if (matches_)
    out.stamp = first_of(groups_.time, groups_.step);
  if (!matches_) return;
  out.tag = first_of(groups_.uuid, groups_.gpu);
  out.pid = logtext::whole_number<std::uint32_t>(trim(groups_.pid));
  if (!groups_.pid.empty() && !out.pid) fault_ = "no readable pid";
  for (const auto& [role, group] : {std::pair(Meaning::used, groups_.used),
                                    {Meaning::total, groups_.total},
                                    {Meaning::free, groups_.free},
                                    {Meaning::allocated, groups_.allocated},
                                    {Meaning::reserved, groups_.reserved}}) {
    const std::string_view text = trim(group);
    if (text.empty() || logtext::is_missing(text)) continue;
    MemoryFigure& f = out.figures.emplace_back();
    f.role = role;
    f.has_role_word = f.is_of_gpu = f.is_memory = true;
    f.word = line;  // whose language shows how its numbers are grouped
    if (read_figure(line, text, grouping, f)) continue;
    fault_ = "no readable amount";
    out.figures.pop_back();
  }
}

void LineCutter::name(TextFigures& out) const {
  constexpr int kMostGpus = 4096;
  out.pid = logtext::whole_number<std::uint32_t>(trim(groups_.pid));
  out.is_named = !groups_.gpu.empty() || !groups_.uuid.empty();
  out.gpu.uuid = trim(groups_.uuid);
  const std::string_view text = trim(groups_.gpu);
  const auto index = logtext::whole_number<int>(text);
  if (index && *index >= 0 && *index < kMostGpus)
    out.gpu.index = *index;
  else if (text.empty())
    out.gpu.index = 0;
  else
    out.gpu.text = text;
  out.name = trim(groups_.name);
  out.user = trim(groups_.user);
  if (!out.pid) out.gpu.name = out.name;
}

}  // namespace vramtrack
