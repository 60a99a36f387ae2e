// Traces of several days: what was said on the first day, and on those that had one before them.
#include <map>
#include <set>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kDay_s = 86400;

void count(const std::vector<Alarm>& alarms, bool& first, std::set<int>& later) {
  for (const Alarm& alarm : alarms) {
    const int day = static_cast<int>(alarm.raised_s / kDay_s);
    if (day == 0)
      first = true;
    else
      later.insert(day);
  }
}

}  // namespace

void DayCount::add(const Run& run) {
  ++traces;
  later_days += std::max(0.0, run.played.end_s / kDay_s - 1);
  for (std::size_t i = 0; i < kMarks.size(); ++i) {
    bool first = false;
    std::set<int> later;
    const Outcome& ours = run.played.ours;
    count(kMarks[i] == Mark::paged ? ours.alarms : kMarks[i] == Mark::told ? ours.told : ours.suspicions, first, later);
    marked[i].on_first += first ? 1 : 0;
    marked[i].later += later.empty() ? 0 : 1;
    marked[i].days += static_cast<int>(later.size());
  }
}

DayCount count_days(const std::vector<Run>& runs) {
  DayCount all;
  for (const Run& run : runs)
    if (run.trace.group == Group::days && !run.trace.label.leak) all.add(run);
  return all;
}

std::string day_table(const std::vector<Run>& runs) {
  std::map<std::string, DayCount> families;
  for (const Run& run : runs)
    if (run.trace.group == Group::days && !run.trace.label.leak) families[run.trace.family].add(run);
  if (families.empty()) return {};
  families["**all**"] = count_days(runs);
  std::string out = "| family | traces |";
  for (const char* when : {"first day: ", "from the second day on: ", "days with it, from the second on: "})
    for (const Mark mark : kMarks) out += fmt::format(" {}{} |", mark == Mark::paged ? when : "", name_of(mark));
  out += "\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [name, c] : families) {
    out += fmt::format("| {} | {} |", name, c.traces);
    for (const DayCount::Marked& m : c.marked) out += fmt::format(" {} |", m.on_first);
    for (const DayCount::Marked& m : c.marked) out += fmt::format(" {} |", m.later);
    for (const DayCount::Marked& m : c.marked) out += fmt::format(" {} of {:.0f} |", m.days, c.later_days);
    out += "\n";
  }
  return out + "\n";
}

}  // namespace vramtrack::accuracy
