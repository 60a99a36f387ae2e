// Where the labels of the amounts in a line stand: before them, behind them, or before the index of their GPU. Private
// to the reader of free text.
#pragma once

#include <string_view>

#include "source/log/line_numbers.hpp"

namespace vramtrack {

/// The labels of `cut`, whose numbers are named; it must outlive this. O(numbers) to make.
class LineLabels {
 public:
  explicit LineLabels(const CutLine& cut);

  /// The label before number `i`, or before the index that stands between them: "used(gpu0)=", "mem_used[1]:".
  [[nodiscard]] std::string_view before(std::size_t i) const;
  /// The label behind number `i`, without the name of the next one's GPU.
  [[nodiscard]] std::string_view behind(std::size_t i) const;
  /// Whether labels stand behind their amounts: "4000 MiB used, 20000 MiB free". The first amount shows it.
  [[nodiscard]] bool follow() const { return follow_; }

 private:
  [[nodiscard]] bool ends_in_label() const;
  [[nodiscard]] std::string_view before_index(std::size_t i) const;

  const CutLine& cut_;
  bool follow_ = false;
};

}  // namespace vramtrack
