#include "source/log/line_labels.hpp"

#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

LineLabels::LineLabels(const CutLine& cut) : cut_(cut) {
  follow_ = in_brackets_ = has_labels_in_brackets();
  if (follow_) return;
  for (std::size_t i = 0; i < cut.numbers.size(); ++i) {
    if (!cut.numbers[i].is_amount() || cut.numbers[i].rate) continue;
    const Label own = read_label(before(i));
    const std::string_view text = logtext::trim(cut.before(i));
    // "weights=13 GB gpu_used=20 GB"
    const bool stands_before =
        !own.roles.empty() || ((own.other || own.host) && (text.ends_with('=') || text.ends_with(':')));
    follow_ = !stands_before && !read_label(behind(i)).roles.empty() && ends_in_label();
    if (stands_before || follow_) break;  // "45%|" of a progress bar shows neither
  }
}

/// "Memory usage: 5 GB (allocated), 6 GB (reserved)": each of several amounts has its own label in brackets behind it.
bool LineLabels::has_labels_in_brackets() const {
  std::size_t amounts = 0;
  for (std::size_t i = 0; i < cut_.numbers.size(); ++i) {
    if (!cut_.numbers[i].is_amount() || cut_.numbers[i].rate) continue;
    const std::string_view text = logtext::trim(cut_.after(i));
    if (!text.starts_with('(') || text.find(')') == std::string_view::npos ||
        read_label(label_after(text)).roles.empty())
      return false;
    ++amounts;
  }
  return amounts > 1;
}

/// Whether the last amount has a label after it: "24GB VRAM used 4000 MB" has none there.
bool LineLabels::ends_in_label() const {
  for (std::size_t i = cut_.numbers.size(); i-- > 0;)
    if (cut_.numbers[i].is_amount() && !cut_.numbers[i].rate) return !read_label(behind(i)).roles.empty();
  return false;
}

std::string_view LineLabels::before(std::size_t i) const {
  const std::string_view own = label_before(cut_.before(i));
  const bool is_asked = i > 0 && cut_.numbers[i - 1].is_index() && !read_label(own).has_meaning();
  return is_asked ? label_before(before_index(i - 1)) : own;
}

/// The text before the index `i`. Keys and the names of GPUs may follow one another, with the label before the first:
/// "VRAM: {0: '5 GB', 1: '6 GB'}".
std::string_view LineLabels::before_index(std::size_t i) const {
  const auto& numbers = cut_.numbers;
  std::string_view text = cut_.before(i);
  while (i >= 2 && numbers[i].use != NumberUse::argument && !read_label(text).has_meaning() &&
         numbers[i - 2].use == numbers[i].use && numbers[i - 1].use == NumberUse::amount) {
    i -= 2;
    text = cut_.before(i);
  }
  if (numbers[i].use == NumberUse::argument || numbers[i].use == NumberUse::key) return text;
  // "used(gpu0)", but not "host memory 45 % | GPU0".
  text.remove_prefix(text.find_last_of("|;") + 1);
  const std::string_view name = word_right_before(text);
  if (name.empty()) return text;
  std::string_view label = text.substr(0, static_cast<std::size_t>(name.data() - text.data()));
  label = label.substr(0, label.find_last_not_of(" ([{'\"") + 1);
  return read_label(label).has_meaning() ? label : text;
}

std::string_view LineLabels::behind(std::size_t i) const {
  const auto& numbers = cut_.numbers;
  std::string_view text = cut_.after(i);
  if (i + 1 < numbers.size() && (numbers[i + 1].use == NumberUse::gpu || numbers[i + 1].use == NumberUse::rank))
    if (const std::string_view name = word_right_before(text); !name.empty())
      text = text.substr(0, static_cast<std::size_t>(name.data() - text.data()));
  return label_after(text);
}

}  // namespace vramtrack
