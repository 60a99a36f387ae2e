// Chooses the clock of a free-text log: choose_clock(), make_clock().
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "source/log/clock_choice.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using Form = ClockValue::Form;

constexpr std::array kCounts = {Meaning::step, Meaning::iteration, Meaning::request, Meaning::batch, Meaning::epoch};

/// The fields of lines that may be their clock: the time, hours and minutes, a duration, and the counts.
ClockRecords clock_fields(const Head& all) {
  enum : std::size_t { kStamp, kMinute, kElapsed, kFirstCount };
  ClockRecords out;
  const bool are_headings =
      std::none_of(all.lines.begin(), all.lines.end(), [](const HeadLine& line) { return !line.found.stamp.empty(); });
  const auto example = [&](std::string HeadLine::*text) {
    const auto it = std::find_if(all.lines.begin(), all.lines.end(), [&](const auto& l) { return !(l.*text).empty(); });
    return fmt::format("times such as '{}'", it == all.lines.end() ? std::string() : excerpt((*it).*text));
  };
  out.fields = {{example(&HeadLine::stamp), are_headings ? ClockHint::heading : ClockHint::place},
                {example(&HeadLine::minute), ClockHint::minutes},
                {"durations", ClockHint::elapsed}};
  for (const Meaning meaning : kCounts)
    out.fields.push_back({std::string(count_word(meaning)), ClockHint::word, 0, count_word(meaning)});
  std::map<std::tuple<std::string_view, int, Meaning>, std::size_t> series;
  for (const HeadLine& line : all.lines) {
    const int gpu = line.found.gpu >= 0 ? line.found.gpu : line.head_gpu;
    const Meaning role = line.found.figures.empty() ? Meaning::none : line.found.figures.front().role;
    out.series.push_back(series.try_emplace({line.found.prefix, gpu, role}, series.size()).first->second);
  }
  out.value = [&all, are_headings](std::size_t field, std::size_t at) -> ClockValue {
    const HeadLine& line = all.lines[at];
    if (field == kStamp) {
      if (line.stamp.empty()) return {};
      if (line.found.stamp.empty() && !are_headings) return {Form::carried};
      const ClockValue value = read_clock_value(line.stamp);
      return value.form == Form::missing ? ClockValue{Form::other} : value;
    }
    if (field == kMinute) {
      const bool is_carried = at > 0 && line.minute_line == all.lines[at - 1].minute_line && !line.minute.empty();
      return is_carried ? ClockValue{Form::carried} : read_clock_value(line.minute);
    }
    if (field == kElapsed)
      return line.found.elapsed.text.empty() ? ClockValue{} : ClockValue{Form::number, line.found.elapsed.seconds};
    const auto it = line.counts.find(kCounts[field - kFirstCount]);
    return it == line.counts.end() ? ClockValue{} : ClockValue{Form::number, static_cast<double>(it->second)};
  };
  return out;
}

}  // namespace

std::string stamp_of(const Elapsed& elapsed) {
  return elapsed.text.empty() ? std::string() : fmt::format("{:.6f}", elapsed.seconds);
}

Status choose_clock(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  const ClockRecords fields = clock_fields(all);
  const auto choice = choose_clock(fields, assumptions);
  if (!choice) return fail(choice.error());
  const ClockHint hint =
      choice->time < 0 ? ClockHint::none : fields.fields[static_cast<std::size_t>(choice->time)].hint;
  plan.minutes = hint == ClockHint::minutes;
  plan.elapsed = hint == ClockHint::elapsed;
  plan.no_stamps = choice->refuses_stamps;
  if (hint == ClockHint::word) {
    plan.counted = kCounts[static_cast<std::size_t>(choice->time) - (fields.fields.size() - kCounts.size())];
    plan.count_in_epochs = choice->begins_anew;
  }
  EpochCounter counter;
  all.stamped = 0;
  for (HeadLine& line : all.lines) {
    if (plan.no_stamps) line.stamp.clear();
    if (plan.minutes && line.stamp.empty()) line.stamp = line.minute;
    if (plan.elapsed) line.stamp = stamp_of(line.found.elapsed);
    all.stamped += line.stamp.empty() ? 0U : 1U;
    const auto it = plan.counted ? line.counts.find(*plan.counted) : line.counts.end();
    if (it == line.counts.end()) continue;
    const auto epoch = line.counts.find(Meaning::epoch);
    const bool is_in_epoch = plan.count_in_epochs && epoch != line.counts.end();
    line.count = std::to_string(counter.next(it->second, is_in_epoch ? epoch->second : 0));
  }
  const bool is_stamp = hint == ClockHint::place || hint == ClockHint::heading;
  if (is_stamp && all.stamped * 10 < all.lines.size() * 9 && all.stamped * 2 > all.lines.size())
    return fail(
        fmt::format("the first timestamp comes after line {}: '{}', which has a figure of memory; remove the lines "
                    "before the first timestamp",
                    all.lines.front().number, excerpt(all.lines.front().text, 80)));
  return {};
}

/// The clock, from the times or counts that will be read.
Result<StampReader> make_clock(const LogHead& head, const Head& all, const WordPlan& plan,
                               std::vector<std::string>& assumptions) {
  std::vector<std::string> texts;
  for (const HeadLine& line : all.lines)
    if (const std::string& text = plan.counted ? line.count : line.stamp; !text.empty()) texts.push_back(text);
  StampReader::Title title;
  title.step = plan.counted.has_value() || plan.stamps_are_steps;
  if (plan.counted) title.counts = count_word(*plan.counted);
  const std::vector<std::string_view> samples(texts.begin(), texts.end());
  return StampReader::detect(samples, title, *head.options, *head.zone, assumptions);
}

}  // namespace vramtrack
