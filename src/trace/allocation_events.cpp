// The allocation event log, a text with one event per line: docs/formats/allocation-events.md.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/ascii.hpp"
#include "core/format.hpp"
#include "core/number_text.hpp"
#include "trace/format.hpp"

namespace vramtrack::trace {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "# vramtrack allocation events";
constexpr std::size_t kLongestLine = 1 << 20;
constexpr double kLatest_s = 1e11;  ///< some 3,000 years

/// A short, printable piece of untrusted text, for an error.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return fmt::format("'{}{}'", printable(text.substr(0, kMost)), text.size() > kMost ? "..." : "");
}

std::optional<std::uint64_t> address_of(std::string_view word) {
  return word.starts_with("0x") || word.starts_with("0X") ? parse_number<std::uint64_t>(word.substr(2), 16)
                                                          : parse_number<std::uint64_t>(word);
}

std::optional<std::int64_t> time_us_of(std::string_view word) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seconds, std::chars_format::fixed);
  if (error != std::errc{} || end != word.data() + word.size() || word.empty()) return std::nullopt;
  if (!(seconds >= 0) || seconds > kLatest_s) return std::nullopt;
  return std::llround(seconds * 1e6);
}

/// The content of one line before its frames become ids.
struct Line {
  AllocEvent event;
  std::uint32_t device = 0;
  std::int64_t stream = 0;
  std::string_view frames;
};

Result<Line> parse(std::string_view rest) {
  Line line;
  const std::string_view time = take_word(rest);
  const auto time_us = time_us_of(time);
  if (!time_us) return fail(fmt::format("expected a time in seconds, 0 or greater, not {}", excerpt(time)));
  line.event.time_us = *time_us;
  const std::string_view sign = take_word(rest);
  if (sign != "+"sv && sign != "-"sv)
    return fail(fmt::format("expected + (allocated) or - (freed) after the time, not {}", excerpt(sign)));
  const bool is_alloc = sign == "+"sv;
  line.event.action = is_alloc ? Action::alloc : Action::free_completed;
  const std::string_view address = take_word(rest);
  const auto place = address_of(address);
  if (!place) return fail(fmt::format("expected an address, 0x7f00 or decimal, not {}", excerpt(address)));
  line.event.address = *place;
  std::string_view after = rest;
  std::string_view word = take_word(after);
  if (const auto bytes = parse_number<std::uint64_t>(word)) {
    if (is_alloc) line.event.size_bytes = *bytes;
    rest = after;
  } else if (is_alloc) {
    return fail(fmt::format("expected a number of bytes after the address, not {}", excerpt(word)));
  }
  for (after = rest; !(word = take_word(after)).empty(); rest = after) {
    if (word.starts_with("device=")) {
      const auto device = parse_number<std::uint32_t>(word.substr(7));
      if (!device) return fail(fmt::format("expected a device's number, not {}", excerpt(word)));
      line.device = *device;
    } else if (word.starts_with("stream=")) {
      const auto stream = parse_number<std::int64_t>(word.substr(7));
      if (!stream) return fail(fmt::format("expected a stream's number, not {}", excerpt(word)));
      line.stream = *stream;
    } else {
      break;
    }
  }
  line.frames = rest;
  return line;
}

bool is_comment(std::string_view line) {
  const std::string_view text = trimmed(line);
  return text.empty() || text.front() == '#';
}

/// Parses "name@file:line", of which only the name is required.
Frame frame_of(std::string_view text, Symbols& symbols) {
  std::string_view file;
  std::uint32_t number = 0;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    file = text.substr(at + 1);
    text = text.substr(0, at);
    if (const std::size_t colon = file.rfind(':'); colon != std::string_view::npos)
      if (const auto line = parse_number<std::uint32_t>(file.substr(colon + 1))) {
        number = *line;
        file = file.substr(0, colon);
      }
  }
  return {symbols.intern(text), symbols.intern(file), number};
}

StackId stack_of(std::string_view frames, Symbols& symbols) {
  std::vector<FrameId> stack;
  while (!frames.empty()) {
    const std::size_t end = std::min(frames.find(';'), frames.size());
    if (const std::string_view text = trimmed(frames.substr(0, end)); !text.empty())
      stack.push_back(symbols.intern(frame_of(text, symbols)));
    frames.remove_prefix(std::min(end + 1, frames.size()));
  }
  return stack.empty() ? kNoStack : symbols.intern(stack);
}

/// Reads an input by whole lines; takes as much memory as the longest one.
class Lines {
 public:
  explicit Lines(ByteInput input) : input_(std::move(input)), buffer_(64 * 1024) {}

  /// Returns false at the end. Errors: reading failed, or a line is too long.
  Result<bool> next(std::string_view& line) {
    ++number_;
    for (std::size_t searched = begin_;;) {
      const void* const newline = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
      if (newline != nullptr || (is_done_ && begin_ < end_)) {
        const char* const start = buffer_.data() + begin_;
        const char* const stop = newline != nullptr ? static_cast<const char*>(newline) : buffer_.data() + end_;
        line = {start, static_cast<std::size_t>(stop - start)};
        begin_ = std::min(static_cast<std::size_t>(stop - buffer_.data()) + 1, end_);
        return true;
      }
      if (is_done_) return false;
      searched = end_ - begin_;
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      if (end_ >= kLongestLine) return fail(where() + "longer than 1 MiB: this is not an allocation event log");
      if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
      const auto n = input_.read({reinterpret_cast<std::uint8_t*>(buffer_.data()) + end_, buffer_.size() - end_});
      if (!n) return fail(n.error());
      is_done_ = *n == 0;
      end_ += *n;
    }
  }
  /// The position of the last line, such as "events.log:17: ".
  [[nodiscard]] std::string where() const { return fmt::format("{}:{}: ", input_.name(), number_); }

 private:
  ByteInput input_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t number_ = 0;
  bool is_done_ = false;
};

int looks_like_events(std::string_view head, std::string_view) {
  if (head.starts_with(kMagic)) return 100;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    if (!is_comment(line)) return parse(line) ? kSure : 0;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return 0;
}

Status stream(ByteInput input, Symbols& symbols, const EventVisit& visit) {
  Lines lines(std::move(input));
  for (std::string_view text;;) {
    const auto more = lines.next(text);
    if (!more) return fail(more.error());
    if (!*more) return {};
    if (is_comment(text)) continue;
    auto line = parse(text);
    if (!line) return fail(lines.where() + line.error().message);
    if (line->event.action == Action::alloc) line->event.stack = stack_of(line->frames, symbols);
    if (const Status taken = visit(line->device, line->stream, line->event); !taken)
      return fail(lines.where() + taken.error().message);
  }
}

}  // namespace

extern const TraceFormatInfo allocation_events_trace_format;
const TraceFormatInfo allocation_events_trace_format{
    "allocation-events", "allocation event logs, one event per line (docs/formats/allocation-events.md)",
    looks_like_events, nullptr, stream};

}  // namespace vramtrack::trace
