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
  bool first_confirmed = false;
  bool first_suspected = false;
  std::set<int> confirmed;
  std::set<int> suspected;
  count(run.played.ours.alarms, first_confirmed, confirmed);
  count(run.played.ours.suspicions, first_suspected, suspected);
  confirmed_on_first += first_confirmed ? 1 : 0;
  suspected_on_first += first_suspected ? 1 : 0;
  confirmed_later += confirmed.empty() ? 0 : 1;
  suspected_later += suspected.empty() ? 0 : 1;
  confirmed_days += static_cast<int>(confirmed.size());
  suspected_days += static_cast<int>(suspected.size());
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
  std::string out =
      "| family | traces | first day: suspected | confirmed | from the second day on: suspected | confirmed | days "
      "with "
      "a suspicion | with an alert |\n|---|---|---|---|---|---|---|---|\n";
  for (const auto& [name, c] : families)
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} of {:.0f} | {} |\n", name, c.traces, c.suspected_on_first,
                       c.confirmed_on_first, c.suspected_later, c.confirmed_later, c.suspected_days, c.later_days,
                       c.confirmed_days);
  return out + "\n";
}

}  // namespace vramtrack::accuracy
