#include "explain/reader.hpp"

#include <algorithm>
#include <tuple>

#include "core/order.hpp"
#include "explain/anchors.hpp"
#include "explain/quotation.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
/// Kept before what is settled: the begin of a line, for wordings that stand there.
constexpr std::size_t kBehindBytes = kBeforeBytes;
constexpr std::size_t kMostMessages = 10'000;
constexpr std::size_t kMostTextBytes = 300;
/// To tell a message from a mention takes some microseconds, which a text of nothing else must not multiply.
constexpr std::uint64_t kJudgedAtOnce = 500;
constexpr std::uint64_t kBytesForOneJudged = 2000;
/// A size of an address space, and no process's: the driver's "unknown" (2^64 - 1) as PyTorch prints it under WSL.
constexpr double kNoSize = 1e18;

/// The wordings, ready to be found. A wording that does not compile is left out: the tests compile all of them.
struct Compiled {
  std::vector<Pattern> patterns;
  std::vector<const Wording*> wordings;
  Anchors anchors;

  Compiled() {
    for (const Wording& wording : explain::wordings()) {
      auto pattern = Pattern::compile(wording.text);
      if (!pattern) continue;
      patterns.push_back(std::move(*pattern));
      wordings.push_back(&wording);
    }
    for (const Pattern& pattern : patterns) anchors.add(pattern.anchor());
    anchors.build();
  }
};

const Compiled& compiled() {
  static const Compiled all;
  return all;
}

/// Where the anchor begins that ends at `end`: the text backwards, blanks as one.
std::size_t begin_of(std::string_view text, std::size_t end, std::string_view anchor) {
  std::size_t at = end;
  for (std::size_t i = anchor.size(); i-- > 0;) {
    if (anchor[i] != ' ') {
      if (at > 0) --at;
      continue;
    }
    // Blanks and quote marks, up to the byte that stands before the space in the anchor.
    while (at > 0 && normal(text[at - 1]) != anchor[i - 1]) --at;
  }
  return at;
}

}  // namespace

void Reader::feed(std::string_view piece) {
  tables_.feed(piece);
  while (!piece.empty()) {
    const std::string_view now = piece.substr(0, kBufferBytes - std::min(kBufferBytes - 1, text_.size()));
    text_ += now;
    piece.remove_prefix(now.size());
    if (text_.size() >= kBufferBytes) scan(false);
  }
}

std::vector<Message> Reader::finish() {
  scan(true);
  for (Message& table : tables_.finish()) messages_.push_back(std::move(table));
  order(messages_, [](const Message& a, const Message& b) { return a.line < b.line; });
  return std::move(messages_);
}

void Reader::scan(bool is_end) {
  const Compiled& all = compiled();
  std::vector<Hit> hits;
  all.anchors.find(text_, hits);
  struct Start {
    std::size_t begin;
    std::size_t anchor_end;
    std::uint32_t index;
  };
  std::vector<Start> starts;
  // A message that begins later may go on in the next piece.
  const std::size_t until = is_end ? text_.size() : text_.size() - kMessageBytes;
  for (const Hit& hit : hits) {
    const std::size_t begin = begin_of(text_, hit.end, all.patterns[hit.index].anchor());
    if (begin >= settled_ && begin < until) starts.push_back({begin, hit.end, hit.index});
  }
  std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) { return a.begin < b.begin; });
  std::vector<GapSearches> searches(all.patterns.size());
  Match match;  // kept for its memory: most beginnings go nowhere
  Found best;
  for (const Start& start : starts) {
    const Pattern& pattern = all.patterns[start.index];
    if (!pattern.match_behind_anchor(text_, start.begin, start.anchor_end, match, searches[start.index])) continue;
    Found found{start.begin, all.wordings[start.index], pattern.anchor().size(), match};
    if (best.wording == nullptr || start.begin >= best.match.end) {
      if (best.wording != nullptr) take(best);
      best = std::move(found);
      continue;
    }
    // Of wordings that lie over one another the one that tells most; of equal ones that which leaves less open.
    const auto rank = [](const Found& f) {
      return std::tuple(f.match.captured.size(), f.match.end - f.begin, f.anchor_size);
    };
    if (rank(found) > rank(best)) {
      found.begin = best.begin;
      best = std::move(found);
    }
  }
  if (best.wording != nullptr) take(best);
  settled_ = std::max(until, best.wording == nullptr ? 0 : std::min(best.match.end, text_.size()));
  const std::size_t keep_from = is_end ? text_.size() : std::min(until, settled_) - std::min(until, kBehindBytes);
  const auto from = text_.begin() + static_cast<std::ptrdiff_t>(std::min(counted_, keep_from));
  lines_before_ +=
      static_cast<std::uint64_t>(std::count(from, text_.begin() + static_cast<std::ptrdiff_t>(keep_from), '\n'));
  counted_ = std::max(counted_, keep_from) - keep_from;
  text_.erase(0, keep_from);
  erased_ += keep_from;
  settled_ -= std::min(settled_, keep_from);
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
  if (found.wording->role == Role::batch) {
    batch_ = found.match.captured.empty() ? 0 : found.match.captured.front().value;
    return;
  }
  const bool is_failure = found.wording->role != Role::context && found.wording->role != Role::frame;
  const bool may_be_mention = is_failure && figure_count < 2;
  if (messages_.size() >= kMostMessages ||
      (may_be_mention && judged_ >= kJudgedAtOnce + (erased_ + found.begin) / kBytesForOneJudged)) {
    ++dropped_;
    return;
  }
  if (may_be_mention) {
    ++judged_;
    if (is_quotation(text_, found.begin, found.match.end, figure_count)) {
      if (quotation_line_ == 0) quotation_line_ = lines_before_ + 1;
      return;
    }
  }
  // The frames of one traceback are one sign.
  const bool is_frame = found.wording->role == Role::frame;
  if (is_frame && !messages_.empty() && messages_.back().wording == found.wording) {
    messages_.back().line = lines_before_ + 1;
    return;
  }
  Message& message = messages_.emplace_back();
  message.wording = found.wording;
  message.line = lines_before_ + 1;
  message.batch = batch_;
  const std::size_t from = found.begin - std::min(found.begin, kBehindBytes);
  const std::string_view before = std::string_view(text_).substr(from, found.begin - from);
  message.before = before.substr(before.rfind('\n') + 1);
  const std::string_view text = std::string_view(text_).substr(found.begin, kMostTextBytes);
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
}

std::vector<Message> read_messages(std::string_view text) {
  Reader reader;
  reader.feed(text);
  return reader.finish();
}

}  // namespace vramtrack::explain
