// What earlier runs and siblings are worth.
#include <array>
#include <map>
#include <utility>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

using Column = std::array<std::vector<Scored>, kMarks.size()>;

/// `known` may say nothing of healthy programs: then those of `healthy` are taken.
Column column_of(const std::vector<Beside>& runs, Known known, Known healthy, bool with_beyond_half) {
  Column column;
  for (const Beside& run : runs) {
    if (!with_beyond_half && beyond_half(run.trace)) continue;
    const auto i = static_cast<std::size_t>(run.trace.label.leak ? known : healthy);
    if (!run.scored[i]) continue;
    for (std::size_t m = 0; m < kMarks.size(); ++m) column[m].push_back((*run.scored[i])[m]);
  }
  return column;
}

std::string line(std::string_view name, const Column& column) {
  std::string out = fmt::format("| {} |", name);
  for (const std::vector<Scored>& scored : column) {
    const Summary s = summarise(scored);
    out += fmt::format(" {} | {} | {} | {} of {} |", number(s.precision(1), 3), number(s.recall(), 3),
                       number(100 * quantile(s.delay_share, 0.5), 1), s.alarmed, s.healthy);
  }
  return out + "\n";
}

}  // namespace

BesideFigures beside_figures(const std::vector<Beside>& runs, Known known) {
  const Known healthy = known == Known::three_leaked    ? Known::three
                        : known == Known::siblings_leak ? Known::siblings
                                                        : known;
  const Column column = column_of(runs, known, healthy, known != Known::nothing);
  BesideFigures figures;
  for (std::size_t m = 0; m < kMarks.size(); ++m) figures.marked[m] = summarise(column[m]);
  return figures;
}

std::string beside_table(const std::vector<Beside>& runs) {
  std::string out = "| known |";
  for (const Mark mark : kMarks)
    out += fmt::format(" {}: precision 1:1 | recall | after, % of life | healthy with it |", name_of(mark));
  out += "\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  out +=
      line("first run ever (straight rises beyond half apart)", column_of(runs, Known::nothing, Known::nothing, false));
  for (std::size_t i = 0; i < kKnown; ++i) {
    const auto known = static_cast<Known>(i);
    const Known healthy = known == Known::three_leaked    ? Known::three
                          : known == Known::siblings_leak ? Known::siblings
                                                          : known;
    out += line(name_of(known), column_of(runs, known, healthy, true));
  }
  return out + "\n";
}

/// A leak: reported as one, and the median delay. A healthy family: of how many people were notified.
std::string beside_family_table(const std::vector<Beside>& runs) {
  std::map<std::pair<bool, std::string>, std::vector<const Beside*>> families;
  for (const Beside& run : runs) families[{!run.trace.label.leak, run.trace.family}].push_back(&run);
  std::string out = "| family | traces |";
  std::string rule = "|---|---|";
  for (std::size_t i = 0; i < kKnown; ++i) {
    out += fmt::format(" {} |", name_of(static_cast<Known>(i)));
    rule += "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& [key, members] : families) {
    out += fmt::format("| {}{} | {} |", key.first ? "healthy: " : "leak: ", key.second, members.size());
    for (std::size_t i = 0; i < kKnown; ++i) {
      std::vector<Scored> scored;
      const auto mark = static_cast<std::size_t>(key.first ? Mark::paged : Mark::told);
      for (const Beside* member : members)
        if (member->scored[i]) scored.push_back((*member->scored[i])[mark]);
      const Summary s = summarise(scored);
      if (scored.empty())
        out += " - |";
      else if (key.first)
        out += fmt::format(" {} notified |", s.alarmed);
      else
        out += fmt::format(" {} at {} % |", s.detected, number(100 * quantile(s.delay_share, 0.5), 0));
    }
    out += "\n";
  }
  return out + "\n";
}

std::string rank_table(const std::vector<Ranks>& runs) {
  struct Count {
    std::vector<Scored> alone;
    std::vector<Scored> together;
    std::vector<Scored> suspected;
    std::vector<Scored> paged;
    int elsewhere = 0;
  };
  std::map<std::pair<bool, std::string>, Count> families;
  for (const Ranks& run : runs) {
    Count& c = families[{!run.together.trace.label.leak, run.together.trace.family}];
    c.alone.push_back(run.alone.told);
    c.together.push_back(run.together.told);
    c.paged.push_back(run.together.ours);
    c.suspected.push_back(run.together.suspected);
    c.elsewhere += run.together.played.ours.false_elsewhere > 0 ? 1 : 0;
  }
  std::string out =
      "| family | jobs | reported alone | of life, % | together | of life, % | suspected together | of life, % | "
      "notified together | of life, % | jobs with an alert about a rank that does not leak "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [key, c] : families) {
    const bool healthy = key.first;
    const Summary alone = summarise(c.alone);
    const Summary together = summarise(c.together);
    const Summary suspected = summarise(c.suspected);
    const Summary paged = summarise(c.paged);
    const auto said = [&](const Summary& s) {
      return healthy ? fmt::format("{} of them | -", s.alarmed)
                     : fmt::format("{} found | {}", s.detected, number(100 * quantile(s.delay_share, 0.5), 1));
    };
    out += fmt::format("| {}{} | {} | {} | {} | {} | {} | {} |\n", healthy ? "healthy: " : "leak: ", key.second,
                       c.together.size(), said(alone), said(together), said(suspected), said(paged), c.elsewhere);
  }
  return out + "\n";
}

}  // namespace vramtrack::accuracy
