// Chooses which figures to read from a free-text log, based on its first 256 KiB. Private to the text reader:
// text_words.cpp recognises it and reads the head, text_cut.cpp cuts lines, text_plan.cpp,
// text_clock.cpp and text_origins.cpp decide, text_equal.cpp describes the decision, text_refusal.cpp why there is
// none, text_lines.cpp reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/roster.hpp"
#include "source/log/stamp.hpp"

namespace vramtrack {

/// The fields of one line, or of several, about one GPU at one time. Missing fields are empty.
struct TextFigures {
  LogDevice gpu;          ///< with an index, a UUID or a text if it is named
  bool is_named = false;  ///< whether the line names the GPU
  std::optional<std::uint32_t> pid;
  std::string name, user;  ///< of the process; without a pid, `name` is the GPU's
  GpuMemory memory;
  std::uint64_t line = 0;  ///< number of the first line
  bool is_timed = false;   ///< has its own time

  /// REQUIRES: a role from `used` to `total`.
  [[nodiscard]] std::optional<std::uint64_t>& of(Meaning role) {
    return role == Meaning::used        ? memory.used
           : role == Meaning::allocated ? memory.allocated
           : role == Meaning::reserved  ? memory.reserved
           : role == Meaning::free      ? memory.free
                                        : memory.total;
  }
};

/// Which figures to read, according to the head.
struct WordPlan {
  std::set<Meaning> roles;           ///< of the figures to read
  bool of_gpu_only = false;          ///< used, free and total memory does not count unless a word names a GPU
  bool role_words_only = false;      ///< figures without a word for used memory are not used memory
  bool percents = false;             ///< read percentages, because there are no amounts
  bool free_percents = false;        ///< those of free memory, because there are no others
  bool free_only = false;            ///< read free memory, without any total: see most_free_bytes()
  bool ratios = false;               ///< figures without a unit are fractions of the total: 0.07
  bool peaks = false;                ///< read peaks, because there is nothing else: see use_peaks()
  std::optional<std::string> label;  ///< of used memory, if other labels are skipped
  std::optional<Meaning> counted;    ///< what is counted in place of time
  bool prefix_is_gpu = false;        ///< "trainer-0 |", "0:" identify GPUs
  std::string tag;                   ///< the field that identifies GPUs: see line_fields.hpp; empty: none
  std::size_t listed = 0;            ///< figures in the lists of lines; lines with another list are left out
  bool heads_name_gpu = false;       ///< a line "GPU 1:" names the GPU of the following lines
  bool in_blocks = false;
  bool minutes = false;                     ///< lines begin with hours and minutes
  bool elapsed = false;                     ///< lines give the time since the start
  bool no_stamps = false;                   ///< times in lines are durations
  bool stamps_are_steps = false;            ///< a pattern's group step takes the place of the time
  bool count_in_epochs = false;             ///< the count restarts with each epoch
  bool pid_is_process = false;              ///< "pid 4242" distinguishes processes
  bool unclear = false;                     ///< read LineFigures::unclear, because there is nothing else
  std::uint64_t unit_bytes = kBytesPerMiB;  ///< of figures without a unit
  std::uint64_t decimal_bytes = 0;          ///< of MB or GB, if they are 10^6 or 10^9: see decimal_unit()
  bool unit_unknown = false;
  Grouping grouping = Grouping::by_comma;
  std::uint64_t open_unit_bytes = 0;  ///< of figures such as "4.000 MB", if their grouping is unclear
  std::string read_as;                ///< describes the plan to the user

  /// Identifies the program of a line, and thereby its GPU; empty: unknown.
  [[nodiscard]] std::string_view origin(const LineFigures& line) const {
    if (!line.uuid.empty()) return line.uuid;
    return prefix_is_gpu ? line.prefix : line.tag;
  }
  [[nodiscard]] bool takes(const MemoryFigure& f) const {
    if (f.percent) return percents && f.role == (free_percents ? Meaning::free : Meaning::used);
    if (!roles.contains(f.role)) return false;
    if (f.role == Meaning::used && role_words_only && !f.has_role_word) return false;
    const bool is_allocator = f.role == Meaning::allocated || f.role == Meaning::reserved;
    if (of_gpu_only && !f.is_of_gpu && !is_allocator) return false;
    return f.role != Meaning::used || !label || *label == f.label;
  }
  [[nodiscard]] bool is_other_list(const LineFigures& line) const { return line.listed > 0 && line.listed != listed; }
  [[nodiscard]] bool takes_any(const LineFigures& line) const {
    return std::any_of(line.figures.begin(), line.figures.end(), [this](const MemoryFigure& f) { return takes(f); });
  }
  /// If there are only peaks: gives each the role of the memory it is the peak of.
  void use_peaks(LineFigures& line) const;
  /// If there are fractions: converts them to percentages.
  void convert_ratios(LineFigures& line) const {
    if (!ratios) return;
    for (MemoryFigure& f : line.figures) {
      if (f.percent || f.unit_bytes != 0 || f.role != Meaning::used) continue;
      f.percent = true;
      f.number *= 100;
    }
  }
  [[nodiscard]] std::uint64_t unit_bytes_of(const MemoryFigure& f) const {
    const std::uint64_t binary_bytes = decimal_bytes == 1'000'000 ? kBytesPerMiB : kBytesPerGiB;
    if (decimal_bytes != 0 && f.unit_bytes == binary_bytes) return decimal_bytes;
    return f.is_open && open_unit_bytes != 0 ? open_unit_bytes : f.unit_bytes != 0 ? f.unit_bytes : unit_bytes;
  }
  [[nodiscard]] std::uint64_t bytes(MemoryFigure f) const {
    f.unit_bytes = unit_bytes_of(f);
    return f.bytes(1);
  }
};

/// One line of the head that has figures, and what came before it.
struct HeadLine {
  std::uint64_t number = 0;
  std::string text;
  LineFigures found;
  std::map<Meaning, std::uint64_t> counts;  ///< from this line, or the last one before it
  std::string stamp;                        ///< as counts
  std::string count;                        ///< of what is counted in place of time; empty: none so far
  std::string minute;                       ///< as counts: LineFigures::minute
  std::uint64_t minute_line = 0;            ///< line number of that minute
  int head_gpu = -1;                        ///< of the last heading: a line that names a GPU and has no figures
  std::size_t heads = 0;                    ///< headings so far
  bool is_row = false;                      ///< of a table
};

struct Head {
  std::deque<HeadLine> lines;  ///< never moved: other data has views into them
  std::size_t stamped = 0;     ///< number of lines with a time in them or before them
  std::size_t heads = 0;       ///< headings: lines that name a GPU and have no figures
  std::string first;           ///< first non-blank line
  bool has_match = false;      ///< some line matches the pattern
};

/// Cuts the figures out of lines: by the words next to them, or by --line-pattern. Not thread-safe.
class LineCutter {
 public:
  LineCutter() = default;
  explicit LineCutter(LinePattern pattern) : pattern_(std::move(pattern)) {}

  /// `raw` as it is cut: by words, the row of a table is rewritten as text. Valid until the next call.
  std::string_view line(std::string_view raw) { return pattern_ ? raw : table_.line(raw); }
  /// Finds the figures of such a line.
  void cut(std::string_view line, Grouping grouping, LineFigures& out) {
    pattern_ ? cut_by_pattern(line, grouping, out) : find_figures(line, out, grouping);
  }
  /// Whether the last line belonged to a table.
  [[nodiscard]] bool in_table() const { return table_.in_table(); }
  [[nodiscard]] const std::optional<LinePattern>& pattern() const { return pattern_; }
  /// Whether the last line matches the pattern.
  [[nodiscard]] bool matches() const { return matches_; }
  /// Why the last line, which matches, cannot be read ("no readable amount"); empty: it can.
  [[nodiscard]] std::string_view fault() const { return fault_; }
  /// Sets what the groups of the last line say of the owner of its figures.
  void name(TextFigures& out) const;

 private:
  void cut_by_pattern(std::string_view line, Grouping grouping, LineFigures& out);

  TableRows table_;
  std::optional<LinePattern> pattern_;
  TextReading groups_;  ///< of the last line
  bool matches_ = false;
  std::string_view fault_;
};

/// Reads the lines of a head that have figures. `unclear`: includes LineFigures::unclear. O(bytes).
Head survey(std::string_view text, LineCutter cutter, bool unclear, Grouping grouping = Grouping::by_comma);
/// The count of a line; nullopt: it has none.
std::optional<std::uint64_t> count_of(const LineFigures& line, Meaning meaning);
/// "describe a line with --line-pattern, for example ...".
std::string pattern_hint();
/// The same, with an example that reads a figure of `line`.
std::string pattern_hint(const HeadLine& line);

/// As seconds, for a StampReader; empty: none.
std::string stamp_of(const Elapsed& elapsed);
/// The same, with an example that does not match lines like `others`.
std::string pattern_hint(const HeadLine& line, const std::vector<const HeadLine*>& others);

/// Decides what serves as the clock: times, hours and minutes, seconds since the start, or a count.
Status choose_clock(Head& all, WordPlan& plan, std::vector<std::string>& assumptions);
/// The reader of those times or counts.
Result<StampReader> make_clock(const LogHead& head, const Head& all, const WordPlan& plan,
                               std::vector<std::string>& assumptions);

/// A reading of the head.
struct HeadReading {
  std::string stamp;  ///< from the line, or the last one before it
  double used = 0;    ///< in any unit
  std::uint64_t line = 0;
  std::string gpu;  ///< as the line names it; empty: not named
};

/// Whether a line that is read at one level of `readings` also has the amount of another one, as in "end - start:
/// 990000000 - 8600000": its owner is at several levels, so these do not distinguish GPUs that each keep theirs.
/// O(bytes of the head).
bool shows_several_levels(const Head& all, const WordPlan& plan, const std::vector<HeadReading>& readings);

/// The number of GPUs covered by the readings that do not name theirs: see count_gpus_by_order(). Fails like that, and
/// for readings that name the same GPU. `stamp` reads the times as the parser will. `is_one_owner`: values that repeat
/// exactly are one GPU's, as the user has defined what a reading is, or shows_several_levels(); else `example` says how
/// to define it: see pattern_hint().
Result<std::size_t> count_unnamed_gpus(const std::vector<HeadReading>& readings, StampReader stamp, bool is_one_owner,
                                       const std::function<std::string()>& example,
                                       std::vector<std::string>& assumptions);

/// Detects how lines name their writer: by a prefix, a process or another field.
void detect_origins(Head& all, WordPlan& plan);
/// Sets LineFigures::tag of all lines.
void tag_lines(Head& all, const WordPlan& plan);
/// Detects a field whose values distinguish the GPUs of a reading, although its name does not say so, if nothing else
/// names them. Call after choose_clock() and detect_readings().
void detect_ids(Head& all, WordPlan& plan, std::vector<std::string>& assumptions);
/// Detects how lines name their GPU, and whether a reading spans several lines: then their roles differ.
void detect_readings(const Head& all, WordPlan& plan);
/// Fails if lines with equal times could be either phases of one GPU or several GPUs: they differ in their words
/// ("train: ... mem 4000 MB", "val: ... mem 4100 MB").
/// Lines that give one amount in several units are of one GPU: sets `unnamed_gpus`.
Status check_phases(const Head& all, const WordPlan& plan, std::size_t& unnamed_gpus);
/// Whether lines of one time seldom have the same words, and most lines have other words than the previous ones: they
/// are events of one program. GPUs read at one time are printed by one statement.
bool are_events(const Head& all, const WordPlan& plan);
/// The readings, each represented by the figure of one role.
std::vector<HeadReading> head_readings(const Head& all, const WordPlan& plan);

/// The highest free memory in the head. For a log with only free memory, used memory is the drop below this: its growth
/// and time to out-of-memory do not depend on the total.
std::uint64_t most_free_bytes(const Head& all, const WordPlan& plan);

/// The decisions about a head.
struct PlannedText {
  WordPlan plan;
  StampReader stamp;
  std::size_t unnamed_gpus = 1;
  bool share_epochs = false;                  ///< readings of one epoch come from one GPU
  bool are_events = false;                    ///< see are_events()
  std::uint64_t most_free_bytes = 0;          ///< if there is only free memory: see most_free_bytes()
  std::function<std::string()> correction{};  ///< says how to read something else; looks for a pattern: milliseconds
};
/// Decides which figures of `all` to read, their unit, their clock and their GPUs. `all` is read again if numbers are
/// grouped differently than assumed. An Error names the line and what would help.
Result<PlannedText> plan_text(const LogHead& head, Head& all, const LineCutter& cutter, bool unclear,
                              std::vector<std::string>& assumptions);
/// The same for the lines of a pattern, whose groups say which figures are meant.
Result<PlannedText> plan_pattern(const LogHead& head, Head& all, const LineCutter& cutter,
                                 std::vector<std::string>& assumptions);

/// The parser of the lines as planned. `has_capacity`: the user has given the total memory of the GPUs.
std::unique_ptr<LogParser> make_text_lines(PlannedText planned, LineCutter cutter, bool has_capacity,
                                           std::vector<std::string> assumptions);

/// "read as: time in the line, used memory by 'used' ('4000 MiB')".
std::string read_as(const Head& head, const WordPlan& plan);
/// The --line-pattern that reads from the lines what the plan reads from them, checked on all of `text`, from which
/// `head` was surveyed; empty: none.
std::string equal_pattern(std::string_view text, const Head& head, const WordPlan& plan);

/// Why the lines of `head` cannot be read: amounts of host memory, amounts without a word that names the GPU's, or
/// numbers without a time and a unit. Names a line, what was expected and the option that helps. Empty: no such reason.
/// Pure; O(bytes), at most the first 4,000 lines.
std::string why_no_text(std::string_view head);

/// A --line-pattern that reads the amount at [begin, end) of `line` as used memory by the word next to it, for a
/// message that asks for one; empty: no word distinguishes it from the rest of the line.
std::string example_pattern(std::string_view line, std::size_t begin, std::size_t end);

}  // namespace vramtrack
