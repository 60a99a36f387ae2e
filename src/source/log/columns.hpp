// What the columns of a CSV log mean, by their titles or, if there are none, by their values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"
#include "source/log/stamp.hpp"

namespace vramtrack {

enum class ColumnRole : std::uint8_t {
  other,
  time,
  date,
  step,
  used,
  percent,
  free,
  total,
  peak,  ///< the most used memory so far
  busy,  ///< share of time in which the GPU works, in per cent
  index,
  uuid,
  pci,
  gpu,  ///< a title that names a GPU but not what is measured: "gpu0"
  series,
  device_name,
  pid,
  process_name,
  process_kind,
  user
};

/// What is said when peaks are read.
inline constexpr std::string_view kOnlyPeaks =
    "only peaks are given, which never fall: a peak that no longer rises says nothing about what is in use now";

/// A title, understood.
struct Column {
  ColumnRole role = ColumnRole::other;
  int rank = 0;                  ///< of several columns with one role, the highest is taken
  std::uint64_t unit_bytes = 0;  ///< of memory; 0: not said
  std::int64_t unit_ns = 0;      ///< of time; 0: not said
  /// Of busy: device_busy. Of used memory: device_used, or what a program's allocator has handed out or keeps, if
  /// another column has the other.
  Metric metric = Metric::device_used;
  bool says_gpu = false;   ///< of memory: a word says that it is a GPU's
  bool says_host = false;  ///< or the host's: "ram_used_mb"
  /// It counts pages or blocks of memory, whose size nothing says: not read.
  bool counts_things = false;
};

/// Understands one title: "memory.used [MiB]", "vram_gb", "host_mem_util_pct", "t_s", ...
Column classify_column(std::string_view title);

/// What a title says is being counted: "epoch", "step", ...; empty: nothing.
std::string_view counted_by(std::string_view title);

/// Positions of the columns that are read (-1: there is none) and their units.
struct ColumnPlan {
  char delimiter = ',';
  std::size_t count = 0;     ///< fields a line
  std::string shared_title;  ///< of a GPU without memory of its own, or of the host's memory; empty: neither
  int outer_count = -1;      ///< of epochs, while `time` counts the steps within them
  int time = -1, date = -1, used = -1, free = -1, total = -1;
  int index = -1, uuid = -1, pci = -1, device_name = -1;
  int pid = -1, process_name = -1, process_kind = -1, user = -1;
  std::vector<int> series;  ///< further columns that distinguish series
  /// A further figure of the same row: what a program's allocator has handed out, or keeps; how busy the GPU is.
  struct Further {
    int column = -1;
    Metric metric = Metric::allocator_reserved;
    std::uint64_t unit = 0;  ///< 0: that of the used column
  };
  Metric metric = Metric::device_used;  ///< of the used column
  std::vector<Further> further;         ///< empty with `wide`
  /// One used column per series ("gpu0_mem_used_mib,gpu1_mem_used_mib"); empty in the usual layout of one row per GPU.
  struct Wide {
    int used = -1;
    int total = -1;
    int gpu = -1;       ///< index; -1: the title has none
    int part = -1;      ///< of the list in the cell; -1: it holds one amount
    std::string label;  ///< what else distinguishes the series (a run, a host); mostly empty
    std::vector<Further> further;
  };
  std::vector<Wide> wide;
  bool unnamed_measure = false;          ///< the titles of `wide` name GPUs but not what is measured
  std::vector<int> other_indexes;        ///< further columns whose titles are those of an index
  bool index_is_unsure = false;          ///< the index may be a measure: the title "gpu" is used for both
  bool only_peaks = false;               ///< the used column is a peak, for want of others
  bool total_may_be_peak = false;        ///< the title of the total may also mean a peak ("Memory Max")
  bool clock_lines = false;              ///< the time is on a line of its own, before the rows of each reading
  std::vector<std::string> passed_over;  ///< further columns of used memory that are not read
  StampReader::Title time_title;
  std::uint64_t used_unit = 0, free_unit = 0, total_unit = 0;  ///< 0: not said
  bool percent = false;                                        ///< the used column is a percentage
  bool pair = false;                                           ///< the used column holds "used/total"
  bool of_process = false;                                     ///< its title is that of what one process holds
  bool has_header = true;
  std::string header;          ///< the line that was read; empty when inferred
  std::string written_header;  ///< as in the file, if `header` has titles for more fields
};

/// Takes the next record off `rest`, without its "\n" or "\r\n": a line, or several lines if a quoted field has line
/// breaks. A quote that is not closed within 64 KiB is treated as a plain character.
std::string_view take_record(std::string_view& rest, char delimiter);

/// Whether `line` ends within a quoted field: the record goes on in the next line.
bool ends_in_quotes(std::string_view line, char delimiter);

/// Splits a line at `delimiter` into trimmed fields; a field in double quotes may contain it.
void split_fields(std::string_view line, char delimiter, std::vector<std::string_view>& fields);
/// The same for a row of `count` fields: surplus ones at its end that have no value are dropped ("1,2,", "1,2,N/A").
void split_row(std::string_view line, char delimiter, std::size_t count, std::vector<std::string_view>& fields);
void drop_surplus(std::vector<std::string_view>& fields, std::size_t count);
/// An error if each row is a run of its own, with a start, an end and a duration: what each run used at most says
/// nothing about how memory changed within one.
Status check_runs(std::span<const std::string_view> titles);

/// The title of each column; empty where the header, cut at the delimiter, has fewer. They refer to the plan.
std::vector<std::string_view> titles_of(const ColumnPlan& plan);

/// The delimiter of a line: the most frequent of comma, semicolon and tab; '\0' when it has none.
char find_delimiter(std::string_view line);

/// Whether a line of a table drawn with '|' has no row: a line of dashes, or psql's "(600 rows)" and mysql's "600 rows
/// in set" at its end.
bool is_drawn(std::string_view line);

/// Reads a header line. Columns are identified by title alone; an Error lists the titles and says what is missing.
Result<ColumnPlan> plan_header(std::string_view line, char delimiter);

/// Whether a line is a header at all: it has a title for used memory, and none of its fields is a number.
bool looks_like_header(std::string_view line, char delimiter);

/// Finds the columns that hold one series each (their titles differ only in a GPU's number, a run or a host) and puts
/// them into plan.wide, and other columns of used memory into plan.passed_over. REQUIRES plan.used >= 0.
void find_wide(std::span<const std::string_view> titles, std::span<const Column> columns, ColumnPlan& plan);

/// Whether a column of whole numbers identifies GPUs: it counts through them in each reading, or lists one GPU after
/// another, or is constant where a reading has one row. A measure (utilization, temperature) does none of these.
bool behaves_like_index(std::span<const std::vector<std::string_view>> rows, std::size_t column, int time);

/// Reads "11283/62841MB", "8.1 GB / 24 GB": the unit behind the second is that of both, `default_unit` if there is
/// none.
bool read_amount_pair(std::string_view text, std::uint64_t default_unit, std::uint64_t& used, std::uint64_t& total);

/// "time in column 1 'timestamp', used memory in column 3 'memory.used [MiB]'": what was understood, for messages.
std::string describe(const ColumnPlan& plan);

/// Infers the columns of a log without a header from its rows (each split into fields, at least one row). Returns only
/// what the values show; otherwise an Error says why not and asks for the header. `dated`: there are lines with dates
/// between the rows. `assumptions` gets what was inferred.
Result<ColumnPlan> infer_columns(std::span<const std::vector<std::string_view>> rows, char delimiter, bool dated,
                                 std::vector<std::string>& assumptions);

}  // namespace vramtrack
