#include "report/headline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/format.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

using Devices = std::vector<const SeriesView*>;

/// How long the end of a run stays the first thing to say.
constexpr double kTold_s = 24 * 3600;

std::string short_names(const Devices& devices) {
  std::string out;
  for (const SeriesView* s : devices) out += (out.empty() ? "" : ", ") + short_device_words(*s);
  return out;
}

template <class Pick>
Devices those(const Devices& devices, Pick pick) {
  Devices out;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(out), [&](const SeriesView* s) { return pick(*s); });
  return out;
}

/// The more severe first, then what ends sooner.
bool worse(const SeriesView* a, const SeriesView* b) {
  const auto end_s = [](const SeriesView* s) {
    return s->verdict.finding.oom_in_s ? s->verdict.finding.oom_in_s->mid : std::numeric_limits<double>::infinity();
  };
  if (a->verdict.severity != b->verdict.severity) return a->verdict.severity > b->verdict.severity;
  return end_s(a) < end_s(b);
}

Headline of_leak(const Devices& leaking, const CommandOf& command_of) {
  const SeriesView& worst = **std::min_element(leaking.begin(), leaking.end(), worse);
  const Verdict& v = worst.verdict;
  std::string text = short_device_words(worst) + " leaks";
  if (v.suspect && v.suspect->pid == 0) text += ": no visible process explains it";
  if (v.suspect && v.suspect->pid != 0)
    text += fmt::format(": pid {} {}", v.suspect->pid,
                        printable(command_of ? command_of(worst, *v.suspect) : v.suspect->command));
  if (const std::string end = end_words(worst); !end.empty()) text += "; " + end;
  text += '.';
  if (leaking.size() > 1)
    text += fmt::format(" {} more GPU{}.", leaking.size() - 1, leaking.size() > 2 ? "s leak" : " leaks");
  return {std::string(to_string(v.severity == Severity::ok ? Severity::watch : v.severity)), text};
}

Headline of_end(const Devices& ended, const View& view, const CommandOf& command_of) {
  const SeriesView& last = **std::max_element(ended.begin(), ended.end(), [](const SeriesView* a, const SeriesView* b) {
    return a->verdict.end->time < b->verdict.end->time;
  });
  const End& end = *last.verdict.end;
  std::string text =
      fmt::format("{} {} at {}", short_device_words(last),
                  end.how == EndKind::out_of_memory ? "ran out of memory" : "leaked until its process ended",
                  format_moment(end.time, view.clock_is_relative));
  if (end.pid != 0) {
    const Suspect who{end.pid, end.pid_start_ticks, end.command, 1};
    text += fmt::format(": pid {} {}", end.pid, printable(command_of ? command_of(last, who) : end.command));
  }
  return {"warning", text + '.'};
}

}  // namespace

Headline headline(const View& view, const CommandOf& command_of) {
  Devices devices;
  for (const SeriesView& s : view.series)
    if (s.key.metric == Metric::device_used) devices.push_back(&s);
  if (devices.empty()) return {"faint", "No GPU is being watched."};
  const Devices leaking = those(devices, [](const SeriesView& s) { return s.verdict.finding.leak; });
  if (!leaking.empty()) return of_leak(leaking, command_of);
  // A run that ended badly in the last day: whoever looks in the morning wants to know first.
  const Devices ended = those(devices, [&](const SeriesView& s) {
    return s.verdict.end && seconds_between(s.verdict.end->time, view.time) <= kTold_s &&
           (s.verdict.end->how == EndKind::out_of_memory || alert_at_end(s) != nullptr);
  });
  if (!ended.empty()) return of_end(ended, view, command_of);
  const Devices suspected =
      those(devices, [](const SeriesView& s) { return s.verdict.finding.stage == Stage::suspected; });
  if (!suspected.empty())
    return {"notice", fmt::format("No leak is confirmed; {} {} suspected.", short_names(suspected),
                                  suspected.size() > 1 ? "are" : "is")};
  const Devices growing = those(devices, [](const SeriesView& s) { return tone_of(s) == Tone::notice; });
  if (!growing.empty())
    return {"notice", fmt::format("No leak so far; {} {}, and it is too early to tell why.", short_names(growing),
                                  growing.size() > 1 ? "grow" : "grows")};
  // A GPU that has been seen too briefly is no healthy one.
  const Devices young = those(devices, [](const SeriesView& s) { return s.verdict.finding.state == State::too_short; });
  if (young.size() == devices.size()) return {"faint", "Too few samples so far to tell whether anything leaks."};
  if (!young.empty())
    return {"ok", fmt::format("Nothing leaks so far; too few samples of {} to tell.", short_names(young))};
  return {"ok", devices.size() == 1 ? "Nothing leaks." : fmt::format("Nothing leaks on {} GPUs.", devices.size())};
}

}  // namespace vramtrack
