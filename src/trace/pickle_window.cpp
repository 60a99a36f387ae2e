#include "trace/pickle_window.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trace/format.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kWindow = 256 * 1024;
constexpr std::size_t kMostLine = 65536;

/// The error text for a file that no format recognises.
std::string what_it_is() {
  std::string kinds;
  for (const TraceFormatInfo* const format : trace_formats())
    kinds += fmt::format("{}{}", kinds.empty() ? "" : "; ", format->help);
  return fmt::format("not a pickle; expected, plain, gzip or zstd, one of: {}", kinds);
}

}  // namespace

PickleWindow::PickleWindow(ByteInput& input) : input_(input), buffer_(kWindow) {
  p_ = end_ = buffer_.data();
}

Status PickleWindow::result() const {
  return fail(fmt::format("{}: at byte {}: {}", input_.name(), op_offset_, error_.empty() ? "unreadable" : error_));
}

bool PickleWindow::cut_off() {
  return bad("the pickle is cut off here; was it still being written? Take the snapshot again, or copy it again");
}

bool PickleWindow::refill() {
  const auto left = static_cast<std::size_t>(end_ - p_);
  base_ += static_cast<std::uint64_t>(p_ - buffer_.data());
  if (left > 0) std::memmove(buffer_.data(), p_, left);
  p_ = buffer_.data();
  std::size_t filled = left;
  while (filled < static_cast<std::size_t>(kLookahead) && !at_end_) {
    const auto n = input_.read({buffer_.data() + filled, buffer_.size() - filled});
    if (!n) {
      op_offset_ = base_;
      return bad(n.error().message);
    }
    at_end_ = *n == 0;
    filled += *n;
  }
  end_ = buffer_.data() + filled;
  return true;
}

bool PickleWindow::check_beginning() {
  op_offset_ = 0;
  if (p_ == end_) return bad("the file is empty; expected a file of torch.cuda.memory._dump_snapshot");
  if (end_ - p_ >= 2 && p_[0] == 'P' && p_[1] == 'K')
    return bad("a zip archive (of torch.save?); expected a file of torch.cuda.memory._dump_snapshot");
  const std::uint8_t first = *p_;
  // Protocols 0 and 1 have no header: they begin with the container, protocol 0 with a MARK.
  if (first != 0x80 && first != ']' && first != '}' && first != '(') return bad(what_it_is());
  return true;
}

bool PickleWindow::skip_padding() {
  for (;;) {
    for (; p_ != end_; ++p_)
      if (*p_ != 0) {
        trailing_ = offset();
        return true;
      }
    if (at_end_) return true;
    if (!refill()) return false;
  }
}

bool PickleWindow::take_beyond(std::uint64_t length, std::string_view& out, bool keep) {
  if (const auto size = input_.size_bytes(); size && length > *size - std::min(*size, offset()))
    return bad(fmt::format("{} of {} bytes, but only {} are left in the file", name(), length,
                           *size - std::min(*size, offset())));
  spill_.clear();
  while (length > 0) {
    const auto n = std::min<std::uint64_t>(length, static_cast<std::uint64_t>(end_ - p_));
    if (keep) spill_.append(reinterpret_cast<const char*>(p_), static_cast<std::size_t>(n));
    p_ += n;
    length -= n;
    if (length > 0) {
      if (!refill()) return false;
      if (p_ == end_) return cut_off();
    }
  }
  out = spill_;
  return true;
}

bool PickleWindow::line() {
  ++p_;
  line_.clear();
  for (;;) {
    const auto* newline = static_cast<const std::uint8_t*>(
        p_ == end_ ? nullptr : std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
    const std::uint8_t* const until = newline != nullptr ? newline : end_;
    line_.append(reinterpret_cast<const char*>(p_), static_cast<std::size_t>(until - p_));
    p_ = until;
    if (newline != nullptr) {
      ++p_;
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      return true;
    }
    if (line_.size() > kMostLine) return bad(fmt::format("{} with an argument of over {} bytes", name(), kMostLine));
    if (!refill()) return false;
    if (p_ == end_) return cut_off();
  }
}

bool PickleWindow::line_number(std::uint64_t& out, bool& negative) {
  if (!line()) return false;
  std::string_view text = line_;
  if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
  negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > (~std::uint64_t{0} - 9) / 10)
      return bad(fmt::format("{} with the argument '{:.40}'; expected a number of 64 bits", name(), line_));
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (text.empty() || (negative && value > (std::uint64_t{1} << 63)))
    return bad(fmt::format("{} with the argument '{:.40}'; expected a number of 64 bits", name(), line_));
  out = negative ? ~value + 1 : value;
  negative = negative && value != 0;
  return true;
}

}  // namespace vramtrack::trace
