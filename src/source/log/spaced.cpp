// Tables with columns separated by spaces: each line is rewritten with tabs and read as a CSV.
//
//   time                 gpu  used_mib  total_mib
//   2026-03-01 10:00:00    0      8123      24576
#include <algorithm>
#include <optional>

#include "source/log/csv_rows.hpp"
#include "source/log/format.hpp"
#include "source/log/labels.hpp"

namespace vramtrack {
namespace {

using logtext::is_space;
using logtext::trim;

/// How fields are separated: by two or more spaces, so that titles may contain single ones; or by any number.
enum class Spacing : std::uint8_t { gaps, words };

bool is_stamp(std::string_view text) {
  const auto civil = whole_civil(text);
  return civil && civil->has_date && civil->has_time;
}

bool is_figure(std::string_view text) {
  return logtext::number_in(text).has_value();
}

void cut_gaps(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && is_space(line[i])) ++i;
    std::size_t end = i;
    while (end < line.size() && line[end] != '\t' &&
           !(line[end] == ' ' && (end + 1 == line.size() || is_space(line[end + 1]))))
      ++end;
    if (end > i) fields.push_back(line.substr(i, end - i));
    i = end;
  }
}

/// Splits a line into words, keeping together those of a date, of an amount and its unit, and of a title and its unit.
void cut_words(std::string_view line, std::vector<std::string_view>& fields) {
  constexpr std::size_t kMostDateWords = 7;
  std::vector<std::string_view> words;
  std::string_view rest = line;
  for (std::string_view word = logtext::take_word(rest); !word.empty(); word = logtext::take_word(rest))
    words.push_back(word);
  const auto span = [&](std::size_t from, std::size_t n) {
    const std::string_view last = words[from + n - 1];
    return std::string_view(words[from].data(),
                            static_cast<std::size_t>(last.data() + last.size() - words[from].data()));
  };
  fields.clear();
  for (std::size_t i = 0; i < words.size();) {
    std::size_t n = 1;
    for (std::size_t k = 2; k <= kMostDateWords && i + k <= words.size(); ++k)
      if (is_stamp(span(i, k))) {
        n = k;
        break;
      }
    if (n > 1 && i + n < words.size() &&
        (logtext::same_letters(words[i + n], "am") || logtext::same_letters(words[i + n], "pm")))
      ++n;
    const std::string_view next = i + n < words.size() ? words[i + n] : std::string_view{};
    // The titles of a date and a time stay together, like the date and time themselves.
    if (n == 1 && ((logtext::same_letters(words[i], "date") && logtext::same_letters(next, "time")) ||
                   (is_figure(words[i]) && (logtext::unit_bytes(next) != 0 || next == "%")) ||
                   (!next.empty() && (next.front() == '[' || next.front() == '(') && !is_figure(words[i]))))
      ++n;
    fields.push_back(span(i, n));
    i += n;
  }
}

/// The count in "12/200", the twelfth of 200. Empty if `field` is not such a count.
std::string_view count_in(std::string_view field) {
  const std::string_view count = field.substr(0, field.find('/'));
  if (count.size() == field.size() || !logtext::whole_number<std::uint64_t>(count) ||
      !logtext::whole_number<std::uint64_t>(field.substr(count.size() + 1)))
    return {};
  return count;
}

/// Whether lines begin with a count and its total ("0/199", "1/199"), as in a training run.
bool count_lines(std::string_view head) {
  constexpr std::size_t kFewest = 3;
  std::size_t lines = 0;
  std::optional<std::uint64_t> last;
  for (; !head.empty() && lines < kFewest; ++lines) {
    std::string_view line = logtext::take_line(head);
    const auto count = logtext::whole_number<std::uint64_t>(count_in(logtext::take_word(line)));
    if (!count || (last && *count != *last + 1)) return false;
    last = count;
  }
  return lines == kFewest;
}

/// Whether the counts at the start of lines fall: they start again in each epoch, so that they neither number the
/// readings nor name GPUs.
bool counts_fall(std::string_view head) {
  std::optional<std::uint64_t> last;
  while (!head.empty()) {
    std::string_view line = logtext::take_line(head);
    const auto count = logtext::whole_number<std::uint64_t>(count_in(logtext::take_word(line)));
    if (count && last && *count < *last) return true;
    if (count) last = count;
  }
  return false;
}

struct Layout {
  Spacing spacing = Spacing::gaps;
  bool counts_lines = false;  ///< see count_lines()
};

/// `text` with the fields of each line separated by tabs.
std::string tabbed(std::string_view text, Layout layout) {
  std::string out;
  out.reserve(text.size());
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const bool ends = text.find('\n') != std::string_view::npos;
    std::string_view line = trim(logtext::take_line(text));
    if (line.starts_with('#')) {
      out += '#';
      line = trim(line.substr(1));
    }
    layout.spacing == Spacing::gaps ? cut_gaps(line, fields) : cut_words(line, fields);
    if (layout.counts_lines && !fields.empty())
      if (const std::string_view count = count_in(fields.front()); !count.empty()) fields.front() = count;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) out += '\t';
      out += fields[i];
    }
    if (ends) out += '\n';
  }
  return out;
}

/// Whether a field belongs to a sentence or labels its successor: "VRAM:", "/", "used=5", "->", "memory_allocated(0)".
/// Cells of a table do not.
bool is_of_text(std::string_view field) {
  if (!is_figure(field) && field.find('_') != std::string_view::npos) {  // "gpu0_mem_used"
    const Label label = read_label(field);
    if (label.memory || label.vram || (label.gpu && !label.roles.empty())) return true;
  }
  if (field.ends_with(')') && field.find('(') != std::string_view::npos && read_label(field).has_meaning()) return true;
  if (field.ends_with(':') || field.find('=') != std::string_view::npos) return true;
  const bool has_letter_or_digit = std::any_of(field.begin(), field.end(), [](char c) {
    return logtext::is_ascii_letter(c) || logtext::is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
  });
  return !has_letter_or_digit && field != "-" && field != "--" && field != "?";
}

/// Whether most lines have the fields of a table's columns; sets `with_header` if it has titles.
bool is_table(std::string_view tabs, Spacing spacing, bool& with_header) {
  ColumnPlan plan;
  if (auto header = find_header(tabs)) {
    plan = std::move(*header);
    with_header = true;
  } else {
    std::vector<std::string> ignored;
    auto inferred = infer_from_head(tabs, ignored);
    if (!inferred) return false;
    plan = std::move(*inferred);
    with_header = false;
  }
  if (plan.delimiter != '\t' || plan.count < 2) return false;
  std::size_t rows = 0;
  std::size_t lines = 0;
  // Two numbers with one space between them are two columns, not separated by a gap.
  const auto two_numbers = [](std::string_view field) {
    const std::string_view first = logtext::take_word(field);
    return is_figure(first) && is_figure(logtext::take_word(field));
  };
  std::vector<std::string_view> fields;
  while (!tabs.empty()) {
    const std::string_view line = logtext::take_line(tabs);
    if (trim(line).empty() || line.starts_with('#')) continue;
    ++lines;
    split_fields(line, '\t', fields);
    const bool is_text =
        !with_header && spacing == Spacing::words && std::any_of(fields.begin(), fields.end(), is_of_text);
    if (fields.size() == plan.count && !is_text && std::none_of(fields.begin(), fields.end(), two_numbers)) ++rows;
  }
  return rows >= 2 && rows * 2 > lines;
}

/// The layout of `head` as a table; nullopt if it is not a table.
std::optional<Layout> find_layout(std::string_view head, bool& with_header) {
  // A few counts without a title may also be GPU indices: "12/200" is clearer than 12.
  constexpr std::ptrdiff_t kRowsThatAreCounted = 24;
  const bool counts_lines = count_lines(head);
  const bool are_many = std::count(head.begin(), head.end(), '\n') >= kRowsThatAreCounted;
  for (const Spacing spacing : {Spacing::gaps, Spacing::words})
    if (const Layout layout{spacing, counts_lines}; is_table(tabbed(head, layout), spacing, with_header))
      return Layout{spacing, counts_lines && (with_header || (are_many && !counts_fall(head)))};
  return std::nullopt;
}

Evidence recognise(std::string_view head) {
  constexpr std::size_t kLooked = 16 * kBytesPerKiB;
  head = head.substr(0, head.substr(0, kLooked).rfind('\n') + 1);
  // If the lines have other delimiters, spaces do not separate fields.
  if (find_delimiter(head.substr(0, head.find('\n'))) != '\0') return Evidence::none;
  if (const auto header = find_header(head); header && header->delimiter == '|') return Evidence::none;
  bool with_header = false;
  const auto layout = find_layout(head, with_header);
  if (!layout) return Evidence::none;
  // "4000 MiB" is part of a sentence, with words for its meaning; tools that print columns for programs omit units.
  if (!with_header) return head.find(" MiB") == std::string_view::npos ? Evidence::values : Evidence::none;
  const std::string tabs = tabbed(head, *layout);
  return layout->spacing == Spacing::gaps && is_all_rows(tabs, *find_header(tabs)) ? Evidence::named_rows
                                                                                   : Evidence::titles;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  bool with_header = false;
  const auto layout = find_layout(head.text, with_header);
  if (!layout)
    return fail(
        "no lines of words separated by spaces with a time and a used-memory column; the first line should name the "
        "columns, for example 'time gpu used_mib total_mib'");
  return make_rewritten(head, {[its = *layout](std::string_view lines) { return tabbed(lines, its); }},
                        [](const LogHead& tabs) { return make_csv_parser(tabs, false); });
}

}  // namespace

const LogFormatInfo spaced_log_format{"spaced", "any table whose columns are separated by spaces", recognise, make,
                                      each_line_is_a_record};

}  // namespace vramtrack
