// Prose: tells a sentence that speaks of out-of-memory messages in general from one that tells of a failure.
#pragma once

#include <string_view>
#include <vector>

namespace vramtrack::explain {

/// What stands around a message in its line. Texts are in lower case. The views must outlive it.
///
/// A failure is told by a label ("worker 3: X", "| X |"), or by a verb that says what happened ("it failed with X"). A
/// sentence that has neither and still has the words of one ("the program stops with X") says what happens at times.
/// Conditions, denials and remedies ("if X", "no X", "fixed X") mention a message whatever else they say.
class Sentence {
 public:
  Sentence(std::string_view before, std::string_view after);

  /// Whether the message is spoken of in general.
  [[nodiscard]] bool is_general() const;
  /// Whether it has a condition, a question or a denial.
  [[nodiscard]] bool is_hypothetical() const;
  /// Whether it has a verb that tells of a failure, before the message.
  [[nodiscard]] bool tells_event() const;
  /// Whether its writer tells of their own: "I get X".
  [[nodiscard]] bool is_own_report() const;

 private:
  void add(std::string_view raw);
  void end_clause();
  [[nodiscard]] bool could_not() const;
  [[nodiscard]] bool is_condition() const;
  [[nodiscard]] bool has_own_words() const;

  std::string_view after_;
  std::vector<std::string_view> sentence_;
  std::vector<std::string_view> clause_;  ///< of the sentence, behind the last colon or bracket
  std::vector<std::string_view> part_;    ///< of the clause, behind the last comma
  bool has_prefix_ = false;               ///< something ended a clause before: a time, a tag, a key, a colon
};

/// What is said of a message behind it: "X errors", "`X` usually means", "X?". `begins`: X begins its line.
bool is_spoken_of(std::string_view after, bool begins);

/// Whether `line`, above a message, addresses its reader: "you may see this:". Who writes "I" reports a failure.
bool addresses_reader(std::string_view line);

/// Whether the lines behind that of a message, of which `lines` is the rest and what follows, begin with a remedy,
/// apart from it or as a heading: "**Solution**: ...", as documents have it.
bool is_answered(std::string_view lines);

/// The same as Sentence::is_general() for Chinese, Japanese and Korean, which part no words. False: there is no such
/// sentence around the message.
bool is_general_in_cjk(std::string_view before, std::string_view after);

}  // namespace vramtrack::explain
