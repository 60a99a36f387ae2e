// The arguments of a command, declared once for parsing, --help, the shells' completions and the man page.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::cli {

/// Stores one word of the command line. Its error states what was expected; the caller prefixes the option's name.
using SetWord = std::function<Status(const std::string& word)>;

/// How many words follow an option or form an operand.
enum class Takes : std::uint8_t {
  nothing,   ///< a flag
  one,       ///< one word, once
  list,      ///< comma-separated words; may be given several times
  repeated,  ///< one word; may be given several times
  several,   ///< all words up to the next option, at least one
};

/// What a shell offers as completions of a word, besides the known words.
enum class Completes : std::uint8_t { nothing, files, programs };

/// Options that several commands share and that the man page describes once, under their own heading.
enum class Group : std::uint8_t { own, configuration, logs };

/// One option ("--json") or operand ("FILE").
struct Argument {
  std::string name;     ///< its other names are in `also` and `silent`
  std::string metavar;  ///< placeholder for the word after an option; empty: a flag or an operand
  std::string help;     ///< one sentence, without a full stop
  Takes takes = Takes::nothing;
  SetWord set;  ///< called for each word; for a flag, with an empty word, and then it must not fail
  bool is_required = false;
  Completes with = Completes::nothing;
  std::vector<std::string> words;  ///< the known words
  std::string manual;              ///< more sentences, only for the man page
  Group group = Group::own;
  std::vector<std::string> also{};    ///< other names that are shown beside it: "-o"
  std::vector<std::string> silent{};  ///< names that are accepted but not shown: those of earlier versions
  bool reads_stdin = false;           ///< a required operand that may be omitted if standard input is a pipe or file

  /// The names that are shown, the short ones first: "-o", "--output".
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool is_operand() const { return !name.starts_with('-'); }

  Argument& required() { return is_required = true, *this; }
  Argument& file() { return with = Completes::files, *this; }
  Argument& program() { return with = Completes::programs, *this; }
  Argument& completes(std::vector<std::string> known) { return words = std::move(known), *this; }
  Argument& or_stdin() { return reads_stdin = true, *this; }
  Argument& in_manual(std::string sentences) { return manual = std::move(sentences), *this; }
};

/// The arguments of one command, in the order of --help. An option gets all of its names, whichever it is declared
/// under: -o is --output in every command that has it. The variables for the values must outlive the parsing.
class Arguments {
 public:
  Argument& flag(std::string name, std::string help, bool& into);
  Argument& flag(std::string name, std::string help, std::function<void()> on);
  Argument& option(std::string name, std::string metavar, std::string help, SetWord set);
  /// Words may be separated by commas, and the option may be repeated; `set` is called for each word.
  Argument& list(std::string name, std::string metavar, std::string help, SetWord set);
  Argument& repeated(std::string name, std::string metavar, std::string help, SetWord set);
  /// "--replay FILE ...": everything up to the next option.
  Argument& several(std::string name, std::string metavar, std::string help, SetWord set);
  /// "--format NAME", where NAME is one of `known`; also adds "--json" if that is one of them.
  Argument& format(std::vector<std::string> known, std::string help, SetWord set);
  /// The same for a command that prints text, or JSON as described by `help`.
  Argument& json(std::string help, bool& into);
  /// "--output FILE" for a command that prints: `into` stays empty for standard output, which "-" names as well.
  Argument& output(std::string& into);
  Argument& operand(std::string name, std::string help, SetWord set);
  Argument& operands(std::string name, std::string help, SetWord set);

  /// Puts the arguments from index `first` on into `group`.
  void put_in_group(Group group, std::size_t first);

  [[nodiscard]] const std::deque<Argument>& all() const { return all_; }

 private:
  Argument& add(Argument argument);

  std::deque<Argument> all_;  ///< a deque, so that references returned by add() stay valid
};

// Functions that store words. Each word is either stored unchanged or checked first.
SetWord text(std::string& into);
SetWord text(std::optional<std::string>& into);
SetWord text(std::vector<std::string>& into);  ///< appends
/// The name of a file to write, which cannot be "-": only Arguments::output() accepts that for standard output.
SetWord file_to_write(std::string& into);
/// "30s", "5min": a bare number is refused, because people mean minutes by it as well as seconds.
SetWord duration(std::optional<double>& into_s);
SetWord duration(std::function<void(double seconds)> into);
Result<double> typed_duration_s(std::string_view word);
/// A whole number from `min` to `max`.
SetWord whole_number(std::function<void(std::uint64_t)> into, std::uint64_t min, std::uint64_t max);
SetWord number(double& into, double min, double max);
/// "80GiB": the memory of a whole GPU. Less than 1 MiB is an error, because the unit must have been forgotten.
SetWord device_memory(std::function<void(std::uint64_t bytes)> into);
SetWord capacity(std::optional<std::uint64_t>& into_bytes);
/// The same, or 0, which lifts a limit that is in force.
SetWord memory_limit(std::function<void(std::uint64_t bytes)> into);
/// One of these names, in upper or lower case; it is stored as spelled in `known`.
SetWord one_of(std::vector<std::string> known, std::string& into);
SetWord one_of(std::vector<std::string> known, SetWord into);

/// "a, b, c", for names of any kind, such as detectors, sources or themes.
std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");
template <class Range>
std::vector<std::string> names_of(const Range& named) {
  std::vector<std::string> names;
  for (const auto& each : named) {
    if constexpr (requires { each->name; })
      names.emplace_back(each->name);
    else
      names.emplace_back(each.name);
  }
  return names;
}

}  // namespace vramtrack::cli
