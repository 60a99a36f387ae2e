// The tables of docs/ACCURACY.md, as Markdown.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "beside.hpp"

namespace vramtrack::accuracy {

/// vramtrack beside its rivals, and what else is said of first runs in sum.
std::string contender_tables(const std::vector<Run>& runs, std::span<const RivalInfo> rivals);

std::string_view name_of(Mark mark);
std::string_view name_of(Group group);
std::string group_table(const std::vector<Run>& runs);
std::string family_table(const std::vector<Run>& runs);

inline constexpr std::string_view kConstantRates = "constant rate";  ///< one of the classes below

/// What was said of the end of one class of leaks at one share of their life.
struct EndsCell {
  std::string_view name;
  double life_share = 0;
  int leaks = 0;
  int given = 0;
  int covered = 0;
  std::vector<double> errors = {};  ///< relative, of the middle
  std::vector<double> widths = {};  ///< high / low
};
std::vector<EndsCell> ends_cells(const std::vector<Run>& runs);
std::string ends_table(const std::vector<Run>& runs);

/// Expected calibration error over the looks.
double calibration_error(const std::vector<Run>& runs, bool rising_only);
std::string reliability_table(const std::vector<Run>& runs, bool rising_only);
/// What each bar on the confidence would give; straight rises beyond half apart.
std::string frontier_table(const std::vector<Run>& runs);

/// Healthy traces of several days. A day counts from the trace's beginning.
struct DayCount {
  struct Marked {
    int on_first = 0;  ///< traces
    int later = 0;     ///< traces
    int days = 0;      ///< from the second on
  };
  int traces = 0;
  std::array<Marked, kMarks.size()> marked{};
  double later_days = 0;

  [[nodiscard]] const Marked& at(Mark mark) const { return marked[static_cast<std::size_t>(mark)]; }

  void add(const Run& run);
};
DayCount count_days(const std::vector<Run>& runs);
std::string day_table(const std::vector<Run>& runs);

/// Loads, by how long they take and what is known of them.
std::string loads_table(const std::vector<Run>& runs);

std::string crash_table(const std::vector<Run>& runs);

/// What is known about a program besides the run that is judged.
struct BesideFigures {
  std::array<Summary, kMarks.size()> marked;

  [[nodiscard]] const Summary& at(Mark mark) const { return marked[static_cast<std::size_t>(mark)]; }
};
/// For the first runs of a program, without straight rises beyond half.
BesideFigures beside_figures(const std::vector<Beside>& runs, Known known);
std::string beside_table(const std::vector<Beside>& runs);
std::string beside_family_table(const std::vector<Beside>& runs);
std::string rank_table(const std::vector<Ranks>& runs);

/// Of scenes of several programs, with their processes and with the device's total alone, in the same order: was the
/// right one named, and was anybody alarmed about healthy ones.
struct PartFigures {
  int seen = 0;  ///< the suspect is a process: alerts that named one
  int seen_right = 0;
  int unseen = 0;  ///< it is none
  int unseen_right = 0;
  int healthy = 0;
  int healthy_alarmed = 0;
  int healthy_told = 0;
};
PartFigures part_figures(const std::vector<Run>& with_processes);
std::string parts_table(const std::vector<Run>& with_processes, const std::vector<Run>& total_only);

/// A tab-separated line for every trace, with a header: for looking into.
std::string each_line(const std::vector<Run>& runs);

/// One for every look at a verdict, with a header: what calibration is fitted on.
std::string look_lines(const std::vector<Run>& runs);

}  // namespace vramtrack::accuracy
