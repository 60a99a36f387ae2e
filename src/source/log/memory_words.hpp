// What a line of free text says: figures of GPU memory by the words and units beside them, whose they are, and what is
// counted in place of time. The words are data: memory_words.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// What a word means, in labels of figures.
enum class Meaning : std::uint8_t {
  none,
  used,
  allocated,  ///< by the program, in live tensors
  reserved,   ///< by the program's allocator
  free,
  total,
  peak,
  memory,  ///< it is memory
  vram,    ///< it is memory of a GPU
  gpu,
  rank,  ///< a process of several, each with a GPU of its own
  step,  ///< this and the next: counts of what a program does
  iteration,
  epoch,
  batch,
  request,
  rate,   ///< how busy something is; of memory, in per cent, how full
  other,  ///< no use of a GPU's memory
};

/// The meaning of one word; none when it is not in the table. Case does not matter.
Meaning meaning_of(std::string_view word);
/// "step", "epoch", ...: what a meaning from `step` to `request` is called.
std::string_view count_word(Meaning meaning);

/// One amount of memory.
struct MemoryFigure {
  Meaning role = Meaning::used;  ///< used (memory of no other role, too), allocated, reserved, free, total or peak
  bool is_said = false;          ///< a word says the role
  double number = 0;
  std::uint64_t unit_bytes = 0;    ///< 0: none is written
  bool percent = false;            ///< of the total
  int gpu = -1;                    ///< "GPU 1"; -1: none
  std::size_t begin = 0, end = 0;  ///< in the line, with its unit
  std::string_view word;           ///< the word, in the line, that says the role, or that it is memory
  std::string label;               ///< what stands beside it, without digits: alike for figures of one kind

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
  std::vector<MemoryFigure> figures;
  std::vector<LineCount> counts;
  int gpu = -1;             ///< the last index named, with or without figures
  std::string_view prefix;  ///< "trainer-0" of "trainer-0  | ...", "[pod/trainer-0/main] ..."; "0" of srun's "0: ..."
};

/// Reads `line` (beyond 4 KiB nothing is looked at) into `out`. Pure; microseconds.
void find_figures(std::string_view line, LineFigures& out);

/// The number in `digits` ("7,340", "2,89", "12.5") before a unit of so many bytes; negative: none. "7,340" is one of
/// thousands, "2,89" has a decimal comma, and so has "2,890 GB", since no card has 2890 GB.
double read_number(std::string_view digits, std::uint64_t unit_bytes);

/// Bytes of a unit as people write it: "M", "Gi" and "Mb" are units of memory, too. 0: none.
std::uint64_t written_unit(std::string_view word);

}  // namespace vramtrack
