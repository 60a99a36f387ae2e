// The memory figures in a line of free text: find_figures().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "source/log/labels.hpp"
#include "source/log/line_forms.hpp"
#include "source/log/line_numbers.hpp"
#include "source/log/line_start.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

std::uint64_t MemoryFigure::bytes(std::uint64_t default_unit) const {
  const double bytes = number * static_cast<double>(unit_bytes != 0 ? unit_bytes : default_unit);
  return bytes < 0x1p60 ? static_cast<std::uint64_t>(std::llround(bytes)) : 1ULL << 60;  // no reading is so large
}

namespace {

constexpr std::size_t kLongestLine = 4096;

/// Whether two amounts in one line are the same according to a label or their values, so that only the first adds
/// information: "4000 MiB (3.91 GiB)".
bool is_same_amount(const MemoryFigure& a, const MemoryFigure& b) {
  if (a.unit_bytes == 0 || b.unit_bytes == 0) return false;
  const auto x = static_cast<double>(a.bytes(1));
  const auto y = static_cast<double>(b.bytes(1));
  constexpr double kRounded = 0.02;  // "3.9 GiB" has two significant digits
  return a.unit_bytes != b.unit_bytes && std::abs(x - y) <= kRounded * std::max(x, y);
}

/// In "peak memory allocated: 5 GB, current: 4 GB", both are amounts of the same kind of memory. "current: 4 GB" alone
/// is not about memory.
void resolve_current(std::vector<MemoryFigure>& figures) {
  Meaning kind = Meaning::none;
  for (const MemoryFigure& f : figures) {
    if (f.role == Meaning::current) continue;
    if (kind == Meaning::none) kind = Meaning::used;
    if (f.role != Meaning::peak) continue;
    for (const Meaning role : read_label(f.label).roles)
      if (role == Meaning::allocated || role == Meaning::reserved) kind = role;
  }
  for (MemoryFigure& f : figures)
    if (f.role == Meaning::current) f.role = kind == Meaning::none && f.is_memory ? Meaning::used : kind;
  std::erase_if(figures, [](const MemoryFigure& f) { return f.role == Meaning::none; });
}

/// Reads one line; `numbers` excludes those in its time.
class FigureFinder {
 public:
  /// REQUIRES: the numbers have been cut and classified.
  FigureFinder(CutLine& cut, LineFigures& out)
      : cut_(cut), line_(cut.line), numbers_(cut.numbers), labels_(cut), out_(out) {}

  void find() {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i].is_index())
        take_index(i);
      else if (numbers_[i].use == NumberUse::amount && !numbers_[i].rate)
        take_amount(i);
    }
    end_list();
    drop_pairs_of_host();
    give_late_index();
    resolve_current(out_.figures);
    resolve_current(out_.unclear);
    drop_unclear_wholes();
  }

 private:
  [[nodiscard]] std::string_view before(std::size_t i) const { return cut_.before(i); }
  [[nodiscard]] std::string_view after(std::size_t i) const { return cut_.after(i); }

  void take_index(std::size_t i) {
    const LineNumber& n = numbers_[i];
    if (n.use != NumberUse::rank || gpu_ < 0) gpu_ = static_cast<int>(n.number);
    of_gpu_ |= read_label(before(i)).is_of_gpu() || is_call_of_runtime(before(i));
    if (n.use == NumberUse::rank) return;
    names_gpu_ = true;
    index_at_ = i;
  }

  /// The meaning of the text around a number, or around a pair.
  struct Context {
    Label label;
    std::string_view text;  ///< text of the label
  };

  /// Whether number `i` continues a list: "8.79 GB, 3.91 GB", "[9000, 4000]". Without units, an adjacent number may be
  /// unrelated unless brackets or the lack of a space group them.
  [[nodiscard]] bool continues_list(std::size_t i, bool has_unit) const {
    if (last_end_ != i || elements_.empty() || numbers_[i].percent || out_.figures.back().percent) return false;
    const std::string_view gap = before(i);
    if (has_unit != have_units_) return false;
    // "4001MiB 4100MiB"
    if (has_unit && logtext::trim(gap).empty() && !numbers_[i].percent)
      return read_label(labels_.behind(i)).roles.empty();
    if (!separates_elements(gap)) return false;
    // "mem (GB): 3.91, 7.81"
    const bool ends = i + 1 == numbers_.size() || separator_length(logtext::trim(after(i))) > 0;
    return has_unit || in_brackets_ || gap.size() == 1 || (last_->label.unit_bytes != 0 && ends);
  }

  /// Whether number `i` is the amount that a percentage expresses: "16.3 % (3998 MB)".
  [[nodiscard]] bool explains_percent(std::size_t i) const {
    if (last_end_ != i || elements_.empty() || !out_.figures.back().percent) return false;
    const std::string_view gap = logtext::trim(before(i));
    // "vram 37.94% 6216.84mb" of radeontop
    return numbers_[i].unit_bytes != 0 && (gap.empty() || gap == "(" || gap == "（" || gap == "[");
  }

  Context context_of(std::size_t i, bool pair, bool is_of_percent, std::string_view between) {
    if (is_of_percent) {
      Context context = *last_;
      context.label.rate = false;
      return context;
    }
    if (changed_ && changed_end_ == i) {
      Context context = *changed_;
      context.label.change = false;
      return context;
    }
    Context context;
    context.text = labels_.before(i);
    // "4000 MiB used (20576 MiB left), 66 C": the words for one figure do not apply to the next one.
    const auto begin = static_cast<std::size_t>(context.text.data() - line_.data());
    if (begin < consumed_) context.text.remove_prefix(std::min(consumed_ - begin, context.text.size()));
    context.label = read_label(context.text);
    if (context.label.unit_bytes == 0 && i > 0 && numbers_[i - 1].is_index())
      context.label.unit_bytes = read_label(before(i)).unit_bytes;  // "GPU0 MiB: 4000"
    if (is_call_of_runtime(context.text)) context.label.vram = true;
    // "consumed at the end of the train (end-begin): 50"
    if (context.text.find("-begin") != std::string_view::npos) context.label.change = true;
    if (context.label.change && ends_in_to(context.text)) context.label.change = false;
    const auto follow = [&](const Label& label, std::string_view text) {
      consumed_ = static_cast<std::size_t>(text.data() + text.size() - line_.data());
      const Label was = context.label;
      context = {label, text};
      context.label.gpu |= was.gpu && labels_.precede();
      context.label.memory |= was.memory && labels_.precede();
      context.label.vram |= was.vram && labels_.precede();
      context.label.other |= was.other;  // "RAM: 20 GB used"
      context.label.host |= was.host;
      context.label.measured |= was.measured;
      if (context.label.subject.empty()) context.label.subject = was.subject;
    };
    // "4000 MiB used of 24576 MiB"
    if (const Label middle = read_label(between); pair && !middle.roles.empty() && context.label.roles.empty()) {
      follow(middle, between);
      context.label.gpu |= read_label(label_before(before(i))).gpu;
      return context;
    }
    const std::size_t last = pair ? i + 1 : i;
    const std::string_view next = labels_.behind(last);
    const bool ends = next.size() < after(last).size() || last + 1 >= numbers_.size();
    if ((labels_.follow() || (context.label.roles.empty() && ends)) && (pair || numbers_[i].is_amount())) {
      const Label follows = read_label(next);
      if (!follows.roles.empty() || ((follows.other || follows.host) && labels_.follow())) follow(follows, next);
    }
    return context;
  }

  /// The unit that precedes all figures in a line, as in "memory (MB) | allocated: 4000.5 | reserved: 4500.0", for an
  /// allocator's figures; 0 if there is none.
  std::uint64_t unit_of_heading(std::size_t i, Meaning role) {
    const std::string_view text = before(i);
    const std::string_view outer = text.substr(0, text.size() - label_before(text).size());
    if (const Label heading = read_label(outer); heading.memory && heading.unit_bytes != 0 && heading.roles.empty())
      heading_unit_bytes_ = heading.unit_bytes;
    return role == Meaning::allocated || role == Meaning::reserved ? heading_unit_bytes_ : 0;
  }

  /// "(total/used/free): 24576/4000/20576 MiB": three or more figures separated by slashes, each with its own role.
  /// Returns false if number `i` does not begin such a row.
  bool take_slashed(std::size_t& i) {
    std::size_t last = i;
    while (last + 1 < numbers_.size() && logtext::trim(after(last)) == "/") ++last;
    const std::size_t count = last + 1 - i;
    const Label label = read_label(before(i));
    if (count < 3 || (!label.memory && !label.is_of_gpu())) return false;
    const std::string_view text = before(i);
    const std::vector<Meaning> roles = roles_in_order(text, count);
    const std::uint64_t unit = numbers_[last].unit_bytes != 0 ? numbers_[last].unit_bytes : label.unit_bytes;
    if (roles.empty() || unit == 0) return false;
    end_list();
    for (std::size_t k = 0; k < count; ++k) {
      MemoryFigure f = figure_of(numbers_[i + k]);
      f.role = roles[k];
      f.has_role_word = f.is_memory = true;
      f.is_of_gpu = label.is_of_gpu() || of_gpu_;
      if (f.unit_bytes == 0) f.unit_bytes = unit;
      f.label = label_key(text);
      f.word = label.subject;
      out_.figures.push_back(std::move(f));
    }
    i = last;
    return true;
  }

  /// "{'current': 4194304000, 'peak': 4508876800}" of TensorFlow's get_memory_info(): bytes of a GPU. Returns false if
  /// number `i` does not begin it.
  bool take_memory_info(std::size_t& i) {
    const auto is_key = [&](std::size_t at, std::string_view key) {
      const LineNumber& n = numbers_[at];
      std::string_view text = logtext::trim(before(at));
      if (n.unit_bytes != 0 || n.percent || text.size() < key.size() + 3 || text.back() != ':') return false;
      text = text.substr(text.size() - key.size() - 3);
      return (text.front() == '\'' || text.front() == '"') && text[key.size() + 1] == text.front() &&
             text.substr(1).starts_with(key);
    };
    if (i + 1 >= numbers_.size() || !is_key(i, "current") || !is_key(i + 1, "peak")) return false;
    end_list();
    MemoryFigure f = figure_of(numbers_[i]);
    f.has_role_word = f.is_memory = f.is_of_gpu = true;
    f.unit_bytes = 1;
    f.label = label_key(before(i));
    const std::size_t word = line_.rfind("current", numbers_[i].begin);
    f.word = line_.substr(word, std::string_view("current").size());
    out_.figures.push_back(std::move(f));
    ++i;
    return true;
  }

  /// "(NVIDIA RTX A5000, 22731MiB)": an amount after a card's name and before punctuation is its capacity.
  bool take_capacity(std::size_t i) {
    const LineNumber& n = numbers_[i];
    if (n.unit_bytes == 0 || n.rate || gpu_ < 0) return false;
    const std::string_view behind = logtext::trim(after(i));
    const auto is_its_name = [&](const CutLine::Name& name) {
      return name.end < n.begin && logtext::trim(line_.substr(name.end, n.begin - name.end)) == ",";
    };
    if (!behind.starts_with(')') || std::none_of(cut_.names.begin(), cut_.names.end(), is_its_name)) return false;
    out_.capacities.push_back(figure_of(n));
    return true;
  }

  void take_amount(std::size_t& i) {
    if (take_capacity(i) || take_memory_info(i) || take_slashed(i)) return;
    const LineNumber& n = numbers_[i];
    const auto between = i + 1 < numbers_.size() ? joins_pair(after(i)) : std::nullopt;
    // "5 / 24 GB", "mem (GB) 5 / 24"
    const bool pair = between && !numbers_[i + 1].rate && !numbers_[i + 1].percent &&
                      (numbers_[i + 1].unit_bytes != 0 || (n.unit_bytes == 0 && !numbers_[i + 1].is_index() &&
                                                           read_label(labels_.before(i)).unit_bytes != 0));
    const bool has_unit = n.unit_bytes != 0 || pair;
    const bool is_element = continues_list(i, has_unit);
    const bool is_of_percent = explains_percent(i);
    if (!is_element) end_list();
    const bool is_after_change = changed_ && changed_end_ == i;
    const Context context =
        is_element ? *last_ : context_of(i, pair, is_of_percent, between.value_or(std::string_view{}));
    const Label& label = context.label;
    if (label.percent && !has_unit && !n.rate) numbers_[i].percent = true;  // "gpu_mem_percent=30"
    if (label.is_of_gpu()) {
      of_gpu_ = true;
      context_ = label.subject;
    }
    // "Memory info of CPU: total: 201 GB, available: 190 GB": applies until GPU memory or other memory is named.
    of_host_ = !label.is_of_gpu() && (of_host_ || ((label.other || label.host) && label.memory && !of_gpu_));
    const bool goes_on_about_host = of_host_ && !label.memory && !label.is_of_gpu() && !label.gpu;
    if (label.is_of_other() || goes_on_about_host || is_of_things(i, label)) {
      if (pair) ++i;
      return;
    }
    if (is_of_other_name(i)) {  // the text around it belongs to the next number
      if (i + 1 < numbers_.size() && std::none_of(after(i).begin(), after(i).end(), is_letter)) {
        changed_ = context;
        changed_end_ = i + 1;
      }
      return;
    }
    // "4000 MiB -> 4100 MiB", "4000 -> 4100 MiB"
    if (i + 1 < numbers_.size() && (n.is_amount() || numbers_[i + 1].unit_bytes != 0) && numbers_[i + 1].is_amount() &&
        joins_change(after(i))) {
      changed_ = context;
      changed_end_ = i + 1;
      return;
    }
    auto [role, role_word] = label.role();
    // "can use total_gpu_memory (39.38GiB)": the nearest word is decisive.
    if (role == Meaning::used && label.roles.back() == Meaning::total && context.text.data() < line_.data() + n.begin) {
      role = Meaning::total;
      role_word = label.role_words.back();
    }
    gives_busy_ |= n.percent && label.gpu && label.rate && !label.memory && !label.vram;
    const std::uint64_t unit = n.unit_bytes != 0                         ? n.unit_bytes
                               : pair && numbers_[i + 1].unit_bytes != 0 ? numbers_[i + 1].unit_bytes
                               : label.unit_bytes != 0                   ? label.unit_bytes
                                                                         : unit_of_heading(i, role);
    const bool is_memory = label.memory || label.vram;
    const bool take = is_taken(i, label, role, unit, pair) &&
                      !(role == Meaning::none && !label.is_of_gpu() && !label.gpu && is_in_name(label.subject));
    // "12:00:00 used=329.6": the only number of a line with a time.
    const bool is_bare_use = numbers_.size() == 1 && !cut_.time.empty() &&
                             (role == Meaning::used || role == Meaning::allocated || role == Meaning::reserved);
    // "Memory(free=2157, total=2576, used=419)"
    in_memory_brackets_ |= is_memory && context.text.find('(') != std::string_view::npos;
    const bool is_in_brackets = in_memory_brackets_ && (role == Meaning::used || role == Meaning::allocated ||
                                                        role == Meaning::free || role == Meaning::total);
    const bool is_open = unit == 0 ? is_memory || is_bare_use || is_in_brackets : n.binary && is_after_change;
    const bool is_unclear = !take && is_open && !pair && !n.percent && !label.rate && !label.change && !label.other &&
                            !label.host && !is_in_name(label.subject);
    if (!take && !is_unclear) return;

    MemoryFigure f = figure_of(n);
    f.role = role == Meaning::none ? Meaning::used : role;
    f.has_role_word = role != Meaning::none;
    f.is_memory = is_memory || of_gpu_;
    f.is_of_gpu = of_gpu_ || label.gpu || gpu_ >= 0 || !cut_.uuid.empty() || is_query_field(context.text);
    f.unit_bytes = unit;
    f.word = role != Meaning::none ? role_word : !label.subject.empty() ? label.subject : context_;
    f.label = label_key(context.text);
    if (is_unclear) {
      out_.unclear.push_back(std::move(f));
      return;
    }
    const std::size_t first = out_.figures.size();
    cut_.by_value |= is_element && out_.figures[elements_.back()].unit_bytes != f.unit_bytes;
    if (is_element && is_same_amount(out_.figures[elements_.back()], f)) {
      if (pair) ++i;
      return;
    }
    if (!pair) {
      out_.figures.push_back(std::move(f));
    } else if (!take_pair(std::move(f), i, context, !read_label(*between).roles.empty())) {
      return;
    }
    elements_.push_back(first);
    if (elements_.size() == 1) {
      in_brackets_ = n.begin > 0 && std::string_view("[(").find(line_[n.begin - 1]) != std::string_view::npos;
      have_units_ = has_unit;
    }
    last_ = context;
    last_end_ = i + 1;
  }

  [[nodiscard]] bool is_taken(std::size_t i, const Label& label, Meaning role, std::uint64_t unit, bool pair) const {
    const LineNumber& n = numbers_[i];
    const bool is_memory = label.memory || label.vram;
    // Next to the GPU's load, "Memory Utilization: 17%" is the load of the memory bus.
    const bool is_of_bus = label.rate && role == Meaning::none && gives_busy_;
    if (n.percent) return is_memory && role != Meaning::total && !label.change && !is_of_bus;
    if (label.rate || label.change) return false;
    const bool has_peak_behind =
        role == Meaning::current && i + 1 < numbers_.size() && read_label(before(i + 1)).role().first == Meaning::peak;
    if (unit == 0)
      return label.is_of_gpu() ||
             (of_gpu_ && (is_memory || has_peak_behind || (role != Meaning::none && role != Meaning::current))) ||
             (role != Meaning::none && label.gpu);
    const bool follows_index = i > 0 && i == index_at_ + 1 && is_empty_but_for_unit(before(i));
    const bool is_bare = pair && n.binary && numbers_[i + 1].binary;  // "7998MiB / 12053MiB" without any words
    if (is_all_behind_time(i)) return true;
    return role != Meaning::none || is_memory || label.nearest_is_gpu || follows_index ||
           (pair && (of_gpu_ || names_gpu_ || is_bare));
  }

  /// Whether `word` is part of another name: "memory_seq_rm [26832". If so, a number without a unit is not memory.
  [[nodiscard]] bool is_in_name(std::string_view word) const {
    if (word.empty()) return false;
    const auto is_of_name = [&](std::size_t at) { return is_letter(line_[at]) || line_[at] == '_'; };
    auto begin = static_cast<std::size_t>(word.data() - line_.data());
    std::size_t end = begin + word.size();
    while (begin > 0 && is_of_name(begin - 1)) --begin;
    while (end < line_.size() && is_of_name(end)) ++end;
    std::vector<Word> words;
    cut_words(line_.substr(begin, end - begin), words);
    return words.size() > 2 && std::count_if(words.begin(), words.end(), [](const Word& part) {
                                 return part.meaning == Meaning::none && written_unit(part.text) == 0;
                               }) > 1;
  }

  /// "768000 pages", "used pages: 768000": the page size is unknown.
  [[nodiscard]] bool is_of_things(std::size_t i, const Label& label) const {
    if (numbers_[i].unit_bytes != 0 || numbers_[i].percent) return false;
    if (!label.things.empty()) return true;
    std::vector<Word> words;
    cut_words(after(i), words);
    return !words.empty() && words.front().meaning == Meaning::things &&
           logtext::trim(after(i)).starts_with(words.front().text);
  }

  /// "memory usage (round: 0): 31.5 MB", "process_mem_76176": a number without a unit that is part of another name.
  [[nodiscard]] bool is_of_other_name(std::size_t i) const {
    const LineNumber& n = numbers_[i];
    if (n.unit_bytes != 0 || n.percent || n.begin == 0) return false;
    if (line_[n.begin - 1] == '_') return true;
    const std::string_view text = logtext::trim(before(i));
    if (!text.ends_with(':') && !text.ends_with('=')) return false;
    const std::string_view word = word_right_before(text);
    if (word.empty() || word.data() == line_.data() || *(word.data() - 1) != '(') return false;
    const Label label = read_label(word);
    return !label.has_meaning() && !label.gpu && label.unit_bytes == 0;
  }

  /// "10:00:00 4000 MiB": only a time and nvidia-smi's memory.used.
  [[nodiscard]] bool is_all_behind_time(std::size_t i) const {
    constexpr std::string_view kSigns = " \t:,;|=-]()[";
    return numbers_.size() == 1 && numbers_[i].binary && !cut_.time.empty() &&
           before(i).find_first_not_of(kSigns) == std::string_view::npos &&
           after(i).find_first_not_of(kSigns) == std::string_view::npos && cut_.time.data() - line_.data() <= 2;
  }

  /// "cuda:0 4000 MiB cuda:1 9000 MiB", "GPU0 MiB: 4000"
  static bool is_empty_but_for_unit(std::string_view text) {
    constexpr std::string_view kSigns = " :=-]()[{}'\"";
    const std::size_t from = text.find_first_not_of(kSigns);
    if (from == std::string_view::npos) return true;
    return written_unit(text.substr(from, text.find_last_not_of(kSigns) + 1 - from)) != 0;
  }

  [[nodiscard]] MemoryFigure figure_of(const LineNumber& n) const {
    MemoryFigure f;
    f.number = n.number;
    f.unit_bytes = n.unit_bytes;
    f.percent = n.percent;
    f.is_open = n.open;
    f.gpu = gpu_;
    f.begin = n.begin;
    f.digits_end = n.digits_end;
    f.end = n.end;
    return f;
  }

  /// Reads "5 / 24 GB", in which `f` is the first amount. `role_between`: its role is between them.
  bool take_pair(MemoryFigure f, std::size_t& i, const Context& context, bool role_between) {
    MemoryFigure total = figure_of(numbers_[++i]);
    total.role = Meaning::total;
    total.has_role_word = total.is_memory = true;
    total.is_of_gpu = f.is_of_gpu;
    total.label = f.label;
    if (total.unit_bytes == 0) total.unit_bytes = f.unit_bytes;
    const std::vector<Meaning> roles = roles_in_order(context.text, 2);
    if (!roles.empty()) {
      f.role = roles[0];
      total.role = roles[1];
    } else if (role_between) {
      const auto [role, word] = read_label(label_after(after(i))).role();  // "4 GB allocated / 5 GB reserved"
      if (role == Meaning::reserved || role == Meaning::free || role == Meaning::peak) total.role = role;
      total.word = word;
    } else if (f.role == Meaning::total) {
      f.role = Meaning::used;  // "total: 5 / 24 GB"
    }
    if (total.role == Meaning::total && !f.percent) {
      if (f.bytes(1) > total.bytes(1)) {
        cut_.by_value = true;
        return false;
      }
      cut_.pairs.push_back({f, total});
    }
    const std::size_t first = out_.figures.size();
    out_.figures.push_back(std::move(f));
    if (total.role != Meaning::peak) out_.figures.push_back(std::move(total));  // of two peaks, the first one counts
    if (context.label.gpu || context.label.vram || gpu_ >= 0)
      has_pair_of_gpu_ = true;
    else
      other_pairs_.emplace_back(first, out_.figures.size());
    return true;
  }

  /// The elements of a list have different roles if its label names them; otherwise they belong to several GPUs.
  void end_list() {
    if (elements_.size() > 1) {
      const std::vector<Meaning> roles = roles_in_order(last_->text, elements_.size());
      for (std::size_t k = 0; k < elements_.size(); ++k) {
        const std::size_t end = k + 1 < elements_.size() ? elements_[k + 1] : out_.figures.size();
        for (std::size_t j = elements_[k]; j < end; ++j) {
          if (!roles.empty())
            out_.figures[j].role = roles[k];
          else if (out_.figures[j].gpu < 0)
            out_.figures[j].gpu = static_cast<int>(k);
        }
      }
      if (roles.empty()) out_.listed = std::max(out_.listed, elements_.size());
    }
    elements_.clear();
  }

  /// "4000 MiB used on cuda:0": the only index in a line applies to its figures, even if it follows them.
  void give_late_index() {
    int index = -1;
    for (const LineNumber& n : numbers_) {
      if (!n.is_index()) continue;
      if (index >= 0 && index != static_cast<int>(n.number)) return;
      index = static_cast<int>(n.number);
    }
    for (auto* const figures : {&out_.figures, &out_.unclear})
      for (MemoryFigure& f : *figures)
        if (f.gpu < 0 && index >= 0) {
          f.gpu = index;
          f.is_of_gpu = true;
        }
  }

  /// Free and total memory without a unit belong to a GPU only next to used memory, or together.
  void drop_unclear_wholes() {
    const auto has = [&](Meaning role) {
      return std::any_of(out_.unclear.begin(), out_.unclear.end(),
                         [&](const MemoryFigure& f) { return f.role == role; });
    };
    const bool has_free = has(Meaning::free);
    const bool has_total = has(Meaning::total);
    const std::size_t wholes = (has_free ? 1U : 0U) + (has_total ? 1U : 0U);
    if (wholes == 1 && out_.unclear.size() == 1) out_.unclear.clear();
  }

  /// "memory 10/64 GB, GPU memory 8/24 GB": the other pair is for the host.
  void drop_pairs_of_host() {
    for (std::size_t i = other_pairs_.size(); has_pair_of_gpu_ && i-- > 0;)
      out_.figures.erase(out_.figures.begin() + static_cast<std::ptrdiff_t>(other_pairs_[i].first),
                         out_.figures.begin() + static_cast<std::ptrdiff_t>(other_pairs_[i].second));
  }

  CutLine& cut_;
  std::string_view line_;
  std::vector<LineNumber>& numbers_;
  LineLabels labels_;
  LineFigures& out_;
  bool in_memory_brackets_ = false;
  bool of_gpu_ = false;      ///< the line has mentioned GPU memory so far
  bool of_host_ = false;     ///< or host memory
  bool gives_busy_ = false;  ///< it has mentioned the load of a GPU
  bool names_gpu_ = false;
  std::size_t index_at_ = SIZE_MAX - 1;  ///< the last number that names a GPU
  int gpu_ = -1;
  std::string_view context_;
  std::uint64_t heading_unit_bytes_ = 0;
  std::size_t consumed_ = 0;           ///< end of the last figure's label, if it follows the figure
  std::optional<Context> last_;        ///< context of the last figure
  std::size_t last_end_ = 0;           ///< the number after it
  std::vector<std::size_t> elements_;  ///< the first figure of each element in the current list
  bool in_brackets_ = false;           ///< the list is in brackets
  bool have_units_ = false;            ///< its elements have units
  std::optional<Context> changed_;     ///< context of an amount that changed to the next one, or of a non-amount
  std::size_t changed_end_ = 0;
  bool has_pair_of_gpu_ = false;
  std::vector<std::pair<std::size_t, std::size_t>>
      other_pairs_;  ///< the first figure of each pair, and the end of its figures
};

}  // namespace

void find_figures_anew(std::string_view line, LineFigures& out, Grouping open, CutLine& cut, LineStart& start) {
  out.figures.clear();
  out.unclear.clear();
  out.capacities.clear();
  out.counts.clear();
  out.gpu = -1;
  out.gpu_begin = out.gpu_end = 0;
  out.gpu_word = {};
  out.pid.reset();
  out.pid_begin = out.pid_end = 0;
  out.pid_word = {};
  out.listed = 0;
  line = line.substr(0, kLongestLine);
  start = read_line_start(line);
  out.stamp = start.stamp;
  out.prefix = start.prefix;
  out.tag = {};
  out.uuid = {};
  out.minute = start.minute;
  out.elapsed = start.elapsed;
  cut.line = line;
  cut.time = start.time();
  cut_numbers(cut, open);
  out.uuid = cut.uuid;
  if (cut.numbers.empty()) return;
  name_numbers(cut, out);
  FigureFinder(cut, out).find();
}

void find_figures(std::string_view line, LineFigures& out, Grouping open) {
  thread_local CutLine cut;
  thread_local LineForms forms;
  LineStart start;
  // If dots separate thousands, the value of a number exceeds that of its digits.
  if (open != Grouping::by_comma) return find_figures_anew(line, out, open, cut, start);
  if (forms.recall(line, out)) return;
  find_figures_anew(line, out, open, cut, start);
  forms.remember(cut, start, out);
}

}  // namespace vramtrack
