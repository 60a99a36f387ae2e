// The combined meaning of the words next to a number in free text, or in the title of a column.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/log/memory_words.hpp"

namespace vramtrack {

struct Word {
  std::string_view text;
  Meaning meaning = Meaning::none;
};

/// Whether `c` begins or continues a word: a letter, or a byte of one that is not ASCII.
bool is_letter(char c);
/// Whether `c` begins a letter of a language without spaces between words.
bool begins_wide(char c);

/// The words of `text` in order. "gpuMemUsed" and "gpu_mem_used" are three words each.
void cut_words(std::string_view text, std::vector<Word>& words);

/// The combined meaning of the words of a label.
struct Label {
  std::vector<Meaning> roles;  ///< in order
  std::vector<std::string_view> role_words;
  bool memory = false, vram = false, gpu = false, rate = false, change = false, other = false;
  bool host = false;  ///< names the machine: its RAM, its CPU
  bool ram = false;   ///< memory of the machine itself
  bool swap = false, share = false, process = false, measured = false;
  bool limit = false;       ///< a total, if it is of memory
  std::string_view things;  ///< "pages": units counted instead of bytes
  std::string_view subject;
  std::uint64_t unit_bytes = 0;
  bool nearest_is_gpu = false;
  bool percent = false;  ///< a word means per cent: is_percent_word()

  [[nodiscard]] bool is_of_gpu() const { return vram || (gpu && memory); }
  /// Whether it is about something other than GPU memory.
  [[nodiscard]] bool is_of_other() const { return measured || ((other || host) && !is_of_gpu()); }
  [[nodiscard]] bool has_meaning() const {
    return !roles.empty() || memory || vram || other || host || measured || rate || change;
  }
  /// The role, and the word that gives it: a peak of allocated memory is a peak.
  [[nodiscard]] std::pair<Meaning, std::string_view> role() const {
    // "total_memory_available" is the total.
    if (roles.size() > 1 && roles.front() == Meaning::total && roles.back() == Meaning::free)
      return {Meaning::total, role_words.front()};
    for (const Meaning wanted : {Meaning::peak, Meaning::reserved, Meaning::allocated, Meaning::free, Meaning::used,
                                 Meaning::total, Meaning::current})
      for (std::size_t i = roles.size(); i-- > 0;)
        if (roles[i] == wanted) return {wanted, role_words[i]};
    return {Meaning::none, {}};
  }
};

/// "percent", "pct": a word that means per cent.
bool is_percent_word(std::string_view word);

/// The meaning of `words` in sequence.
Label label_of(std::span<const Word> words);
/// The same for the words of `text`.
Label read_label(std::string_view text);

/// Whether a title or key begins like a GPU field of `nvidia-smi --query-gpu`: "memory.used [MiB]".
bool is_query_field(std::string_view title);
/// Whether a title, a key or a metric names the host's memory: "ram_used_mib", "rss", "swap free".
bool names_host_memory(std::string_view name);
/// Why a log with no memory other than `name` is refused, and the remedy.
std::string only_host_memory(std::string_view name);
/// The warning that memory is read although no `part` of the log ("line", "title", "key") shows which device owns it.
std::string may_be_of_host(std::string_view part);

/// The length of the comma, bracket or similar separator at the start of `text`, including full-width ones; 0: none.
std::size_t separator_length(std::string_view text);
/// Whether `gap` between two numbers is only a comma or similar.
bool separates_elements(std::string_view gap);
/// The label in the text before a number: the part after the last separator, unless that part has no meaning.
std::string_view label_before(std::string_view text);
/// The label in the text after a number: up to the first separator, or in the brackets with which it begins.
std::string_view label_after(std::string_view text);
/// The word right before a number, ignoring punctuation, as in "step [3", "GPU#0:", "gpu0".
std::string_view word_right_before(std::string_view text);
/// Whether `gap` between two numbers makes the second the new value of the first: "4000 MB -> 4050 MB", "increased by
/// 50 MB to 4050 MB".
bool joins_change(std::string_view gap);
/// Whether a label announces a new value: "increased to".
bool ends_in_to(std::string_view label);
/// "INFO", "warning": a logger's severity.
bool is_log_level(std::string_view word);
/// Equal for labels of one kind: without digits, log levels, and names in brackets.
std::string label_key(std::string_view text);
/// "used of", "/", "in use (out of": if `gap` between two numbers makes the second the whole of the first, the words
/// about the first.
std::optional<std::string_view> joins_pair(std::string_view gap);
/// "Max Allocated / Max Reserved", "mem_get_info() -> (free, total)": the role of each of `count` figures after
/// `label`; empty: not given.
std::vector<Meaning> roles_in_order(std::string_view label, std::size_t count);
/// Whether `label` is a CUDA or HIP runtime call that returns the free and the total memory of a GPU.
bool is_call_of_runtime(std::string_view label);

/// A title cut into lower-case words, with its unit kept separately.
struct TitleWords {
  std::vector<std::string> words;
  std::uint64_t unit_bytes = 0;
  std::int64_t unit_ns = 0;
  bool percent = false;
  bool other_unit = false;  ///< the unit is degrees, watts or a clock rate
  bool of_card = false;     ///< "Memory Used (Dedicated)"

  [[nodiscard]] bool has(std::initializer_list<std::string_view> any) const {
    for (const std::string_view w : any)
      if (std::find(words.begin(), words.end(), w) != words.end()) return true;
    return false;
  }
  /// The words, separated by spaces.
  [[nodiscard]] std::string text() const;
  /// Their meaning, ignoring a number at the end of a word. The views of the label point into `words`.
  [[nodiscard]] Label label() const;
};

/// Cuts a title such as "memory.used [MiB]", "gpuMemUsedMb", "Belegt (MB)" or "显存占用(MB)". Pure; microseconds.
TitleWords read_title(std::string_view title);

}  // namespace vramtrack
