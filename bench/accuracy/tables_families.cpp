// The first run of every program, by group of families and by family.
#include <map>
#include <utility>
#include <vector>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

struct Both {
  std::vector<Scored> confirmed;
  std::vector<Scored> suspected;
  std::vector<Scored> beyond;  ///< half, confirmed

  void add(const Run& run) {
    if (beyond_half(run.trace)) {
      beyond.push_back(run.ours);
      return;
    }
    confirmed.push_back(run.ours);
    suspected.push_back(run.suspected);
  }
};

std::string beyond_of(const Both& both) {
  if (both.beyond.empty()) return "-";
  return fmt::format("{} of {}", summarise(both.beyond).alarmed, both.beyond.size());
}

std::string line(std::string_view name, const Both& both, bool with_precision = false) {
  const Summary c = summarise(both.confirmed);
  const Summary s = summarise(both.suspected);
  const std::string precision =
      with_precision ? fmt::format(" {} | {} |", number(c.precision(1), 3), number(s.precision(1), 3)) : "";
  return fmt::format("| {} |{} {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name, precision, c.leaks,
                     number(c.recall(), 3), number(share(c.detected + c.slow, c.leaks), 3), number(s.recall(), 3),
                     number(100 * quantile(c.delay_share, 0.5), 1), number(100 * quantile(s.delay_share, 0.5), 1),
                     c.healthy, c.healthy > 0 ? fmt::format("{} ({} suspected)", c.alarmed, s.alarmed) : "-",
                     beyond_of(both));
}

std::string heading(std::string_view first, bool with_precision = false) {
  return fmt::format(
      "| {} |{} leaks | found | or as slow growth | suspected | delay, % of life | until suspected | healthy | alarmed "
      "| straight rises beyond half alarmed |\n|---|{}---|---|---|---|---|---|---|---|---|\n",
      first, with_precision ? " precision 1:1 | of suspicions |" : "", with_precision ? "---|---|" : "");
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
    default:
      return "recorded";
  }
}

std::string group_table(const std::vector<Run>& runs) {
  std::map<Group, Both> groups;
  Both all;
  for (const Run& run : runs) {
    groups[run.trace.group].add(run);
    all.add(run);
  }
  std::string out = heading("families", true);
  for (const auto& [group, both] : groups) out += line(name_of(group), both, true);
  return out + line("**all**", all, true) + "\n";
}

std::string family_table(const std::vector<Run>& runs) {
  std::map<std::pair<Group, std::pair<bool, std::string>>, Both> families;
  for (const Run& run : runs) families[{run.trace.group, {!run.trace.label.leak, run.trace.family}}].add(run);
  std::string out = heading("family");
  std::optional<Group> last;
  for (const auto& [key, both] : families) {
    if (last != key.first) out += fmt::format("| **{}** | | | | | | | | | |\n", name_of(key.first));
    last = key.first;
    out += line(fmt::format("{}{}", key.second.first ? "healthy: " : "leak: ", key.second.second), both);
  }
  return out + "\n";
}

}  // namespace vramtrack::accuracy
