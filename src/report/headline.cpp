#include "report/headline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/format.hpp"
#include "report/total.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

using Devices = std::vector<const SeriesView*>;

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

/// The more severe first, then the one whose memory runs out sooner.
bool worse(const SeriesView* a, const SeriesView* b) {
  const auto end_s = [](const SeriesView* s) {
    return s->verdict.finding.oom_in_s ? s->verdict.finding.oom_in_s->mid : std::numeric_limits<double>::infinity();
  };
  if (a->verdict.severity != b->verdict.severity) return a->verdict.severity > b->verdict.severity;
  return end_s(a) < end_s(b);
}

/// ": pid 4242 python train.py", as far as the client may see it.
std::string whose(const View& view, const SeriesView& device, std::uint32_t pid, std::uint64_t start_ticks,
                  const std::string& command, const MaySeeCommand& may_see) {
  return fmt::format(": pid {} {}", pid,
                     printable(visible_command(view, device.key.host, pid, start_ticks, command, may_see)));
}

Headline of_leak(const Devices& leaking, const View& view, const MaySeeCommand& may_see) {
  const SeriesView& worst = **std::min_element(leaking.begin(), leaking.end(), worse);
  const auto& suspect = worst.verdict.suspect;
  const Told told = tell(view, worst);
  std::string text = short_device_words(worst) + " leaks";
  if (suspect && suspect->pid == 0) text += ": " + told.by;
  if (suspect && suspect->pid != 0)
    text += whose(view, worst, suspect->pid, suspect->pid_start_ticks, suspect->command, may_see);
  if (!told.forecast.empty()) text += "; " + told.forecast;
  text += '.';
  if (leaking.size() > 1)
    text += fmt::format(" {} more GPU{}.", leaking.size() - 1, leaking.size() > 2 ? "s leak" : " leaks");
  return {told.tone, text};
}

Headline of_end(const Devices& ended, const View& view, const MaySeeCommand& may_see) {
  const SeriesView& last = **std::max_element(ended.begin(), ended.end(), [](const SeriesView* a, const SeriesView* b) {
    return a->verdict.end->time < b->verdict.end->time;
  });
  const End& end = *last.verdict.end;
  std::string text = fmt::format("{} {} at {}", short_device_words(last),
                                 alert_at_end(last) != nullptr ? leaked_end_words(end.how) : end_words(end.how),
                                 format_moment(end.time, view.clock_is_relative));
  if (end.pid != 0) text += whose(view, last, end.pid, end.pid_start_ticks, end.command, may_see);
  return {Tone::warning, text + '.'};
}

}  // namespace

Headline headline(const View& view, const MaySeeCommand& may_see) {
  Devices devices;
  for (const SeriesView& s : view.series)
    if (is_total(s)) devices.push_back(&s);
  if (devices.empty()) return {Tone::faint, "No GPU is being watched."};
  const Devices leaking = those(devices, [](const SeriesView& s) { return s.verdict.finding.leak; });
  if (!leaking.empty()) return of_leak(leaking, view, may_see);
  // A run that ended badly in the last day: whoever looks in the morning wants to know that first.
  const Devices ended = those(devices, [&](const SeriesView& s) { return ended_badly(s, view.time); });
  if (!ended.empty()) return of_end(ended, view, may_see);
  const Devices suspected =
      those(devices, [](const SeriesView& s) { return s.verdict.finding.stage == Stage::suspected; });
  if (!suspected.empty())
    return {Tone::notice, fmt::format("No leak is confirmed; {} {} suspected.", short_names(suspected),
                                      suspected.size() > 1 ? "are" : "is")};
  const Devices growing = those(devices, [&](const SeriesView& s) { return !s.paused && concern(s, view.time) == 1; });
  if (!growing.empty())
    return {Tone::notice, fmt::format("No leak so far; {} {}, and it is too early to tell why.", short_names(growing),
                                      growing.size() > 1 ? "grow" : "grows")};
  // A GPU that has been seen too briefly is not known to be healthy.
  const Devices young = those(devices, [](const SeriesView& s) { return s.verdict.finding.state == State::too_short; });
  if (young.size() == devices.size()) return {Tone::faint, "Too few samples so far to tell whether anything leaks."};
  if (!young.empty())
    return {Tone::ok, fmt::format("Nothing leaks so far; too few samples of {} to tell.", short_names(young))};
  return {Tone::ok, devices.size() == 1 ? "Nothing leaks." : fmt::format("Nothing leaks on {} GPUs.", devices.size())};
}

}  // namespace vramtrack
