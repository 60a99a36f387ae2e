#include "explain/reader.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "core/order.hpp"
#include "core/units.hpp"
#include "explain/cause.hpp"
#include "explain/place.hpp"
#include "explain/platform.hpp"
#include "explain/prose.hpp"
#include "explain/quotation.hpp"
#include "explain/roles.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
/// Kept before the unread text: the beginning of a line, for wordings that need it, and the lines above a statement.
constexpr std::size_t kBehindBytes = 2 * kStatementBytes;
/// Number of readings of allocated memory that are kept.
constexpr std::size_t kMostHeld = 64;
/// In a flood of messages, only the first are examined with the surrounding text.
constexpr std::size_t kMostLooked = 64;
constexpr std::size_t kMostMessages = 10'000;
constexpr std::size_t kMostSpoken = 4;
constexpr std::size_t kMostTextBytes = 300;
/// A page about memory is not longer.
constexpr std::size_t kArticleBytes = 1 << 15;
/// Distinguishing a message from a mention takes microseconds, which must not add up in a text full of them.
constexpr std::uint64_t kJudgedAtOnce = 500;
constexpr std::uint64_t kBytesForOneJudged = 2000;
/// The size of an address space, not of a process: the driver's "unknown" (2^64 - 1) as PyTorch prints it under WSL.
constexpr double kNoSize = 1e18;

/// The compiled wordings. One that does not compile is left out: the tests compile all of them.
struct Compiled {
  std::vector<Pattern> patterns;
  std::vector<const Wording*> wordings;
  Anchors anchors;

  Compiled() {
    for (const Wording& wording : explain::wordings())
      for (const std::string_view text : texts_of(wording)) {
        auto pattern = Pattern::compile(text);
        if (!pattern) continue;
        patterns.push_back(std::move(*pattern));
        wordings.push_back(&wording);
      }
    for (const Pattern& pattern : patterns) anchors.add(pattern.anchor());
    for (const std::string_view cue : statement_cues()) anchors.add(cue);
    anchors.add(kHeldCue);
    anchors.add(kBatchCue);
    for (const std::string_view cue : kRefusalCues) anchors.add(cue);
    anchors.build();
  }
  /// After the anchors of the wordings come the cues of statements, of readings, of batches, and of refused options.
  [[nodiscard]] bool is_wording(const Hit& hit) const { return hit.index < patterns.size(); }
  [[nodiscard]] bool is_cue(const Hit& hit) const {
    return !is_wording(hit) && hit.index < patterns.size() + statement_cues().size();
  }
  [[nodiscard]] bool is_held(const Hit& hit) const { return hit.index == patterns.size() + statement_cues().size(); }
  [[nodiscard]] bool is_batch(const Hit& hit) const {
    return hit.index == patterns.size() + statement_cues().size() + 1;
  }
  [[nodiscard]] bool is_refusal(const Hit& hit) const {
    return hit.index > patterns.size() + statement_cues().size() + 1;
  }
  static constexpr std::string_view kHeldCue = "allocated";
  static constexpr std::string_view kBatchCue = "batch";
  /// What a program says of an option that it does not follow.
  static constexpr std::array<std::string_view, 8> kRefusalCues = {"not support",  "unsupported",   "ignored",
                                                                   "ignoring",     "no effect",     "unrecognized",
                                                                   "unrecognised", "unknown option"};
};

const Compiled& compiled() {
  static const Compiled all;
  return all;
}

/// The beginning of the anchor that ends at `end`: matches backwards, runs of blanks as one.
std::size_t begin_of(std::string_view text, std::size_t end, std::string_view anchor) {
  std::size_t at = end;
  for (std::size_t i = anchor.size(); i-- > 0;) {
    if (anchor[i] != ' ') {
      if (at > 0) --at;
      continue;
    }
    // Blanks and quote marks, up to the byte before the space in the anchor.
    while (at > 0 && normal(text[at - 1]) != anchor[i - 1]) --at;
  }
  return at;
}

/// "batch size 16", "--batch-size=16", "batch_size: 16", "batch size of 16"
std::optional<double> batch_behind(std::string_view text, std::size_t at) {
  const std::string rest = lower(text.substr(at, 16));
  const std::size_t size = rest.find("size");
  if (size > 1) return std::nullopt;
  const std::size_t number =
      rest.find_first_not_of(rest.substr(size + 4).starts_with(" of ") ? " of" : " :=", size + 4);
  if (number == std::string::npos) return std::nullopt;
  std::size_t end = at + number;
  return read_number(text, end);
}

bool is_memory_failure(const Wording& wording) {
  return wording.role == Role::device || wording.role == Role::host || wording.role == Role::resource;
}
bool is_failure(const Wording& wording) {
  return is_memory_failure(wording) || wording.role == Role::event;
}

/// Whether `text` shows the frames of a trace, Python's or Java's.
bool shows_trace(std::string_view text) {
  constexpr std::size_t kMostBytes = 4096;
  std::size_t frames = 0;
  text = text.substr(0, kMostBytes);
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1) {
    const std::string_view line = trimmed(text.substr(at, text.find('\n', at) - at), " \t\r");
    if (line.starts_with("Traceback (most recent")) return true;
    if (line.starts_with("at ") && line.ends_with(')')) ++frames;
  }
  return frames > 1;
}
/// The size of the mark of a heading ("# ") on the first line of `text`, if a trace follows: then the title is what
/// failed. 0: none.
std::size_t title_mark(std::string_view text) {
  const std::size_t mark = std::min(text.find_first_not_of("# "), text.size());
  return text.starts_with('#') && shows_trace(text) ? mark : 0;
}

}  // namespace

void Reader::feed(std::string_view piece) {
  tables_.feed(piece);
  read_bytes_ += piece.size();
  while (!piece.empty()) {
    const std::string_view now = piece.substr(0, kBufferBytes - std::min(kBufferBytes - 1, text_.size()));
    text_ += now;
    piece.remove_prefix(now.size());
    if (text_.size() >= kBufferBytes) scan(false);
  }
}

std::vector<Message> Reader::finish() {
  const bool is_page = erased_ == 0 && text_.size() < kArticleBytes && is_article(text_);
  scan(true);
  // The title of a page is what it is about.
  if (is_page)
    std::erase_if(messages_, [](const Message& each) { return each.line == 1 && each.figures.count() == 0; });
  const bool has_message =
      std::any_of(messages_.begin(), messages_.end(), [](const Message& each) { return is_failure(*each.wording); });
  if (!has_message && !is_page && is_report())
    for (Message& each : spoken_) messages_.push_back(std::move(each));
  for (Message& table : tables_.finish()) messages_.push_back(std::move(table));
  order(messages_, [](const Message& a, const Message& b) { return a.line < b.line; });
  return std::move(messages_);
}

void Reader::scan(bool is_end) {
  const Compiled& all = compiled();
  if (erased_ == 0) is_document_ = begins_with_title(text_);
  std::vector<Hit> hits;
  all.anchors.find(text_, hits);
  struct Start {
    std::size_t begin;
    std::size_t anchor_end;
    std::uint32_t index;
  };
  std::vector<Start> starts;
  // A message that begins later may continue in the next chunk.
  const std::size_t until = is_end ? text_.size() : text_.size() - kMessageBytes;
  for (const Hit& hit : hits) {
    if (!all.is_wording(hit)) continue;
    const std::size_t begin = begin_of(text_, hit.end, all.patterns[hit.index].anchor());
    if (begin >= taken_until_ && begin < until) starts.push_back({begin, hit.end, hit.index});
  }
  std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) { return a.begin < b.begin; });
  std::vector<GapSearches> searches(all.patterns.size());
  Match match;  // kept to reuse its memory: most beginnings match nothing
  std::vector<Found> founds;
  // A message may continue after `until`.
  std::size_t end = until;
  for (const Start& start : starts) {
    const Pattern& pattern = all.patterns[start.index];
    if (!pattern.match_behind_anchor(text_, start.begin, start.anchor_end, match, searches[start.index])) continue;
    Found found{start.begin, all.wordings[start.index], pattern.anchor().size(), match};
    if (founds.empty() || start.begin >= founds.back().match.end) {
      founds.push_back(std::move(found));
      continue;
    }
    // Of overlapping wordings, the most informative one counts; of equal ones, the more specific one.
    Found& best = founds.back();
    const auto rank = [](const Found& f) {
      return std::tuple(f.match.captured.size(), f.match.end - f.begin, f.anchor_size);
    };
    if (rank(found) > rank(best)) {
      found.begin = best.begin;
      best = std::move(found);
    }
  }
  if (!founds.empty()) end = std::max(end, std::min(founds.back().match.end, text_.size()));
  join(find_statements(hits), until, founds);
  for (const Hit& hit : hits) {
    if (hit.end < taken_until_ || hit.end >= until) continue;
    if (all.is_held(hit)) {
      const std::size_t at = std::min(text_.find_first_not_of(" :=", hit.end), text_.size());
      std::size_t behind = at;
      const auto bytes = at - hit.end < 4 ? read_size(text_, behind) : std::nullopt;
      if (bytes && *bytes >= kMiB) readings_.push_back({hit.end, *bytes, 0});
    } else if (all.is_batch(hit)) {
      if (const auto batch = batch_behind(text_, hit.end)) readings_.push_back({hit.end, 0, *batch});
    } else if (all.is_refusal(hit)) {
      add_refused(text_, hit.end);
    }
  }
  for (const Found& found : founds) take(found);
  take_held(text_.size());
  taken_until_ = end;
  const std::size_t keep_from = is_end ? text_.size() : std::min(until, taken_until_) - std::min(until, kBehindBytes);
  const auto from = text_.begin() + static_cast<std::ptrdiff_t>(std::min(counted_, keep_from));
  lines_before_ +=
      static_cast<std::uint64_t>(std::count(from, text_.begin() + static_cast<std::ptrdiff_t>(keep_from), '\n'));
  counted_ = std::max(counted_, keep_from) - keep_from;
  text_.erase(0, keep_from);
  erased_ += keep_from;
  taken_until_ -= std::min(taken_until_, keep_from);
}

std::vector<Statement> Reader::find_statements(const std::vector<Hit>& hits) const {
  std::vector<Statement> out;
  std::size_t line_end = 0;
  for (const Hit& hit : hits) {
    if (!compiled().is_cue(hit) || hit.end <= line_end) continue;
    const auto statement = read_statement(text_, hit.end - 1);
    const std::string_view rest = std::string_view(text_).substr(hit.end, kStatementBytes);
    const std::size_t rest_size = std::min(rest.find('\n'), rest.size());
    line_end = hit.end + (statement ? rest_size : std::min(rest_size, kStatementBytes * 3 / 8));
    if (statement && (out.empty() || statement->begin > out.back().begin)) out.push_back(*statement);
  }
  return out;
}

void Reader::join(const std::vector<Statement>& statements, std::size_t until, std::vector<Found>& all) const {
  const auto lines_of = [this](std::size_t begin, std::size_t end) {
    return Range{line_of(text_, begin, begin).begin, line_of(text_, end, end).end};
  };
  // A wording finds no failure: it names the program, and the figures, of a statement on its lines.
  const auto is_stated = [&](const Found& found) {
    const Range lines = lines_of(found.begin, found.match.end);
    const auto first = std::lower_bound(statements.begin(), statements.end(), lines.begin,
                                        [](const Statement& each, std::size_t at) { return each.end <= at; });
    // Of a long line, not every statement is in the list.
    return (first != statements.end() && first->begin < lines.end) || read_statement(text_, found.begin).has_value();
  };
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const Found& found) { return is_memory_failure(*found.wording) && !is_stated(found); }),
            all.end());
  const std::size_t known_count = all.size();
  std::size_t known = 0;
  for (const Statement& statement : statements) {
    if (statement.begin < taken_until_ || statement.begin >= until) continue;
    const Range line = lines_of(statement.begin, statement.end);
    while (known < known_count && all[known].match.end <= line.begin) ++known;
    bool is_known = false;
    for (std::size_t i = known; i < known_count && all[i].begin < line.end; ++i)
      is_known = is_known || is_failure(*all[i].wording);
    if (!is_known) all.push_back({statement.begin, &any_statement(), 0, {statement.end, {}}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.begin < b.begin; });
}

bool Reader::is_report() const {
  constexpr std::uint64_t kLeastBytes = 100, kMostBytes = 4096, kLeastLines = 2;
  return read_bytes_ >= kLeastBytes && read_bytes_ < kMostBytes && lines_before_ >= kLeastLines;
}

void Reader::add_refused(std::string_view text, std::size_t at) {
  constexpr std::size_t kMostRefused = 16, kLeastBytes = 6;
  const Range range = line_of(text, at, at);
  const std::string line = lower(text.substr(range.begin, std::min(range.end - range.begin, kMostTextBytes)));
  for (const Word& word : words_of(line)) {
    const bool is_option = word.text.starts_with("--") || word.text.find('_') != std::string_view::npos;
    if (is_option && word.text.size() >= kLeastBytes && refused_.size() < kMostRefused) refused_.emplace(word.text);
  }
}

void Reader::take_held(std::size_t until) {
  std::size_t passed = 0;
  for (; passed < readings_.size() && readings_[passed].at < until; ++passed) {
    if (readings_[passed].batch > 0)
      batch_ = readings_[passed].batch;
    else
      held_.push_back(readings_[passed].bytes);
  }
  readings_.erase(readings_.begin(), readings_.begin() + static_cast<std::ptrdiff_t>(passed));
  if (held_.size() > kMostHeld) held_.erase(held_.begin(), held_.end() - kMostHeld);
}

System Reader::system_at(std::size_t begin) {
  constexpr std::size_t kAroundBytes = 2048;
  if (system_ != System::any || messages_.size() > kMostLooked) return system_;
  const std::string_view text = text_;
  if (erased_ == 0) system_ = system_of(text.substr(0, kAroundBytes));
  const std::size_t from = begin - std::min(begin, kAroundBytes);
  if (system_ == System::any) system_ = system_of(text.substr(from, begin - from + kAroundBytes));
  return system_;
}

void Reader::take(const Found& found) {
  if (found.begin > counted_) {
    lines_before_ +=
        static_cast<std::uint64_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                              text_.begin() + static_cast<std::ptrdiff_t>(found.begin), '\n'));
    counted_ = found.begin;
  }
  const auto figure_count = static_cast<std::size_t>(
      std::count_if(found.match.captured.begin(), found.match.captured.end(),
                    [](const Captured& captured) { return captured.figure != Figure::skipped; }));
  const bool is_statement = found.wording->text.empty();
  const bool may_be_mention = is_failure(*found.wording) && figure_count < 2;
  if (messages_.size() >= kMostMessages ||
      (may_be_mention && judged_ >= kJudgedAtOnce + (erased_ + found.begin) / kBytesForOneJudged)) {
    ++dropped_;
    return;
  }
  // A failure that was counted no times.
  const auto is_none = [](const Captured& each) { return each.figure == Figure::count && each.value <= 0; };
  if (is_memory_failure(*found.wording) &&
      std::any_of(found.match.captured.begin(), found.match.captured.end(), is_none))
    return;
  if (is_failure(*found.wording) && place_of(text_, found.begin, found.match.end, is_document_) != Place::run) {
    if (quotation_line_ == 0) quotation_line_ = lines_before_ + 1;
    return;
  }
  const auto size_count = std::count_if(found.match.captured.begin(), found.match.captured.end(),
                                        [](const Captured& captured) { return is_size(captured.figure); });
  const Statement range{found.begin, found.match.end};
  const bool is_elsewhere = found.wording->role == Role::device && is_on_host(text_, range);
  const bool is_other =
      !is_statement && is_memory_failure(*found.wording) && figure_count < 2 && has_other_reason(text_, range, true);
  const Wording& wording = is_other                       ? other_reason()
                           : is_statement || is_elsewhere ? wording_of(text_, range)
                                                          : *found.wording;
  Figures beside;
  std::size_t own_count = 0;
  // A killer that acts for host memory says what it counts.
  if ((is_statement || wording.role == Role::device) && size_count < 2)
    // The memory of a program in the table is on the line of its wording, or in its own tables.
    own_count = read_figures(text_, found.begin, found.match.end, is_statement || size_count == 0, beside);
  Mention mention = Mention::none;
  if (may_be_mention && (!is_statement || own_count < 2)) {
    ++judged_;
    const bool is_unnamed = is_statement && wording.name.starts_with("statement");
    if ((figure_count == 0 && is_row_of_terms(text_, found.begin, is_unnamed)) ||
        (is_statement && is_template(text_, found.begin, found.match.end))) {
      mention = Mention::marked;
    } else {
      const bool is_title = is_document_ && erased_ == 0 && found.begin < text_.find('\n');
      const std::size_t mark = is_title ? std::min(title_mark(text_), found.begin) : 0;
      mention = mention_of(std::string_view(text_).substr(mark), found.begin - mark, found.match.end - mark,
                           std::max(figure_count, own_count));
    }
    if (mention != Mention::none && quotation_line_ == 0) quotation_line_ = lines_before_ + 1;
    if (mention == Mention::marked || (mention == Mention::spoken && spoken_.size() >= kMostSpoken)) return;
  }
  // The frames of one traceback count as one sign.
  const bool is_frame = found.wording->role == Role::frame;
  if (is_frame && !messages_.empty() && messages_.back().wording == found.wording) {
    messages_.back().line = lines_before_ + 1;
    return;
  }
  take_held(found.begin);
  Message& message = (mention == Mention::spoken ? spoken_ : messages_).emplace_back();
  message.wording = &wording;
  if (is_memory_failure(wording)) {
    if (wording.name != "statement_killed" && wording.name != "statement_ended")
      message.went_on = went_on_words(text_, found.begin, found.match.end, is_statement).substr(0, kMostTextBytes);
    if (messages_.size() <= kMostLooked) {
      Figures ignored;
      // Next to a message with figures, only figures that it cannot contain count.
      const bool is_of_device = wording.role == Role::device && size_count < 2;
      message.remarks = read_remarks(text_, found.begin, found.match.end, is_of_device ? beside : ignored);
      // About host memory, only an invalid size counts: the card's memory is irrelevant.
      if (const auto planned = ignored.get(Figure::planned); planned && *planned >= kImpossibleBytes)
        beside.set(Figure::planned, *planned);
    }
    message.held = held_;
  }
  message.refused = refused_;
  message.system = system_at(found.begin);
  message.line = lines_before_ + 1;
  message.batch = batch_;
  const std::size_t from = found.begin - std::min(found.begin, kBeforeBytes);
  const std::string_view before = std::string_view(text_).substr(from, found.begin - from);
  message.before = before.substr(before.rfind('\n') + 1);
  // The words of a statement are those of its line; a device name before a wording belongs to it: "HIP out of memory".
  const std::string_view name =
      std::string_view(message.before).substr(message.before.rfind(' ', message.before.size() - 2) + 1);
  const bool has_device = name.size() > 1 && name.ends_with(' ') && is_of_device(lower(name));
  const std::size_t text_begin = found.begin - (is_statement ? message.before.size() : has_device ? name.size() : 0);
  const std::string_view text = std::string_view(text_).substr(text_begin, kMostTextBytes);
  message.text = text.substr(0, text.find('\n'));
  double pid = 0;
  double elements = 0;
  for (const auto& [figure, value] : found.match.captured) {
    if (figure == Figure::shape) {
      elements = value;
    } else if (figure == Figure::element) {
      if (value > 0 && elements > 0) message.figures.set(Figure::asked, elements * value);
    } else if (is_size(figure) && value >= kNoSize && figure != Figure::asked) {
      continue;
    } else if (figure == Figure::other) {
      message.others.push_back({pid, value});
    } else {
      if (figure == Figure::pid) pid = value;
      message.figures.set(figure, value);
    }
  }
  message.figures.complete(beside);
  if (wording.role == Role::device && size_count < 2 && message.others.empty() && messages_.size() <= kMostLooked)
    message.others = named_processes(text_, found.begin, found.match.end);
  // On-chip memory used by a kernel is its request.
  if (const auto used = message.figures.get(Figure::used); used && wording.role == Role::resource) {
    if (!message.figures.get(Figure::asked)) message.figures.set(Figure::asked, *used);
    message.figures.clear(Figure::used);
  }
}

std::vector<Message> read_messages(std::string_view text) {
  Reader reader;
  reader.feed(text);
  return reader.finish();
}

}  // namespace vramtrack::explain
