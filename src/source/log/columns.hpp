// The meaning of a CSV log's columns: from their titles or, without titles, from their values.
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
  partition,  ///< of a GPU, which has its own memory; 0: the first
  gpu,        ///< a title that names a GPU but not what is measured: "gpu0"
  series,
  device_name,
  pid,
  process_name,
  process_kind,
  user
};

/// The warning when peaks are read instead of current values.
inline constexpr std::string_view kOnlyPeaks =
    "only peaks are given, which never fall: a peak that no longer rises says nothing about what is in use now";

/// A parsed title.
struct Column {
  ColumnRole role = ColumnRole::other;
  int rank = 0;                  ///< if several columns have one role, the highest rank wins
  std::uint64_t unit_bytes = 0;  ///< of memory; 0: not given
  std::int64_t unit_ns = 0;      ///< of time; 0: not given
  /// For `busy`: device_busy. For used memory: device_used, or the allocator's allocated or reserved memory if another
  /// column has the other one.
  Metric metric = Metric::device_used;
  bool mentions_gpu = false;   ///< memory: a word names a GPU
  bool mentions_host = false;  ///< memory: a word names the host: "ram_used_mb"
  /// The column counts pages or blocks of unknown size: not read.
  bool counts_things = false;
};

/// Parses one title: "memory.used [MiB]", "vram_gb", "gpu_mem_util_pct", "t_s", ... Microseconds for a new title, and
/// a hundred nanoseconds for one that was asked about before.
Column classify_column(std::string_view title);

/// What a title counts: "epoch", "step", ...; empty: nothing.
std::string_view counted_by(std::string_view title);

/// Positions of the columns to read (-1: absent) and their units.
struct ColumnPlan {
  char delimiter = ',';
  std::size_t count = 0;     ///< fields per line
  std::string shared_title;  ///< names a GPU without its own memory, or host memory; empty: neither
  bool only_host = false;    ///< that memory is the host's, and no title names a GPU
  int outer_count = -1;      ///< of epochs, while `time` counts the steps within them
  int time = -1, date = -1, used = -1, free = -1, total = -1;
  int index = -1, uuid = -1, pci = -1, partition = -1, device_name = -1;
  int pid = -1, process_name = -1, process_kind = -1, user = -1;
  std::vector<int> series;          ///< further columns that distinguish series
  std::vector<int> distinguishing;  ///< those that do so by their values: see find_owner_fields()
  /// Another value in the same row: the allocator's allocated or reserved memory, or how busy the GPU is.
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
    int gpu = -1;       ///< GPU index; -1: not in the title
    int part = -1;      ///< position within the cell's list; -1: the cell holds one amount
    std::string label;  ///< whatever else distinguishes the series (a run, a host); mostly empty
    std::vector<Further> further;
  };
  std::vector<Wide> wide;
  bool unnamed_measure = false;          ///< the titles of `wide` name GPUs but no measure
  std::vector<int> other_indexes;        ///< further columns titled as an index
  bool index_is_unsure = false;          ///< the index may be a measure: "gpu" titles both
  bool only_peaks = false;               ///< the used column is a peak, because there is no other
  bool total_may_be_peak = false;        ///< the title of the total may also mean a peak ("Memory Max")
  bool clock_lines = false;              ///< the time is on a separate line before each reading's rows
  std::vector<std::string> passed_over;  ///< further columns of used memory that are not read
  StampReader::Title time_title;
  std::uint64_t used_unit = 0, free_unit = 0, total_unit = 0;  ///< 0: not given
  bool percent = false;                                        ///< the used column is a percentage
  bool pair = false;                                           ///< the used column holds "used/total"
  bool of_process = false;                                     ///< its title names the memory of one process
  bool of_nobody = false;                                      ///< the same, and no title names a GPU
  bool has_header = true;
  std::string header;          ///< the line that was read; empty when inferred
  std::string written_header;  ///< as in the file, if `header` has titles for additional fields
};

/// Takes the next record off `rest`, without its "\n" or "\r\n": a line, or several lines if a quoted field has line
/// breaks. A quote that is not closed within 64 KiB is treated as a plain character.
std::string_view take_record(std::string_view& rest, char delimiter);

/// Whether `line` ends inside a quoted field, so that the record continues on the next line.
bool ends_in_quotes(std::string_view line, char delimiter);

/// Splits a line at `delimiter` into trimmed fields; a field in double quotes may contain it.
void split_fields(std::string_view line, char delimiter, std::vector<std::string_view>& fields);
/// The same for a row of `count` fields: drops extra fields without a value at its end ("1,2,", "1,2,N/A").
void split_row(std::string_view line, char delimiter, std::size_t count, std::vector<std::string_view>& fields);
void drop_surplus(std::vector<std::string_view>& fields, std::size_t count);
/// An error if each row is a separate run with a start, an end and a duration: the peak of each run does not show how
/// memory changed within one.
Status check_runs(std::span<const std::string_view> titles);

/// The title of each column; empty where the header, cut at the delimiter, has fewer. Views into the plan.
std::vector<std::string_view> titles_of(const ColumnPlan& plan);

/// The delimiter of a line: the most frequent of comma, semicolon and tab; '\0' if it contains none.
char find_delimiter(std::string_view line);

/// Whether a line of a table drawn with '|' is not a row: a line of dashes, or psql's "(600 rows)" and mysql's "600
/// rows in set" at its end.
bool is_drawn(std::string_view line);

/// A table with more columns is none of memory.
inline constexpr std::size_t kMostColumns = 512;

/// Reads a header line. Columns are identified by title alone; an Error lists the titles and says what is missing, or
/// that there are more than kMostColumns. O(columns^2), below the limit.
Result<ColumnPlan> plan_header(std::string_view line, char delimiter);

/// Whether a line is a header: it has a title for used memory, and none of its fields is a number.
bool looks_like_header(std::string_view line, char delimiter);

/// Finds the columns that hold one series each (their titles differ only in a GPU's number, a run or a host) and puts
/// them into plan.wide, and other columns of used memory into plan.passed_over. REQUIRES plan.used >= 0.
void find_wide(std::span<const std::string_view> titles, std::span<const Column> columns, ColumnPlan& plan);

/// Whether a column of whole numbers identifies GPUs: it cycles through them in each reading, or lists one GPU after
/// another, or is constant if each reading has one row. A measure (utilization, temperature) does none of these.
bool behaves_like_index(std::span<const std::vector<std::string_view>> rows, std::size_t column, int time);

/// Reads "11283/62841MB", "8.1 GB / 24 GB": the unit after the second is that of both, `default_unit` if there is
/// none.
bool read_amount_pair(std::string_view text, std::uint64_t default_unit, std::uint64_t& used, std::uint64_t& total);

/// "time in column 1 'timestamp', used memory in column 3 'memory.used [MiB]'": describes the plan, for messages.
std::string describe(const ColumnPlan& plan);

/// Infers the columns of a log without a header from its rows (each split into fields, at least one row). Returns only
/// what the values show; otherwise an Error says why not and asks for the header. `dated`: there are lines with dates
/// between the rows. `assumptions` gets what was inferred.
Result<ColumnPlan> infer_columns(std::span<const std::vector<std::string_view>> rows, char delimiter, bool dated,
                                 std::vector<std::string>& assumptions);

}  // namespace vramtrack
