// Decides once, from the head of a free-text log, which of its figures to read.
#include "source/log/text_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <tuple>

#include "core/format.hpp"
#include "core/option.hpp"
#include "source/log/labels.hpp"
#include "source/log/line_numbers.hpp"
#include "source/log/stamp.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;

/// Decides which figures of used memory to read if their labels differ. Consecutive phases ("before load", "during
/// load") are one quantity; two labels that alternate, or share a line, may be two quantities.
Status choose_label(const Head& head, WordPlan& plan) {
  struct Seen {
    std::size_t lines = 0;
    const HeadLine* first = nullptr;
  };
  std::map<std::string, Seen> labels;
  // Per GPU, which may have its own label: "mem used(0): 5, used(1): 6", and per process.
  std::map<std::tuple<std::string_view, int, std::uint32_t>, std::string> last;
  std::size_t switches = 0;
  std::size_t readings = 0;
  std::size_t together = 0;
  const HeadLine* double_line = nullptr;
  for (const HeadLine& line : head.lines) {
    std::set<std::pair<int, Meaning>> seen_here;
    bool is_double = false;
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent || f.role == Meaning::total || !plan.takes(f)) continue;
      is_double |= !seen_here.emplace(f.gpu, f.role).second;
      if (f.role != Meaning::used) continue;
      Seen& seen = labels[f.label];
      if (seen.lines++ == 0) seen.first = &line;
      const auto [its_last, is_first] = last.emplace(
          std::tuple(plan.origin(line.found), f.gpu, plan.pid_is_process ? line.found.pid.value_or(0) : 0), f.label);
      switches += f.label != its_last->second ? 1U : 0U;
      its_last->second = f.label;
      ++readings;
    }
    if (!is_double) continue;
    if (double_line == nullptr) double_line = &line;
    ++together;
  }
  if (double_line != nullptr && together * 4 >= head.lines.size())
    return fail(
        fmt::format("line {} has several figures of one kind of memory, but nothing says which is meant: '{}'; {}",
                    double_line->number, excerpt(double_line->text, 120), pattern_hint(*double_line)));
  if (labels.size() < 2 || readings < 6) return {};
  std::vector<std::pair<std::size_t, std::string>> by_size;
  for (const auto& [label, seen] : labels) by_size.emplace_back(seen.lines, label);
  std::sort(by_size.rbegin(), by_size.rend());
  // The labels contain free text (a name, a phase): then they do not name different quantities.
  constexpr std::size_t kFewLabels = 8;
  if (labels.size() > kFewLabels && by_size[0].first * 2 < readings) return {};
  const std::size_t few = by_size[1].first;
  if (few < 3 || switches * 2 < few) return {};  // phases, or single lines
  std::vector<const HeadLine*> others;
  for (std::size_t i = 1; i < by_size.size(); ++i) others.push_back(labels[by_size[i].second].first);
  if (few * 4 >= by_size[0].first)
    return fail(fmt::format("lines such as {} '{}' and {} '{}' alternate, and both may be the used memory; {}",
                            labels[by_size[0].second].first->number, excerpt(labels[by_size[0].second].first->text, 80),
                            labels[by_size[1].second].first->number, excerpt(labels[by_size[1].second].first->text, 80),
                            pattern_hint(*labels[by_size[0].second].first, others)));
  plan.label = by_size[0].second;
  return {};
}

/// Lines stay where they are: see Head::lines.
void leave_out_other_lists(Head& head, const WordPlan& plan) {
  for (HeadLine& line : head.lines)
    if (plan.is_other_list(line.found)) line.found.figures.clear();
}

/// Decides whether lists of figures ("[9000, 4000] MB") are those of several GPUs: two thirds of them are as long, and
/// the last one is not the capacity. Lines with other lists are left out.
Status check_lists(Head& head, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::map<std::size_t, std::size_t> lines_of;  // by the length of their lists
  for (const HeadLine& line : head.lines)
    if (line.found.listed > 0) ++lines_of[line.found.listed];
  if (lines_of.empty()) return {};
  plan.listed = logtext::most_frequent(lines_of)->first;
  const auto has_other = [&](const HeadLine& line) { return plan.is_other_list(line.found); };
  const auto odd = std::find_if(head.lines.begin(), head.lines.end(), has_other);
  const std::size_t lists = std::accumulate(lines_of.begin(), lines_of.end(), std::size_t{0},
                                            [](std::size_t n, const auto& of) { return n + of.second; });
  if (odd != head.lines.end() && lines_of[plan.listed] * 3 < lists * 2)
    return fail(
        fmt::format("lists of {} figures and of {} alternate, so that nothing says which is whose: line {} '{}'; {}",
                    plan.listed, odd->found.listed, odd->number, excerpt(odd->text, 100), pattern_hint(*odd)));
  leave_out_other_lists(head, plan);
  const HeadLine* first = nullptr;
  std::map<int, std::pair<double, double>> range;  // by GPU
  for (const HeadLine& line : head.lines) {
    if (line.found.listed == 0) continue;
    if (first == nullptr) first = &line;
    constexpr std::size_t kMostGpus = 16;  // of one machine
    if (line.found.listed > kMostGpus)
      return fail(fmt::format("line {} has a list of {} figures, more than one machine has GPUs: '{}'; {}", line.number,
                              line.found.listed, excerpt(line.text, 100), pattern_hint(line)));
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent || !plan.takes(f) || f.role == Meaning::total) continue;
      const auto bytes = static_cast<double>(f.bytes(1));
      const auto [it, is_new] = range.emplace(f.gpu, std::pair(bytes, bytes));
      it->second = {std::min(it->second.first, bytes), std::max(it->second.second, bytes)};
    }
  }
  if (range.size() < 2) return {};
  const double least = range.rbegin()->second.first;
  const double most = range.rbegin()->second.second;
  const bool is_most = std::all_of(range.begin(), range.end(), [&](const auto& r) { return r.second.second <= most; });
  if (least == most && is_most)
    return fail(
        fmt::format("line {} has a list of {} figures: '{}'; the last one never changes and is the largest, so "
                    "that it may be the total of one GPU or the used memory of another; {}",
                    first->number, first->found.listed, excerpt(first->text, 100), pattern_hint(*first)));
  assumptions.push_back(fmt::format("the {} figures of a line are assumed to be those of {} GPUs in this order",
                                    first->found.listed, first->found.listed));
  return {};
}

/// Whether the totals change, which those of GPUs do not. "used 4000 MB, total 4100 MB" of a pool grows.
bool totals_change(const Head& all) {
  constexpr std::size_t kFew = 3;  // such as a job that moves to other GPUs, or rounding
  std::map<int, std::set<std::uint64_t>> totals;
  std::size_t lines = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (f.role != Meaning::total) continue;
      totals[f.gpu].insert(f.bytes(1));
      ++lines;
    }
  return std::any_of(totals.begin(), totals.end(),
                     [&](const auto& t) { return t.second.size() > kFew && t.second.size() * 4 >= lines; });
}

/// Whether the used and free memory in lines do not add up to one total: "mem usage=5.24 GB, avail mem=7.27 GB", where
/// the first is the memory of one step.
bool use_and_free_differ(const Head& all) {
  constexpr double kAlike = 0.05;                               // other programs take some, too
  std::map<int, std::pair<std::uint64_t, std::uint64_t>> sums;  // minimum and maximum of each GPU
  for (const HeadLine& line : all.lines) {
    std::map<int, std::pair<std::uint64_t, std::uint64_t>> found;
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent) continue;
      if (f.role == Meaning::used) found[f.gpu].first = f.bytes(1);
      if (f.role == Meaning::free) found[f.gpu].second = f.bytes(1);
    }
    for (const auto& [gpu, of] : found) {
      if (of.first == 0 || of.second == 0) continue;
      const std::uint64_t sum = of.first + of.second;
      const auto it = sums.try_emplace(gpu, sum, sum).first;
      it->second = {std::min(it->second.first, sum), std::max(it->second.second, sum)};
    }
  }
  return std::any_of(sums.begin(), sums.end(), [](const auto& s) {
    return static_cast<double>(s.second.second - s.second.first) > kAlike * static_cast<double>(s.second.second);
  });
}

/// Decides which figures give used memory.
Status choose_roles(const LogHead& head, Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::map<Meaning, std::size_t> amounts;
  std::size_t role_words = 0;
  std::size_t percents = 0;
  std::size_t free_percents = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent)
        ++(f.role == Meaning::free ? free_percents : percents);
      else
        ++amounts[f.role];
      role_words += !f.percent && f.role == Meaning::used && f.has_role_word ? 1 : 0;
    }
  // A few lines of another kind do not count.
  const std::size_t enough = std::max<std::size_t>(2, all.lines.size() / 50);
  // An allocator that holds nothing belongs to something else: "bytes_reserved: 0" of JAX.
  const auto is_zero = [&](Meaning role) {
    return std::all_of(all.lines.begin(), all.lines.end(), [&](const HeadLine& line) {
      return std::all_of(line.found.figures.begin(), line.found.figures.end(),
                         [&](const MemoryFigure& f) { return f.role != role || f.percent || f.number == 0; });
    });
  };
  // "Alloc Granule: 4KB" is a property: no program uses so little.
  const auto is_tiny = [&](Meaning role) {
    return !is_zero(role) && std::all_of(all.lines.begin(), all.lines.end(), [&](const HeadLine& line) {
      return std::all_of(line.found.figures.begin(), line.found.figures.end(), [&](const MemoryFigure& f) {
        return f.role != role || f.percent || (f.unit_bytes != 0 && f.bytes(1) < kBytesPerMiB / 8);
      });
    });
  };
  // A single amount may be a mention ("this needs 8 GB of VRAM"). It is a reading if few lines have figures and nothing
  // is left open: a unit, words that say whose and which memory or a count of the progress, in a table or behind a
  // sign.
  const auto is_stated = [&](Meaning role) {
    constexpr std::size_t kFewLines = 4;
    return all.lines.size() <= kFewLines && std::any_of(all.lines.begin(), all.lines.end(), [&](const HeadLine& line) {
             return std::any_of(line.found.figures.begin(), line.found.figures.end(), [&](const MemoryFigure& f) {
               const std::string_view before = logtext::trim(std::string_view(line.text).substr(0, f.begin));
               const bool is_labelled =
                   line.is_row || (!before.empty() && std::string_view(":=|/").find(before.back()) != before.npos);
               const bool is_of_progress = line.is_row && !line.found.counts.empty();
               return f.role == role && !f.percent && f.unit_bytes != 0 && is_labelled &&
                      (f.has_role_word || is_of_progress) &&
                      ((f.is_of_gpu && f.is_memory) || role == Meaning::allocated || role == Meaning::reserved);
             });
           });
  };
  const bool are_single = std::none_of(amounts.begin(), amounts.end(), [enough](const auto& n) {
    return n.first != Meaning::total && n.second >= enough;
  });
  const auto repeats = [&](Meaning role) {
    return amounts.contains(role) && (amounts[role] >= enough || (are_single && is_stated(role))) &&
           !(role == Meaning::reserved && is_zero(role)) && !is_tiny(role);
  };
  for (const Meaning role : {Meaning::used, Meaning::allocated, Meaning::reserved, Meaning::free, Meaning::total})
    if (amounts.contains(role) && (role == Meaning::total || repeats(role))) plan.roles.insert(role);
  if (plan.roles.contains(Meaning::total) && totals_change(all)) {
    plan.roles.erase(Meaning::total);
    assumptions.emplace_back("what is called the total changes from line to line: it is not taken for the capacity");
  }
  if (plan.roles.contains(Meaning::used) && plan.roles.contains(Meaning::free) && use_and_free_differ(all)) {
    plan.roles.erase(Meaning::used);
    assumptions.emplace_back(
        "what is called used and free memory do not add up to one total: the free memory is read, and the other taken "
        "for what a step uses");
  }
  // If lines name GPU memory, "redis: 12 MB of memory used" is not GPU memory.
  const auto use_of = [&](bool gpu) {
    std::size_t n = 0;
    for (const HeadLine& line : all.lines)
      n += std::any_of(line.found.figures.begin(), line.found.figures.end(), [&](const MemoryFigure& f) {
        return !f.percent && f.role == Meaning::used && f.is_of_gpu == gpu;
      });
    return n;
  };
  const std::size_t of_gpu = use_of(true);
  plan.of_gpu_only = of_gpu >= enough && of_gpu * 4 >= use_of(false);
  std::size_t role_words_of_gpu = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures)
      role_words_of_gpu +=
          !f.percent && f.role == Meaning::used && f.has_role_word && (f.is_of_gpu || !plan.of_gpu_only) ? 1U : 0U;
  plan.role_words_only = role_words >= enough && role_words_of_gpu * 4 >= amounts[Meaning::used];
  constexpr std::size_t kFewestFree = 5;
  FiguresSeen seen;
  seen.used = plan.roles.contains(Meaning::used) || plan.roles.contains(Meaning::allocated) ||
              plan.roles.contains(Meaning::reserved);
  seen.total = plan.roles.contains(Meaning::total) || head.options->capacity_bytes;
  seen.percent = percents >= enough || free_percents >= enough;
  seen.peak = repeats(Meaning::peak);
  seen.free = plan.roles.contains(Meaning::free) && (seen.total || !seen.peak || amounts[Meaning::free] >= kFewestFree);
  const InUse from = in_use_from(seen);
  if (from == InUse::peak) {
    plan.peaks = true;
    for (HeadLine& line : all.lines) {
      plan.use_peaks(line.found);
      for (const MemoryFigure& f : line.found.figures)
        if (f.role != Meaning::free && f.role != Meaning::total) plan.roles.insert(f.role);
    }
    assumptions.emplace_back(
        "only peaks are given, which never fall: a peak that no longer rises says nothing about what is in use now");
  } else if (from == InUse::percent) {
    plan.percents = true;
    plan.free_percents = percents < enough;
  } else if (from == InUse::free) {
    plan.free_only = true;
    if (const HeadLine& line = all.lines.front(); amounts[Meaning::free] < kFewestFree)
      return fail(
          fmt::format("line {} is one of {} that give only the free memory, too few to show how it changes: "
                      "'{}'; {}",
                      line.number, amounts[Meaning::free], excerpt(line.text, 100), pattern_hint(line)));
  } else if (from == InUse::nothing) {
    const HeadLine& line = all.lines.front();
    return fail(
        fmt::format("line {} is one of {} with a figure of GPU memory, but not even two of them say how much is in use "
                    "(used, allocated, reserved, or free and total): '{}'; {}",
                    line.number, all.lines.size(), excerpt(line.text, 100), pattern_hint(line)));
  }
  return {};
}

/// Decides how to read numbers such as "4.000 MB". Reads the head again if that differs from the assumption.
Status resolve_grouping(const LogHead& head, Head& all, const LineCutter& cutter, WordPlan& plan,
                        std::vector<std::string>& assumptions) {
  std::vector<WrittenAmount> amounts;
  std::deque<std::string> digits;
  std::vector<std::string_view> lines;
  std::uint64_t unit_bytes = 0;  // of the ambiguous ones
  for (const HeadLine& line : all.lines) {
    lines.emplace_back(line.text);
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent) continue;
      const std::string_view text = line.text;
      if (f.is_open) unit_bytes = std::max(unit_bytes, f.unit_bytes);
      amounts.push_back({digits.emplace_back(plain_digits(text.substr(f.begin, f.digits_end - f.begin))), f.unit_bytes,
                         f.role == Meaning::total, is_german(f.label) || is_german(f.word),
                         std::to_string(static_cast<int>(f.role)) + f.label});
    }
  }
  GroupingChoice choice = choose_grouping(amounts, lines);
  if (choice.is_unknown && unit_bytes != 0) {  // without any unit, it is guessed from the size
    const auto given = unit_of(*head.options);
    if (!given) return fail(given.error());
    plan.open_unit_bytes = *given != 0 ? *given : 1000 * unit_bytes;
    plan.unit_unknown = *given == 0;
    if (plan.unit_unknown) assumptions.push_back(unknown_grouping(choice.example, unit_bytes));
  }
  plan.grouping = choice.grouping;
  if (plan.grouping != Grouping::by_comma) {
    all = survey(head.text, cutter, plan.unclear, plan.grouping);
    for (HeadLine& line : all.lines) plan.use_peaks(line.found);
    leave_out_other_lists(all, plan);
    tag_lines(all, plan);
  }
  return {};
}

/// MB or GB that are 10^6 or 10^9 bytes: see decimal_unit().
void detect_decimal_unit(const Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::vector<double> values;
  const HeadLine* first = nullptr;
  std::uint64_t unit_bytes = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent || f.unit_bytes == 0 || f.is_open || f.role == Meaning::total || !plan.takes(f)) continue;
      if (first == nullptr) first = &line, unit_bytes = f.unit_bytes;
      if (f.unit_bytes != unit_bytes) return;
      values.push_back(f.number);
    }
  if (first != nullptr) plan.decimal_bytes = decimal_unit(values, unit_bytes, first->text, assumptions);
}

/// The unit of figures without one.
Status choose_unit(const LogHead& head, const Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::vector<std::string> bare;
  std::optional<double> total;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (!plan.takes(f) || f.percent || f.unit_bytes != 0) continue;
      if (f.role == Meaning::total)
        total = std::max(total.value_or(0), f.number);
      else
        bare.push_back(f.is_open || line.text.substr(f.begin, f.digits_end - f.begin).find(',') != std::string::npos
                           ? fmt::format("{}", f.number)
                           : plain_digits(std::string_view(line.text).substr(f.begin, f.digits_end - f.begin)));
    }
  const auto given = unit_of(*head.options);
  if (!given) return fail(given.error());
  detect_decimal_unit(all, plan, assumptions);
  if (*given != 0) {
    plan.unit_bytes = *given;
  } else if (!bare.empty()) {
    const std::vector<std::string_view> values(bare.begin(), bare.end());
    const GuessedUnit guessed = guess_unit(values, true, head.options->capacity_bytes, total, assumptions);
    plan.unit_bytes = guessed.bytes;
    plan.unit_unknown |= guessed.is_unknown;
  }
  return {};
}

/// Whether figures without a unit are fractions of the total, as Megatron's "mem usages: 0.0735": all are between 0 and
/// 1, and the word next to them means a share.
void detect_ratios(const LogHead& head, Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  if (!head.options->unit.empty()) return;
  const MemoryFigure* example = nullptr;
  const HeadLine* its_line = nullptr;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (!plan.takes(f)) continue;
      constexpr std::string_view kWords[] = {"usage", "util", "ratio", "fraction", "share", "percent"};
      const bool is_named = std::any_of(std::begin(kWords), std::end(kWords),
                                        [&](std::string_view w) { return f.label.find(w) != std::string::npos; });
      if (f.percent || f.unit_bytes != 0 || f.role != Meaning::used || f.number > 1 || !is_named) return;
      if (f.number > 0 && f.number < 1) {
        example = &f;
        its_line = &line;
      }
    }
  if (example == nullptr) return;
  plan.ratios = plan.percents = true;
  assumptions.push_back(
      fmt::format("figures such as '{}' are between 0 and 1: they are read as shares of the total; if they are "
                  "amounts, give their unit with {}",
                  excerpt(std::string_view(its_line->text).substr(example->begin, example->end - example->begin)),
                  name_of(Option::unit)));
  for (HeadLine& line : all.lines) plan.convert_ratios(line.found);
}

}  // namespace

void WordPlan::use_peaks(LineFigures& line) const {
  if (!peaks) return;
  // "VRAM: 24 GB" beside them is not a peak, but what a card has.
  std::erase_if(line.figures, [](const MemoryFigure& f) { return f.role == Meaning::used && !f.has_role_word; });
  for (MemoryFigure& f : line.figures) {
    if (f.role != Meaning::peak) continue;
    f.role = Meaning::used;
    for (const Meaning role : read_label(f.label).roles)
      if (role == Meaning::allocated || role == Meaning::reserved) f.role = role;
  }
}

namespace {

/// Whether no line with readable figures names a GPU, VRAM or a tensor allocator.
bool names_no_owner(const Head& all, const WordPlan& plan) {
  return all.heads == 0 && std::all_of(all.lines.begin(), all.lines.end(), [&](const HeadLine& line) {
           return std::all_of(line.found.figures.begin(), line.found.figures.end(), [&](const MemoryFigure& f) {
             const bool is_allocator = f.role == Meaning::allocated || f.role == Meaning::reserved;
             return !plan.takes(f) || (!f.is_of_gpu && f.gpu < 0 && !is_allocator);
           });
         });
}

/// A line of `head` that names the resident memory of a process, or a library that measures it: the host's, where no
/// line names a GPU; empty: none.
std::string_view resident_line(std::string_view head) {
  constexpr std::array<std::string_view, 2> kLibraries = {"psutil", "tracemalloc"};
  while (!head.empty()) {
    const std::string_view line = logtext::take_line(head);
    std::vector<Word> words;
    cut_words(line, words);
    if (std::any_of(words.begin(), words.end(), [&](const Word& word) {
          return word.meaning == Meaning::resident ||
                 std::any_of(kLibraries.begin(), kLibraries.end(),
                             [&](std::string_view w) { return logtext::same_letters(word.text, w); });
        }))
      return line;
  }
  return {};
}

}  // namespace

std::uint64_t most_free_bytes(const Head& all, const WordPlan& plan) {
  std::uint64_t most = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures)
      if (f.role == Meaning::free && plan.takes(f)) most = std::max(most, plan.bytes(f));
  return most;
}

Result<PlannedText> plan_text(const LogHead& head, Head& all, const LineCutter& cutter, bool unclear,
                              std::vector<std::string>& assumptions) {
  WordPlan plan;
  plan.unclear = unclear;
  if (unclear)
    assumptions.push_back(fmt::format("nothing says whose memory '{}' is: it is assumed to be that of a GPU",
                                      excerpt(all.lines.front().found.figures.front().label)));
  if (Status ok = choose_roles(head, all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  if (names_no_owner(all, plan)) {
    if (const std::string_view of_host = resident_line(head.text); !of_host.empty())
      return fail(fmt::format(
          "no line says that its memory is a GPU's, and lines such as '{}' are about that of a process on the host; "
          "if line {} is of a GPU, {}",
          excerpt(logtext::trim(of_host), 80), all.lines.front().number, pattern_hint(all.lines.front())));
    if (!unclear) assumptions.push_back(may_be_of_host("line"));
  }
  detect_origins(all, plan);
  if (Status ok = choose_label(all, plan); !ok) return fail(std::move(ok.error()));
  if (Status ok = check_lists(all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  if (Status ok = resolve_grouping(head, all, cutter, plan, assumptions); !ok) return fail(std::move(ok.error()));
  if (Status ok = choose_clock(all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  detect_readings(all, plan);
  detect_ids(all, plan, assumptions);
  detect_ratios(head, all, plan, assumptions);
  if (Status ok = choose_unit(head, all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  auto stamp = make_clock(head, all, plan, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const std::vector<HeadReading> readings = head_readings(all, plan);
  const bool is_one_owner = stamp->kind() == StampReader::Kind::none && shows_several_levels(all, plan, readings);
  auto unnamed_gpus = count_unnamed_gpus(
      readings, *stamp, is_one_owner, [&] { return pattern_hint(all.lines.front()); }, assumptions);
  const bool has_events = !unnamed_gpus && are_events(all, plan);
  if (has_events) unnamed_gpus = 1;
  if (!unnamed_gpus) return fail(unnamed_gpus.error());
  if (Status ok = check_phases(all, plan, *unnamed_gpus); !ok) return fail(std::move(ok.error()));
  const std::uint64_t most_free = plan.free_only ? most_free_bytes(all, plan) : 0;
  if (plan.free_only) assumptions.push_back(only_free(most_free));
  // A pattern treats any count as steps: readings of one epoch come from one GPU, those of one step from several.
  const bool share_epochs = plan.counted == Meaning::epoch && *unnamed_gpus == 1 &&
                            std::adjacent_find(readings.begin(), readings.end(), [](const auto& a, const auto& b) {
                              return a.stamp == b.stamp && a.gpu == b.gpu;
                            }) != readings.end();
  return PlannedText{std::move(plan), std::move(*stamp), *unnamed_gpus, share_epochs, has_events, most_free};
}

Result<PlannedText> plan_pattern(const LogHead& head, Head& all, const LineCutter& cutter,
                                 std::vector<std::string>& assumptions) {
  const LinePattern& pattern = *cutter.pattern();
  WordPlan plan;
  plan.roles = {Meaning::used, Meaning::total, Meaning::free, Meaning::allocated, Meaning::reserved};
  plan.percents = true;
  plan.stamps_are_steps = pattern.has_step() && !pattern.has_time();
  plan.pid_is_process = pattern.has_pid();
  // A line with a part of a reading: others give the rest.
  plan.in_blocks = std::any_of(all.lines.begin(), all.lines.end(), [](const HeadLine& line) {
    const auto has = [&](Meaning role) {
      return std::any_of(line.found.figures.begin(), line.found.figures.end(),
                         [role](const MemoryFigure& f) { return f.role == role; });
    };
    const bool has_use = has(Meaning::used) || has(Meaning::allocated) || has(Meaning::reserved);
    return !has_use && !(has(Meaning::free) && has(Meaning::total));
  });
  if (Status ok = resolve_grouping(head, all, cutter, plan, assumptions); !ok) return fail(std::move(ok.error()));
  if (Status ok = choose_unit(head, all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  auto stamp = make_clock(head, all, plan, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto readings = pattern.has_pid() ? std::vector<HeadReading>() : head_readings(all, plan);
  const auto unnamed_gpus = count_unnamed_gpus(readings, *stamp, true, {}, assumptions);
  if (!unnamed_gpus) return fail(unnamed_gpus.error());
  return PlannedText{std::move(plan), std::move(*stamp), *unnamed_gpus};
}

}  // namespace vramtrack
