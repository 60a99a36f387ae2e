// The numbers in a line of free text, with their units, and where the labels of its amounts are: before them, after
// them, or before the index of their GPU. Private to the reader of free text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "source/log/cells.hpp"
#include "source/log/memory_words.hpp"

namespace vramtrack {

/// The use of a number that is not a memory amount.
enum class NumberUse : std::uint8_t {
  amount,    ///< or irrelevant
  gpu,       ///< a GPU index after a word for GPU: "GPU 0", "cuda:1"
  rank,      ///< rank of a process with its own GPU: "rank 3"
  argument,  ///< a GPU index within a label: "memory_allocated(0)", "mem_used[1]", "vram0", "used#1"
  key,       ///< a GPU index before its figure: "{0: '5.85GB', 1: '4.88GB'}"
  pid,
  count,  ///< for a program's progress: "step 120"
};

/// A number in a line.
struct LineNumber {
  std::size_t begin = 0, digits_end = 0, end = 0;  ///< positions in the line; `end` is after the unit
  double number = 0;
  std::uint64_t unit_bytes = 0;  ///< 0: no unit is written
  bool percent = false, rate = false, whole = true, open = false;
  bool binary = false;  ///< in MiB or GiB, which hardly anything but memory uses
  NumberUse use = NumberUse::amount;

  [[nodiscard]] bool is_amount() const { return unit_bytes != 0 || percent; }
  /// Whether it identifies the GPU of figures.
  [[nodiscard]] bool is_index() const { return use >= NumberUse::gpu && use <= NumberUse::key; }
};

/// A line, its numbers, and the text between them.
struct CutLine {
  std::string_view line;
  std::string_view time;  ///< a part of the line; empty: none
  std::vector<LineNumber> numbers;
  struct Name {
    std::size_t begin = 0, end = 0;
  };
  std::vector<Name> names;  ///< names of cards: "NVIDIA A100 80GB PCIe"
  std::string_view uuid;    ///< see LineFigures::uuid
  /// Digits whose values, not only the form of the line, determined the result: see LineForms.
  struct Pair {
    MemoryFigure used, total;  ///< used was found not to exceed total
  };
  std::vector<Pair> pairs;
  bool by_value = false;  ///< values mattered in other ways

  /// The text before number `i`, back to the previous one. Text before the time is the prefix, not a label, and the
  /// words of a card's name are not labels unless a label precedes them.
  [[nodiscard]] std::string_view before(std::size_t i) const;
  /// The text after number `i` and its unit, up to the next number.
  [[nodiscard]] std::string_view after(std::size_t i) const;
};

/// Finds the numbers of `out.line` outside its time. `open`: see read_number().
void cut_numbers(CutLine& out, Grouping open);

/// `digits` without the spaces and apostrophes between thousands: "4 012" and "4'012" are "4012".
std::string plain_digits(std::string_view digits);

/// Sets LineNumber::use of all numbers of `cut`. Removes the divisors: the amount after "memory_allocated() / 1024**3"
/// gets the unit GiB; in "[9000, 4000] MB", both get MB. `out` gets the counts, the pid, and the first index.
/// O(bytes).
void name_numbers(CutLine& cut, LineFigures& out);

/// The labels of `cut`, whose numbers are classified; it must outlive this object. O(numbers) to construct.
class LineLabels {
 public:
  explicit LineLabels(const CutLine& cut);

  /// The label before number `i`, or before the index between them: "used(gpu0)=", "mem_used[1]:".
  [[nodiscard]] std::string_view before(std::size_t i) const;
  /// The label after number `i`, without the name of the next number's GPU.
  [[nodiscard]] std::string_view behind(std::size_t i) const;
  /// Whether labels follow their amounts: "4000 MiB used, 20000 MiB free". The first amount decides.
  [[nodiscard]] bool follow() const { return follow_; }
  /// Whether the text before an amount describes it as well.
  [[nodiscard]] bool precede() const { return !follow_ || in_brackets_; }

 private:
  [[nodiscard]] bool has_labels_in_brackets() const;
  [[nodiscard]] bool ends_in_label() const;
  [[nodiscard]] std::string_view before_index(std::size_t i) const;

  const CutLine& cut_;
  bool follow_ = false;
  bool in_brackets_ = false;
};

}  // namespace vramtrack
