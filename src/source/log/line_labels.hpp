// Where the labels of the amounts in a line are: before them, after them, or before the index of their GPU. Private to
// the reader of free text.
#pragma once

#include <string_view>

#include "source/log/line_numbers.hpp"

namespace vramtrack {

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
