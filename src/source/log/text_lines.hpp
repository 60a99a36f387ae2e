// Common parts of the free-text readers: a clock for lines that may have none, readings that span several lines, and
// GPUs without a name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/log/dumps.hpp"
#include "source/log/memory_words.hpp"

namespace vramtrack {

/// The fields of one line, or of several, about one GPU at one time. Missing fields are empty.
struct TextFigures {
  LogDevice gpu;          ///< with an index, a UUID or a text if it is named
  bool is_named = false;  ///< whether the line names the GPU
  std::optional<std::uint32_t> pid;
  std::string name, user;  ///< of the process; without a pid, `name` is the GPU's
  std::optional<std::uint64_t> used, total, free, allocated, reserved;
  std::optional<double> percent;  ///< of the total, used
  std::uint64_t line = 0;         ///< number of the first line
  bool is_timed = false;          ///< has its own time

  [[nodiscard]] bool has_use() const { return used || allocated || reserved || percent || (free && total); }
};

/// A parser of lines of text. The derived class finds the figures; this class assigns them to a time and a
/// series.
class TextLines : public LineParser {
 public:
  TextLines(StampReader stamp, std::vector<std::string> assumptions) : LineParser(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
  }

  /// Each time has readings of `n` GPUs, and the readings do not name their GPU.
  void expect_unnamed_gpus(std::size_t n) { unnamed_gpus_ = n; }
  /// A reading may span several lines: it ends when another time begins, or when a figure repeats.
  void expect_blocks() { in_blocks_ = true; }
  /// Sets how many bytes 1 % is, for GPUs whose total is unknown.
  void set_percent_bytes(double bytes) { percent_bytes_ = bytes; }
  /// The total of GPUs whose lines do not give it.
  void set_capacity(std::uint64_t bytes) { capacity_bytes_ = bytes; }
  /// The unit of the amounts is unknown; it is assumed to be `bytes`.
  void set_unit_unknown(std::uint64_t bytes) { unknown_unit_ = bytes; }

  void finish(LogRows& rows) override { flush(rows); }
  [[nodiscard]] std::string_view needs_file_order() const final {
    if (unnamed_gpus_ > 1) return "its rows do not name the GPU";
    if (in_blocks_) return "several lines make a reading";
    return borrows_time_ ? "some of its rows have no time of their own" : std::string_view{};
  }
  [[nodiscard]] Scale scale() const final {
    Scale scale = stamp_.scale();
    if (unknown_unit_ != 0) {
      scale.has_unit = false;
      scale.unit_bytes = static_cast<double>(unknown_unit_);
    }
    return scale;
  }

 protected:
  /// Takes the time in `text` as the current one, if there is one.
  void read_time(std::string_view text, LogRows& rows);
  /// The total of GPU `index`, from a line without readings.
  void set_total(int index, std::uint64_t bytes) { index_totals_[index] = bytes; }
  /// Adds the fields of a line to the current reading.
  void take(TextFigures figures, LogRows& rows);
  /// Delivers incomplete readings with the fields known so far.
  void flush(LogRows& rows);

 private:
  void end_reading(LogRows& rows) final { flush(rows); }
  bool has_time(std::size_t device, std::uint32_t pid);
  std::optional<int> next_unnamed_index();
  void emit(TextFigures& figures, LogRows& rows);

  Timestamp time_{};
  bool in_blocks_ = false;
  std::vector<TextFigures> pending_;
  std::map<std::size_t, std::uint64_t> totals_;  ///< by device, as last given; 0: not yet
  std::map<int, std::uint64_t> index_totals_;    ///< by index, from lines without a reading
  double percent_bytes_ = 0;
  std::uint64_t unknown_unit_ = 0;
  std::uint64_t capacity_bytes_ = 0;  ///< 0: not given
  std::size_t unnamed_gpus_ = 1;
  std::size_t unnamed_index_ = 0;
  Timestamp unnamed_time_ = LogRows::kNever;
  bool stamped_ = false;
  bool is_own_ = false;        ///< the time is in the line being read
  bool borrows_time_ = false;  ///< some line had no time of its own
  std::uint64_t round_ = 0;
  std::vector<std::pair<std::size_t, std::uint32_t>> in_round_;
};

/// A reading of the head.
struct HeadReading {
  std::string stamp;  ///< from the line, or the last one before it
  double used = 0;    ///< in any unit
  std::uint64_t line = 0;
  std::string gpu;  ///< as the line names it; empty: not named
};

/// The number of GPUs covered by the readings that do not name theirs: see count_gpus_by_order(). Fails like that, and
/// for readings that name the same GPU. `stamp` reads the times as the parser will. `by_pattern`: the user has
/// defined what a reading is.
Result<std::size_t> count_unnamed_gpus(const std::vector<HeadReading>& readings, StampReader stamp, bool by_pattern,
                                       std::vector<std::string>& assumptions);

/// The clock of a head, from the lines in which `of` finds a time.
template <class Of>
Result<StampReader> make_text_clock(const LogHead& head, Of of, StampReader::Title title,
                                    std::vector<std::string>& assumptions) {
  constexpr std::size_t kMost = 600;
  std::vector<std::string_view> samples;
  std::string_view rest = head.text;
  while (!rest.empty() && samples.size() < kMost)
    if (const std::string_view stamp = of(logtext::take_line(rest)); !stamp.empty()) samples.push_back(stamp);
  return StampReader::detect(samples, title, *head.options, *head.zone, assumptions);
}

/// The readers of the format `text`: by --line-pattern, and by the words next to figures.
Result<std::unique_ptr<LogParser>> make_pattern_lines(const LogHead& head);
Result<std::unique_ptr<LogParser>> make_word_lines(const LogHead& head);
/// How many of the first lines have memory figures with words that identify them; stops at `most`.
std::size_t count_word_lines(std::string_view head, std::size_t most);
/// Whether there are lines that may have such figures: see LineFigures::unclear.
bool has_unclear_lines(std::string_view head);
/// Whether most of the first lines are rows of a table with memory figures.
bool is_table_of_figures(std::string_view head);

}  // namespace vramtrack
