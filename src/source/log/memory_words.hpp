// What a line of free text says: figures of GPU memory, found by the words and units next to them, which GPU they
// belong to, and what is counted in place of time. The words are data: core/words.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/meaning.hpp"
#include "source/log/grouping.hpp"
#include "source/log/line_start.hpp"

namespace vramtrack {

/// The first English word of the table with a meaning: "step", "epoch", "used", ... Empty for `none`.
std::string_view word_for(Meaning meaning);
/// The word for a meaning from `step` to `request`: "step", "epoch", ... For any other, "step".
std::string_view count_word(Meaning meaning);

/// One amount of memory.
struct MemoryFigure {
  Meaning role = Meaning::used;  ///< used (also memory without another role), allocated, reserved, free, total or peak
  bool is_said = false;          ///< a word gives the role
  bool is_of_gpu = false;        ///< a word says that it is of a GPU, also one before it in the line
  bool is_memory = false;        ///< a word says that it is memory, also one before it in the line
  double number = 0;
  std::uint64_t unit_bytes = 0;    ///< 0: no unit is written
  bool percent = false;            ///< of the total
  bool is_open = false;            ///< see is_open_number()
  int gpu = -1;                    ///< "GPU 1"; -1: none
  std::size_t begin = 0, end = 0;  ///< in the line, with its unit
  std::size_t digits_end = 0;      ///< in the line, without its unit
  std::string_view word;           ///< the word in the line that gives the role, or that says it is memory
  std::string label;               ///< the text next to it, without digits: the same for figures of one kind

  /// In bytes; `default_unit` where no unit is written.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t default_unit) const;
};

/// "step 120", "Epoch [3/10]", "request 7:".
struct LineCount {
  Meaning meaning = Meaning::step;
  std::uint64_t value = 0;
  std::size_t begin = 0, end = 0;
  std::string_view word;
};

struct LineFigures {
  std::string_view stamp;  ///< see find_stamp()
  /// "10:05", if the line begins with it and has no stamp: a time of day if the whole log says so.
  std::string_view minute;
  /// Of "[12.5s]" or "t=0.5 min", without a stamp or minute: the time since the start if it rises.
  Elapsed elapsed;
  std::vector<MemoryFigure> figures;
  /// Numbers beside "memory" without a unit and without a word for a GPU: its memory if nothing else in the log is.
  std::vector<MemoryFigure> unclear;
  /// What stands beside the name of a card: "CUDA:0 (NVIDIA RTX A5000, 22731MiB)".
  std::vector<MemoryFigure> capacities;
  std::vector<LineCount> counts;
  int gpu = -1;                            ///< the last index mentioned, with or without figures
  std::size_t gpu_begin = 0, gpu_end = 0;  ///< where it is mentioned first
  std::string_view gpu_word;               ///< "rank", "GPU", "cuda", right before it
  std::size_t listed = 0;                  ///< figures of a list that are taken for those of GPUs 0, 1, ...
  std::optional<std::uint32_t> pid;        ///< "pid 4242"
  std::size_t pid_begin = 0, pid_end = 0;
  std::string_view pid_word;
  std::string_view prefix;  ///< "trainer-0" of "trainer-0  | ...", "[pod/trainer-0/main] ..."; "0" of srun's "0: ...";
                            ///< "node-7" of "node-7: ..."
  std::string_view tag;     ///< of a field that names who wrote the line, if the caller has looked for one
};

/// Reads `line` (only its first 4 KiB) into `out`. `open`: see read_number(). Pure; microseconds.
void find_figures(std::string_view line, LineFigures& out, Grouping open = Grouping::by_comma);

/// Whether `text` has a German word of the table: numbers beside it are grouped by dots.
bool is_german(std::string_view text);

/// Whether `word` is one of another language than English.
bool is_foreign(std::string_view word);

/// Whether `title` says that a column is the memory of a GPU: "GPU_mem".
bool is_title_of_gpu_memory(std::string_view title);

/// Bytes of a unit as people write it: beside those of words.def, "M", "Gi" and "Mb" are units of memory too. 0: not a
/// unit.
std::uint64_t written_unit(std::string_view word);

}  // namespace vramtrack
