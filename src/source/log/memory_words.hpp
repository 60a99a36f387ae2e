// The content of a line of free text: GPU memory figures, found by the words and units next to them, the GPU they
// belong to, and any count that replaces time. The words are data in core/words.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/meaning.hpp"
#include "source/log/cells.hpp"
#include "source/log/line_start.hpp"

namespace vramtrack {

/// The first English word of the table with this meaning: "step", "epoch", "used", ... Empty for `none`.
std::string_view word_for(Meaning meaning);
/// The word for a meaning from `step` to `request`: "step", "epoch", ... "step" for any other meaning.
std::string_view count_word(Meaning meaning);

/// One amount of memory.
struct MemoryFigure {
  Meaning role = Meaning::used;  ///< used (also memory without another role), allocated, reserved, free, total or peak
  bool has_role_word = false;    ///< a word gives the role
  bool is_of_gpu = false;        ///< a word, possibly earlier in the line, names a GPU
  bool is_memory = false;        ///< a word, possibly earlier in the line, names memory
  double number = 0;
  std::uint64_t unit_bytes = 0;    ///< 0: no unit is written
  bool percent = false;            ///< of the total
  bool is_open = false;            ///< see is_open_number()
  int gpu = -1;                    ///< "GPU 1"; -1: none
  std::size_t begin = 0, end = 0;  ///< position in the line, with its unit
  std::size_t digits_end = 0;      ///< in the line, without its unit
  std::string_view word;           ///< the word in the line that gives the role, or names memory
  std::string label;               ///< the text next to it, without digits: equal for figures of one kind

  /// The amount in bytes; in `default_unit` if no unit is written.
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
  /// "10:05", if the line begins with it and has no stamp: a time of day if the whole log confirms it.
  std::string_view minute;
  /// From "[12.5s]" or "t=0.5 min", without a stamp or minute: the time since the start if it rises.
  Elapsed elapsed;
  std::vector<MemoryFigure> figures;
  /// Numbers next to "memory" without a unit and without a word for a GPU: used if the log has no other GPU memory.
  std::vector<MemoryFigure> unclear;
  /// Amounts next to the name of a card: "CUDA:0 (NVIDIA RTX A5000, 22731MiB)".
  std::vector<MemoryFigure> capacities;
  std::vector<LineCount> counts;
  int gpu = -1;                            ///< the last index mentioned, with or without figures
  std::size_t gpu_begin = 0, gpu_end = 0;  ///< where it is first mentioned
  std::string_view gpu_word;               ///< "rank", "GPU" or "cuda", right before it
  std::size_t listed = 0;                  ///< figures of a list that are assigned to GPUs 0, 1, ...
  std::optional<std::uint32_t> pid;        ///< "pid 4242"
  std::size_t pid_begin = 0, pid_end = 0;
  std::string_view pid_word;
  std::string_view prefix;  ///< "trainer-0" of "trainer-0  | ...", "[pod/trainer-0/main] ..."; "0" of srun's "0: ...";
                            ///< "node-7" of "node-7: ..."
  /// "GPU-8f6f..." or "MIG-...": the GPU that the line describes; empty: none, or several.
  std::string_view uuid;
  std::string_view tag;  ///< value of a field that identifies the writer, if the caller has looked for one
};

/// Reads `line` (only its first 4 KiB) into `out`. `open`: see read_number(). Pure; microseconds.
void find_figures(std::string_view line, LineFigures& out, Grouping open = Grouping::by_comma);

/// Whether `text` has a German word of the table: numbers next to it use dots for thousands.
bool is_german(std::string_view text);

/// Whether `word` belongs to a language other than English.
bool is_foreign(std::string_view word);

/// Whether `title` names a column of GPU memory: "GPU_mem".
bool is_title_of_gpu_memory(std::string_view title);

/// Bytes of a unit as people write it: in addition to those of words.def, "M", "Gi" and "Mb" are units of memory.
/// Returns 0 if it is not a unit.
std::uint64_t written_unit(std::string_view word);

}  // namespace vramtrack
