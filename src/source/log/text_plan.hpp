// What a head of free text shows, and which of its figures are meant. Private to the reader of text: text_words.cpp
// reads the lines, text_survey.cpp the head, text_plan.cpp, text_clock.cpp and text_places.cpp decide, text_equal.cpp
// puts the decision into words.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/units.hpp"
#include "source/log/epoch_counter.hpp"
#include "source/log/text_lines.hpp"

namespace vramtrack {

/// Which figures are meant, according to the head.
struct WordPlan {
  std::set<Meaning> roles;           ///< of the figures that are read
  bool of_gpu_only = false;          ///< used, free and total memory that no word says to be a GPU's is another's
  bool said_only = false;            ///< figures without a word for used memory are not used memory
  bool percents = false;             ///< read percentages, for want of amounts
  bool free_percents = false;        ///< those of the free memory, for want of others
  bool free_only = false;            ///< read free memory, without any total: see most_free_bytes()
  bool shares = false;               ///< figures without a unit are shares of the total: 0.07
  bool peaks = false;                ///< read peaks, for want of others: see settle_peaks()
  std::optional<std::string> label;  ///< of used memory, if other labels are skipped
  std::optional<Meaning> counted;    ///< what is counted in place of time
  bool prefix_is_gpu = false;        ///< "trainer-0 |", "0:" identify GPUs
  std::string tag;                   ///< the field that does: see line_fields.hpp; empty: none
  bool heads_name_gpu = false;       ///< a line "GPU 1:" names the GPU of the lines after it
  bool in_blocks = false;
  bool minutes = false;                     ///< lines begin with hours and minutes
  bool elapsed = false;                     ///< lines give the time since the start
  bool no_stamps = false;                   ///< times in lines are durations
  bool count_in_epochs = false;             ///< what is counted begins anew with each epoch
  bool pid_is_process = false;              ///< "pid 4242" tells processes apart
  bool unclear = false;                     ///< read LineFigures::unclear, for want of others
  std::uint64_t unit_bytes = kBytesPerMiB;  ///< of figures without a unit
  bool unit_unknown = false;
  Grouping grouping = Grouping::by_comma;
  std::uint64_t open_unit_bytes = 0;  ///< of figures such as "4.000 MB", if nothing shows what they are
  std::string read_as;                ///< for people

  /// What identifies the program of a line, and thereby its GPU; empty: nothing does.
  [[nodiscard]] std::string_view origin(const LineFigures& line) const {
    return prefix_is_gpu ? line.prefix : line.tag;
  }
  [[nodiscard]] bool takes(const MemoryFigure& f) const {
    if (f.percent) return percents && f.role == (free_percents ? Meaning::free : Meaning::used);
    if (!roles.contains(f.role)) return false;
    if (f.role == Meaning::used && said_only && !f.is_said) return false;
    const bool is_allocator = f.role == Meaning::allocated || f.role == Meaning::reserved;
    if (of_gpu_only && !f.is_of_gpu && !is_allocator) return false;
    return f.role != Meaning::used || !label || *label == f.label;
  }
  /// If there are only peaks: makes of each what it is the peak of.
  void settle_peaks(LineFigures& line) const;
  /// If there are shares: makes percentages of them.
  void settle_shares(LineFigures& line) const {
    if (!shares) return;
    for (MemoryFigure& f : line.figures) {
      if (f.percent || f.unit_bytes != 0 || f.role != Meaning::used) continue;
      f.percent = true;
      f.number *= 100;
    }
  }
  [[nodiscard]] std::uint64_t bytes(MemoryFigure f) const {
    if (f.is_open && open_unit_bytes != 0) f.unit_bytes = open_unit_bytes;
    return f.bytes(unit_bytes);
  }
};

/// One line of the head that has figures, and what came before it.
struct HeadLine {
  std::uint64_t number = 0;
  std::string text;
  LineFigures found;
  std::map<Meaning, std::uint64_t> counts;  ///< of this line, or the last before it
  std::string stamp;                        ///< likewise
  std::string count;                        ///< of what is counted in place of time; empty: none so far
  std::string minute;                       ///< likewise: LineFigures::minute
  std::uint64_t minute_line = 0;            ///< on which that stands
  int head_gpu = -1;                        ///< of the last heading: a line that names a GPU and has no figures
  std::size_t heads = 0;                    ///< headings so far
  bool is_row = false;                      ///< of a table
};

struct Head {
  std::deque<HeadLine> lines;  ///< never moved: other data are views into them
  std::size_t stamped = 0;     ///< of them, those with a time in the line or before it
  std::size_t heads = 0;       ///< headings: lines that name a GPU and have no figures
  std::string first;           ///< line with anything in it
};

/// Reads the lines of a head that have figures. `unclear`: takes LineFigures::unclear for them. O(bytes).
Head survey(std::string_view text, bool unclear, Grouping grouping = Grouping::by_comma);
/// The count of a line; nullopt: it has none.
std::optional<std::uint64_t> count_of(const LineFigures& line, Meaning meaning);
/// "describe a line with --line-pattern, for example ...".
std::string how_to_say();
/// The same, with an example that reads a figure of `line`.
std::string how_to_say(const HeadLine& line);

/// As seconds, for a StampReader; empty: there is none.
std::string stamp_of(const Elapsed& elapsed);
/// The same, with an example that does not read from lines like `others`.
std::string how_to_say(const HeadLine& line, const std::vector<const HeadLine*>& others);

/// Decides what serves as the clock: times, hours and minutes, seconds since the start, or a count.
Status settle_times(Head& all, WordPlan& plan, std::vector<std::string>& assumptions);
/// The reader of those times or counts.
Result<StampReader> settle_clock(const LogHead& head, const Head& all, const WordPlan& plan,
                                 std::vector<std::string>& assumptions);

/// How lines name who wrote them: by a prefix, a process or another field.
void settle_origins(Head& all, WordPlan& plan);
/// Sets LineFigures::tag of all lines.
void tag_lines(Head& all, const WordPlan& plan);
/// How lines name their GPU, and whether a reading spans several lines: not all of them have the same roles then.
void settle_readings(const Head& all, WordPlan& plan);
/// Whether the lines of one time may be several readings of one GPU, rather than one reading of each of several: they
/// differ in their words ("train: ... mem 4000 MB", "val: ... mem 4100 MB").
Status settle_phases(const Head& all, const WordPlan& plan, std::size_t places);
/// Whether lines of one time seldom have the same words, and most lines have others than those before them: they are
/// events of one program. GPUs that are read at one time are read by one statement.
bool are_events(const Head& all, const WordPlan& plan);
/// The readings, each by the figure of one role.
std::vector<PlacedReading> placed_readings(const Head& all, const WordPlan& plan);

/// The highest free memory in the head. A log with only free memory derives used memory as the drop below this: its
/// growth and time to out-of-memory do not depend on the total.
std::uint64_t most_free_bytes(const Head& all, const WordPlan& plan);

/// What was decided about a head.
struct PlannedText {
  WordPlan plan;
  StampReader stamp;
  std::size_t places = 1;
  bool share_epochs = false;  ///< readings of one epoch are of one GPU
};
/// Decides which figures of `all` are meant, their unit, their clock and their GPUs. `all` is read again if numbers are
/// grouped in another way than was taken for granted. An Error names the line and what would help.
Result<PlannedText> plan_text(const LogHead& head, Head& all, bool unclear, std::vector<std::string>& assumptions);

/// "read as: time in the line, used memory by 'used' ('4000 MiB')".
std::string read_as(const Head& head, const WordPlan& plan);
/// The --line-pattern that reads from the lines what the plan reads from them, which is checked on all of `text`, from
/// which `head` was surveyed; empty: there is none.
std::string equal_pattern(std::string_view text, const Head& head, const WordPlan& plan);

}  // namespace vramtrack
