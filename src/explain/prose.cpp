#include "explain/prose.hpp"

#include <algorithm>
#include <span>

#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

using Words = std::span<const std::string_view>;

/// A sentence with one of these is about what may happen, no matter where in it the message is.
constexpr std::string_view kConditions = "if|unless|whenever|how|faq|wenn|si";
constexpr std::string_view kWriter = "i|i'm|i've|my|we|our|ich|mein|meine|wir";
/// Words for countermeasures begin with one of these, in all their forms.
constexpr std::string_view kRemedies = "fix|solv|solut|resol|avoid|prevent|handl|vermeid|expect|common|frequent";
constexpr std::string_view kDenials = "no|not|never|without";
constexpr std::string_view kModals = "may|might|can|could|would|should|will";
/// Verbs of what happened, beside participles in "-ed".
constexpr std::string_view kEvents = "failed|was|were|got|caught|hit|ran|dying|unable|cannot|results|wurde";
/// Words that occur in sentences but not in labels: articles, prepositions, auxiliaries.
constexpr std::string_view kFunctionWords =
    "a|an|the|this|that|these|of|on|in|for|to|with|by|from|as|at|into|is|are|be|do|does|has|have|it|and|or|see|like|"
    "such|during|after|before|while|when";
/// Words after a message that mention messages in general, beside modals.
constexpr std::string_view kGeneralAfter = "errors|means|usually|if|occurs|is|are|handling";
/// The same, after a message that begins its line: a program prints its reason, not its condition.
constexpr std::string_view kConditionsBehind = "when|whenever|because|unless|during|with";
/// Nouns between a message and the verb that follows.
constexpr std::string_view kNouns = "error|zu";

bool has(Words words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool has_word_of(Words words, std::string_view list) {
  return std::any_of(words.begin(), words.end(), [list](std::string_view word) { return is_any(word, list); });
}
bool is_remedy(std::string_view word) {
  return begins_any(word, kRemedies) && !is_any(word, "solver|solvers|resolver|handler|handlers");
}

/// Whether one of `words` is a verb of what happened: one of the list, or a participle behind its subject. One that
/// begins a clause ("Added a test for X"), or stands behind an article ("the dreaded X") or "being", is none; nor is
/// "OOMKilled".
bool has_event(Words words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_participle = i > 0 && words[i].size() > 3 && words[i].ends_with("ed") &&
                               !words[i].starts_with("oom") && !is_any(words[i - 1], "a|an|the|be|being");
    if (is_any(words[i], kEvents) || (is_participle && !is_remedy(words[i]))) return true;
  }
  return false;
}
bool is_word_letter(char c) {
  return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0xc3;
}
/// The rest of the sentence after a message.
std::string_view to_sentence_end(std::string_view after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool ends = i + 1 == after.size() || after[i + 1] == ' ' || is_quote_mark(after[i + 1]);
    if (ends && (after[i] == '.' || after[i] == '!' || after[i] == '?')) return after.substr(0, i + 1);
  }
  return after;
}

/// A character of kana, Chinese or Korean in UTF-8.
bool has_cjk(std::string_view text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(text[i + 1]);
    // U+3041 to U+30FF, U+3400 to U+9FFF, U+AC00 to U+D7FF.
    if ((lead == 0xe3 && (next == 0x81 || next == 0x82 || next == 0x83 || next >= 0x90)) ||
        (lead >= 0xe4 && lead <= 0xe9) || (lead >= 0xea && lead <= 0xed && (lead != 0xea || next >= 0xb0)))
      return true;
  }
  return false;
}

/// The words of `line` without punctuation around them.
std::vector<std::string_view> bare_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(trimmed(line.substr(at, end - at), "\"'`*_,:;!?()[].#>"));
    at = end + 1;
  }
  return words;
}

/// The text after the last of `marks` in `text`, which are separated by "|".
std::string_view behind_last(std::string_view text, std::string_view marks) {
  while (!text.empty() && has_any(text, marks)) {
    std::size_t at = 0;
    while (!has_any(text.substr(0, at + 1), marks)) ++at;
    text.remove_prefix(at + 1);
  }
  return text;
}

}  // namespace

Sentence::Sentence(std::string_view before, std::string_view message, std::string_view after)
    : message_(message), after_(to_sentence_end(after)) {
  for (std::size_t at = 0; at < before.size();) {
    const std::size_t end = std::min(before.find_first_of(" =\"", at), before.size());
    if (end > at) add(before.substr(at, end - at));
    // Text in another column, or the key of a field, is a label.
    if (end < before.size() && (before[end] == '=' || before.substr(end).starts_with("  "))) end_clause();
    at = end + 1;
  }
  is_of_kind_ = !clause_.empty() && is_any(clause_.back(), "a|an");
  // The article of the message itself.
  for (auto* const words : {&sentence_, &clause_, &part_})
    if (!words->empty() && is_any(words->back(), "the|a|an")) words->pop_back();
}

void Sentence::end_clause() {
  has_prefix_ = true;
  clause_.clear();
  part_.clear();
}

void Sentence::add(std::string_view raw) {
  const std::string_view word = trimmed(raw, "\"'`*_,:;!?()[]");
  const char last = raw.back();
  if (has_cjk(raw)) return end_clause();  // decided by is_general_in_cjk()
  if (!word.empty()) {
    for (auto* const words : {&sentence_, &clause_, &part_}) words->push_back(word);
  } else if (is_quote_mark(last)) {
    return;
  }
  // "again:RuntimeError:" has its label before it.
  const bool is_class = word.size() > 5 && word.find(':') == std::string_view::npos &&
                        (word.ends_with("error") || word.ends_with("exception"));
  if ((last == '.' && word != "e.g." && word != "i.e.") || last == '!' || last == '?' || last == ';') {
    sentence_.clear();
    end_clause();
    has_prefix_ = false;
  } else if ((last == ':' && !is_class && !raw.ends_with("::")) || last == ']' || word.empty() ||
             !is_word_letter(word.front())) {
    // A bracket around the message belongs to the text before it: "step 3 failed (X)".
    if (raw != "(") end_clause();
  } else if (last == ',') {
    part_.clear();
  }
}

bool Sentence::reports_event() const {
  // "loading it shows the error message X": this is what one program showed.
  const std::size_t count = clause_.size();
  if (count > 2 && clause_[count - 1] == "message" && clause_[count - 2] == "error" &&
      has_any(clause_[count - 3], "shows|showed|displays|displayed|gives|gave"))
    return true;
  return has_event(clause_) || could_not();
}

bool Sentence::is_own_report() const {
  const bool reports_event_after =
      after_.find(" i ") != std::string_view::npos || after_.find(" my ") != std::string_view::npos;
  return reports_event_after || has_word_of(sentence_, kWriter);
}

bool Sentence::could_not() const {
  const auto did = [](std::string_view word, std::string_view next) {
    return next == "not" && (word == "could" || word == "did");
  };
  return std::adjacent_find(clause_.begin(), clause_.end(), did) != clause_.end();
}

bool Sentence::is_condition() const {
  // "If I run X, I get Y": what happened to the writer.
  const auto condition = std::find(sentence_.begin(), sentence_.end(), "if");
  const bool is_own = condition != sentence_.end() && condition + 1 != sentence_.end() &&
                      is_any(condition[1], kWriter) && has_word_of(part_, kWriter) && part_.size() < sentence_.size();
  if (!is_own && has_word_of(sentence_, kConditions)) return true;
  // "When X, a message is displayed."
  if (!sentence_.empty() && sentence_.front() == "when" && has_any(after_, " is displayed| is shown| appears| occurs"))
    return true;
  // "fix: X", "- fixed a crash with X": an entry of a change log; "probably, it X": a guess.
  const auto first =
      std::find_if(sentence_.begin(), sentence_.end(), [](auto word) { return is_word_letter(word.front()); });
  if (first != sentence_.end() && !has_prefix_ && is_any(*first, "probably|perhaps|maybe|possibly")) return true;
  return first != sentence_.end() && is_remedy(*first) && !has_word_of(sentence_, kWriter);
}

/// Whether the message is part of a sentence, rather than following a label: by its words, or because a label without a
/// time, tag or key before it is a name, and shorter.
bool Sentence::has_own_words() const {
  constexpr std::size_t kLongestLabel = 2;
  return (!has_prefix_ && part_.size() > kLongestLabel) || has_word_of(part_, kFunctionWords);
}

bool Sentence::is_label() const {
  return !has_word_of(clause_, kFunctionWords) && !has_word_of(sentence_, kConditions);
}

bool Sentence::is_of_its_kind() const {
  if (reports_event()) return false;
  // "I am changing the logic when X occurs"
  const auto behind = bare_words(trimmed(after_, " "));
  if (!clause_.empty() && is_any(clause_.back(), "when|whenever") && !behind.empty() && behind.front().ends_with('s') &&
      behind.front().size() > 3)
    return true;
  if (is_own_report()) return false;
  // "An OOM kill arrives as a signal": the subject of a sentence that reports no event.
  std::vector<std::string_view> rest;
  for (const std::string_view part : {message_, after_})
    for (const std::string_view word : bare_words(part)) rest.push_back(word);
  const bool is_subject = is_of_kind_ && std::none_of(sentence_.begin(), sentence_.end(),
                                                      [](auto word) { return is_word_letter(word[0]); });
  if (is_subject && after_.find(' ') != std::string_view::npos) return !has_event(rest);
  // "log on an allocation failure", "the stop when X"
  if (clause_.empty()) return false;
  if ((is_of_kind_ && is_any(clause_.back(), "on|upon")) || is_any(clause_.back(), "when|whenever|upon")) return true;
  // "when a job is X": whichever job
  const auto is_any_case = [](std::string_view word, std::string_view next) {
    return is_any(word, "when|whenever|once") && is_any(next, "a|an");
  };
  return std::adjacent_find(clause_.begin(), clause_.end(), is_any_case) != clause_.end();
}

bool Sentence::is_hypothetical() const {
  return is_condition() || is_of_its_kind() || (asks() && !is_own_report()) ||
         (has_word_of(part_, kDenials) && !could_not());
}

bool Sentence::is_general() const {
  if (is_hypothetical() || asks()) return true;
  // "Slurm prints X when the job exceeds its limit": what it does each time.
  // A program's own line goes on with what it called: "cublas error: X when calling `f`".
  const auto is_habit = [](std::string_view word) { return word.size() > 3 && word.ends_with('s'); };
  std::vector<std::string_view> words = sentence_;
  for (const std::string_view part : {std::string_view(message_), after_})
    for (const std::string_view word : bare_words(part)) words.push_back(word);
  const auto begins_condition = [](std::string_view word, std::string_view next) {
    return is_any(word, "when|whenever|if|once") && is_any(next, "the|a|an|it|its");
  };
  const auto condition = std::adjacent_find(words.begin(), words.end(), begins_condition);
  if (condition != words.end() && condition != words.begin() && std::any_of(words.begin() + 1, condition, is_habit) &&
      !is_own_report() && !reports_event())
    return true;
  if (clause_.empty()) return false;
  const std::string_view last = clause_.back();
  const std::string_view before_last = clause_.size() > 1 ? clause_[clause_.size() - 2] : "";
  if (last == "when" || last == "upon" || (last == "for" && !reports_event())) return true;
  // "falls back to the CPU when the GPU is X"
  if (clause_.size() > 1 && has(Words(clause_).subspan(1), "when") && !reports_event()) return true;
  // In "could not be loaded because X", the denial does not concern X.
  if (last == "because" || (last == "of" && before_last == "because") || (last == "to" && before_last == "due"))
    return has_word_of(clause_, kModals) && !has_word_of(clause_, kDenials);
  if (reports_event()) return false;
  if (std::any_of(clause_.begin(), clause_.end(), is_remedy) || has_word_of(clause_, kModals)) return true;
  if (is_own_report()) return false;
  const bool reports_event_after = has_any(after_, kEvents);
  return has_own_words() && !reports_event_after;
}

bool is_spoken_of(std::string_view after, bool begins) {
  // "X (OOM) occurs when"
  std::size_t at = after.starts_with(" (oom)") ? after.find(')') + 1 : 0;
  for (int word_count = 0; word_count < 3; ++word_count) {
    at = std::min(after.find_first_not_of(" \t\"'`*_", at), after.size());
    if (at < after.size() && after[at] == '?') return true;
    std::size_t end = at;
    while (end < after.size() && is_word_letter(after[end])) ++end;
    const std::string_view word = after.substr(at, end - at);
    if (word.empty()) return false;
    if (is_any(word, kGeneralAfter) || is_any(word, kModals) || (begins && is_any(word, kConditionsBehind)))
      return true;
    // The writer knows the reason: "because I stopped it".
    const std::string_view rest = trimmed(after.substr(end), " ");
    if (word == "because" && is_any(rest.substr(0, rest.find(' ')), kWriter)) return true;
    if (is_remedy(word) && word != "handled") return true;
    if (!is_any(word, kNouns)) return false;
    at = end;
  }
  return false;
}

bool addresses_reader(std::string_view line) {
  const auto words = bare_words(line);
  if (has_word_of(words, kWriter)) return false;
  return has_word_of(words, kConditions) || has_word_of(words, kModals) ||
         std::any_of(words.begin(), words.end(), is_remedy);
}

bool names_writer(std::string_view line) {
  return has_word_of(bare_words(line), kWriter) || line.find("\xe6\x88\x91") != std::string_view::npos;  // Chinese: I
}

bool is_article(std::string_view text) {
  constexpr std::size_t kParagraphBytes = 100, kHeadingBytes = 80, kLeastParagraphs = 2;
  constexpr std::ptrdiff_t kTerse = 10;  // pages are terser than reports
  std::size_t paragraphs = 0;
  bool has_heading = false;
  bool may_be_heading = false;  // the line before
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at), " \t\r");
    at = end + 1;
    if (line.empty()) continue;
    const std::string words = lower(line);
    if (names_writer(words)) return false;
    const bool is_paragraph = line.size() >= kParagraphBytes && is_sentence(words, kTerse);
    paragraphs += is_paragraph ? 1 : 0;
    has_heading = has_heading || (is_paragraph && may_be_heading);
    may_be_heading = line.size() < kHeadingBytes && (is_ascii_letter(words.back()) || line.back() == '#') &&
                     (line.front() == '#' || line.front() != words.front());
  }
  return has_heading && paragraphs >= kLeastParagraphs;
}

bool is_answered(std::string_view lines) {
  constexpr std::string_view kMarks = " \t\r*#>_`-";
  constexpr int kBlockLines = 8;
  bool is_apart = false;   // a blank line or a fence separates them
  bool has_block = false;  // the rest of a code block does
  int count = 0;
  // The text after the line of the message.
  for (std::size_t at = lines.find('\n'); at != std::string_view::npos && count < kBlockLines; ++count) {
    const std::size_t end = lines.find('\n', at + 1);
    const std::string_view line = trimmed(lines.substr(at + 1, end - at - 1), " \t\r");
    at = end;
    const bool is_fence = line.starts_with("```") || line.starts_with("~~~");
    if (line.empty() || is_fence) {
      is_apart = is_apart || is_fence || !has_block;
      continue;
    }
    const std::string_view label = trimmed(line, kMarks);
    if ((is_apart || line.front() == '*' || line.front() == '#') &&
        (is_remedy(label) || begins_any(label, "解决|対処")))
      return true;
    if (is_apart) return false;
    has_block = true;
  }
  return false;
}

bool is_general_in_cjk(std::string_view before, std::string_view after) {
  constexpr std::string_view kEnds = "。|！|？|；";
  constexpr std::string_view kLabelEnds = "：|:|]|)|】|）|。|！|？";
  constexpr std::string_view kConditionTexts = "如果|若|请|請|怎么|たら|れば|ください|경우|하면|세요";
  constexpr std::string_view kEventTexts = "了|出现|发生|报错|報錯|失败|失敗|ました|した|했습니다|실패|부족|一直";
  std::size_t end = after.size();
  while (end > 0 && has_any(after.substr(0, end), kEnds)) --end;
  const std::string_view right = after.substr(0, end);
  const std::string_view sentence = behind_last(before, kEnds);
  const std::string_view clause = behind_last(sentence, kLabelEnds);
  const bool goes_on = has_cjk(trimmed(right, " \"'`*").substr(0, 3));
  if (!has_cjk(clause) && !goes_on) return has_cjk(sentence) && has_any(sentence, kConditionTexts);
  if (has_any(sentence, kConditionTexts) || has_any(right, kConditionTexts)) return true;
  return !has_any(clause, kEventTexts) && !has_any(right, kEventTexts);
}

}  // namespace vramtrack::explain
