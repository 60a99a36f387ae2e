// The first run of every program, by group of families and by family.
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

struct Marked {
  std::array<std::vector<Scored>, kMarks.size()> marked;
  std::vector<Scored> beyond;  ///< half: the alerts

  void add(const Run& run) {
    if (beyond_half(run.trace)) return beyond.push_back(run.ours);
    for (std::size_t i = 0; i < kMarks.size(); ++i) marked[i].push_back(run.at(kMarks[i]));
  }
};

std::string beyond_of(const Marked& group) {
  if (group.beyond.empty()) return "-";
  return fmt::format("{} of {}", summarise(group.beyond).alarmed, group.beyond.size());
}

std::string line(std::string_view name, const Marked& group, bool with_precision = false) {
  std::array<Summary, kMarks.size()> sums;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = summarise(group.marked[i]);
  const Summary& paged = sums[0];
  std::string out = fmt::format("| {} |", name);
  if (with_precision)
    for (const Summary& s : sums) out += fmt::format(" {} |", number(s.precision(1), 3));
  out += fmt::format(" {} | {} of {} |", paged.leaks, paged.due_detected, paged.due);
  for (const Summary& s : sums) out += fmt::format(" {} |", number(s.recall(), 3));
  for (const Summary& s : sums) out += fmt::format(" {} |", number(100 * quantile(s.delay_share, 0.5), 1));
  out += fmt::format(" {} |", paged.healthy);
  for (const Summary& s : sums) out += s.healthy > 0 ? fmt::format(" {} |", s.alarmed) : " - |";
  return out + fmt::format(" {} |\n", beyond_of(group));
}

/// For each mark three columns: how many leaks, after what share of their life, how many of the healthy.
std::string heading(std::string_view first, bool with_precision = false) {
  std::string out = fmt::format("| {} |", first);
  std::string rule = "|---|";
  const auto column = [&](std::string_view name) {
    out += fmt::format(" {} |", name);
    rule += "---|";
  };
  const auto columns = [&](std::string_view lead) {
    for (const Mark mark : kMarks)
      column(mark == Mark::paged ? fmt::format("{}{}", lead, name_of(mark)) : std::string(name_of(mark)));
  };
  if (with_precision) columns("precision 1:1: ");
  column("leaks");
  column("notified, of those due");
  columns("recall: ");
  columns("after, % of life: ");
  column("healthy");
  columns("of them: ");
  column("straight rises beyond half notified");
  return out + "\n" + rule + "\n";
}

}  // namespace

std::string_view name_of(Group group) {
  switch (group) {
    case Group::usual:
      return "usual";
    case Group::work:
      return "work, idleness and segments";
    case Group::days:
      return "several days";
    case Group::others:
      return "by other hands";
    case Group::ranks:
      return "jobs of eight ranks";
    case Group::crash:
      return "the end and after";
    case Group::parts:
      return "several programs";
    case Group::use:
      return "by kind of use";
    default:
      return "recorded";
  }
}

std::string group_table(const std::vector<Run>& runs) {
  std::map<Group, Marked> groups;
  Marked all;
  for (const Run& run : runs) {
    groups[run.trace.group].add(run);
    all.add(run);
  }
  std::string out = heading("families", true);
  for (const auto& [group, marked] : groups) out += line(name_of(group), marked, true);
  return out + line("**all**", all, true) + "\n";
}

std::string family_table(const std::vector<Run>& runs) {
  std::map<std::pair<Group, std::pair<bool, std::string>>, Marked> families;
  for (const Run& run : runs) families[{run.trace.group, {!run.trace.label.leak, run.trace.family}}].add(run);
  std::string out = heading("family");
  std::optional<Group> last;
  for (const auto& [key, marked] : families) {
    if (last != key.first) out += fmt::format("| **{}** | | | | | | | | | | | | | |\n", name_of(key.first));
    last = key.first;
    out += line(fmt::format("{}{}", key.second.first ? "healthy: " : "leak: ", key.second.second), marked);
  }
  return out + "\n";
}

}  // namespace vramtrack::accuracy
