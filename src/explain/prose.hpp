// Prose: distinguishes a sentence about out-of-memory messages in general from one that reports a failure.
#pragma once

#include <string_view>
#include <vector>

namespace vramtrack::explain {

/// The text around a message in its line, in lower case. The views must outlive it.
///
/// A failure is reported by a label ("worker 3: X", "| X |"), or by a verb that reports it ("it failed with X"). A
/// sentence that has neither but is a sentence ("the program stops with X") describes what may happen. Conditions,
/// denials and remedies ("if X", "no X", "fixed X") only mention a message, no matter what else they say.
class Sentence {
 public:
  /// `message` may be a clause of its own: "OOMKilled when the container exceeds its limit".
  Sentence(std::string_view before, std::string_view message, std::string_view after);

  /// Whether it mentions the message in general.
  [[nodiscard]] bool is_general() const;
  /// Whether it contains a condition, a question or a denial.
  [[nodiscard]] bool is_hypothetical() const;
  /// Whether a verb before the message reports a failure.
  [[nodiscard]] bool reports_event() const;
  /// Whether the words before the message are a label, without the small words of a sentence: "HIP driver error X".
  [[nodiscard]] bool is_label() const;
  /// Whether the writer reports their own failure: "I get X".
  [[nodiscard]] bool is_own_report() const;

 private:
  void add(std::string_view raw);
  void end_clause();
  [[nodiscard]] bool could_not() const;
  [[nodiscard]] bool asks() const { return after_.ends_with('?'); }
  [[nodiscard]] bool is_condition() const;
  [[nodiscard]] bool is_of_its_kind() const;
  [[nodiscard]] bool has_own_words() const;

  std::string_view message_;
  std::string_view after_;
  std::vector<std::string_view> sentence_;
  std::vector<std::string_view> clause_;  ///< of the sentence, after the last colon or bracket
  std::vector<std::string_view> part_;    ///< of the clause, after the last comma
  bool is_of_kind_ = false;  ///< an indefinite article stands before the message: "on an X", "an X arrives"
  bool has_prefix_ = false;  ///< something ended a clause before it: a time, a tag, a key, a colon
};

/// What follows a message: "X errors", "`X` usually means", "X?". `begins`: X begins its line, so that "X when" counts,
/// too: in general, or the title of a report.
bool is_spoken_of(std::string_view after, bool begins);

/// Whether `line`, above a message, is of what may happen to its reader: "you may see this:", "If it fails:". A writer
/// who says "I" reports a failure.
bool addresses_reader(std::string_view line);

/// Whether the writer of `line`, in lower case, writes of themselves: "I", "my", "we".
bool names_writer(std::string_view line);

/// Whether the lines after the message's line, of which `lines` is the rest and what follows, begin with a remedy,
/// separately or as a heading: "**Solution**: ...", as in documentation.
bool is_answered(std::string_view lines);

/// Whether `text` is a page about its subject, not a report: it has a heading and paragraphs, and no line in which
/// somebody writes of themselves. O(text).
bool is_article(std::string_view text);

/// The same as Sentence::is_general() for Chinese, Japanese and Korean, which do not separate words. False: there is no
/// such sentence around the message.
bool is_general_in_cjk(std::string_view before, std::string_view after);

}  // namespace vramtrack::explain
