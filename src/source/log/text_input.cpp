#include "source/log/text_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kWaitingBytes = 64 * kBytesPerKiB;
constexpr std::size_t kScreenStretch = kBytesPerKiB;
/// This many bytes are enough to distinguish UTF-16 without a byte-order mark from UTF-8.
constexpr std::size_t kDetectionBytes = 64;

/// The magic numbers of bzip2, xz and zip.
constexpr std::string_view kNotRead[] = {"BZh", "\xfd\x37zX", "PK\x03\x04"};

/// `to` gets the UTF-8 of `code`: 1 to 4 bytes. Returns how many.
std::size_t put_utf8(unsigned code, char* to) {
  std::size_t n = 0;
  const auto put = [&](unsigned byte) { to[n++] = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
  return n;
}

}  // namespace

TextInput::TextInput(ByteInput bytes) : bytes_(std::move(bytes)), waiting_(kWaitingBytes) {}

Result<std::unique_ptr<TextInput>> TextInput::open(const std::string& path) {
  ByteInputOptions options;
  options.contents = "log files";
  options.is_damage_an_error = false;  // a damaged log is read up to the damage
  auto bytes = ByteInput::open(path, options);
  if (!bytes) return fail(std::move(bytes.error()));
  std::unique_ptr<TextInput> input(new TextInput(std::move(*bytes)));
  if (auto ok = input->detect_encoding(); !ok) return fail(std::move(ok.error()));
  return input;
}

Status TextInput::refill() {
  std::memmove(waiting_.data(), waiting_.data() + at_, end_ - at_);
  end_ -= at_;
  at_ = 0;
  auto n = bytes_.read({reinterpret_cast<std::uint8_t*>(waiting_.data()) + end_, waiting_.size() - end_});
  if (!n) return fail(std::move(n.error()));
  end_ += *n;
  done_ = *n == 0;
  return {};
}

/// Examines the first bytes: a byte-order mark, or the zero bytes of UTF-16 without one.
Status TextInput::detect_encoding() {
  while (end_ < waiting_.size() && !done_)
    if (auto ok = refill(); !ok) return ok;
  const std::string_view start(waiting_.data(), end_);
  for (const std::string_view magic : kNotRead)
    if (start.starts_with(magic))
      return fail(fmt::format("{}: compressed with bzip2, xz or zip, which are not supported; decompress it first",
                              bytes_.name()));
  auto records = RunFile::recognise(start);
  if (!records) return fail(fmt::format("{}: {}", bytes_.name(), records.error().message));
  if (start.starts_with("\xff\xfe")) {
    encoding_ = Encoding::utf16_little;
    at_ = 2;
  } else if (start.starts_with("\xfe\xff")) {
    encoding_ = Encoding::utf16_big;
    at_ = 2;
  } else if (start.starts_with("\xef\xbb\xbf")) {
    at_ = 3;
  } else if (*records != nullptr) {
    records_ = std::move(*records);
    encoding_ = Encoding::records;
  } else if (end_ >= 16) {
    std::size_t even = 0;
    std::size_t odd = 0;
    const std::size_t looked = std::min(end_, kDetectionBytes) / 2 * 2;
    for (std::size_t i = 0; i < looked; ++i)
      if (start[i] == '\0') (i % 2 == 0 ? even : odd) += 1;
    if (odd * 2 == looked && even == 0) encoding_ = Encoding::utf16_little;
    if (even * 2 == looked && odd == 0) encoding_ = Encoding::utf16_big;
  }
  if (encoding_ == Encoding::utf8 && TerminalText::draws_screen(start)) terminal_.keep_screen();
  return {};
}

std::string TextInput::warning() const {
  std::string out = bytes_.warning();
  if (has_updates_)
    out += fmt::format(
        "{}{}: has carriage returns within its lines, as progress bars write them: each of these updates is "
        "read, and counted, as a line",
        out.empty() ? "" : "; ", bytes_.name());
  const std::string of_records = records_ != nullptr ? records_->warning() : std::string();
  if (!of_records.empty()) out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", bytes_.name(), of_records);
  return out;
}

/// Decodes the buffered bytes to text at `to`; returns 0 if more bytes are needed.
std::size_t TextInput::decode(char* to, std::size_t size) {
  return encoding_ == Encoding::records ? decode_records(to, size) : decode_utf16(to, size);
}

std::size_t TextInput::decode_records(char* to, std::size_t size) {
  if (lines_at_ == lines_.size()) {
    lines_.clear();
    lines_at_ = 0;
    records_->feed({waiting_.data() + at_, end_ - at_}, lines_);
    at_ = end_;
    if (done_) records_->end();
  }
  const std::size_t n = lines_.copy(to, size, lines_at_);
  lines_at_ += n;
  return n;
}

/// Decodes the buffered UTF-16 into UTF-8 at `to`; size >= 4.
std::size_t TextInput::decode_utf16(char* to, std::size_t size) {
  std::size_t n = 0;
  while (end_ - at_ >= 2 && n + 4 <= size) {
    const auto a = static_cast<unsigned char>(waiting_[at_]);
    const auto b = static_cast<unsigned char>(waiting_[at_ + 1]);
    at_ += 2;
    unsigned unit = encoding_ == Encoding::utf16_little ? a | (unsigned{b} << 8) : b | (unsigned{a} << 8);
    if (unit >= 0xd800 && unit < 0xdc00) {
      high_surrogate_ = unit;
      continue;
    }
    if (unit >= 0xdc00 && unit < 0xe000)
      unit = high_surrogate_ != 0 ? 0x10000 + ((high_surrogate_ - 0xd800) << 10) + (unit - 0xdc00) : '?';
    high_surrogate_ = 0;
    n += put_utf8(unit, to + n);
  }
  return n;
}

Result<std::size_t> TextInput::read(char* to, std::size_t size) {
  while (true) {
    std::size_t end = 0;
    if (return_waits_) to[end++] = '\r';
    auto more = read_shown(to + end, size - end);
    if (!more) return more;
    end += *more;
    return_waits_ = *more > 0 && to[end - 1] == '\r';
    if (return_waits_) --end;
    const char* const last = to + end;
    for (char* at = to;
         (at = static_cast<char*>(std::memchr(at, '\r', static_cast<std::size_t>(last - at)))) != nullptr; ++at) {
      // After the last byte there is another carriage return, or the end of the text.
      if (at + 1 == last || at[1] == '\r' || at[1] == '\n') continue;
      *at = '\n';
      has_updates_ = true;
    }
    if (end > 0 || *more == 0) return end;
  }
}

/// As read(), but keeps the carriage returns.
Result<std::size_t> TextInput::read_shown(char* to, std::size_t size) {
  while (true) {
    if (shown_at_ < shown_.size()) {
      const std::size_t n = std::min(size, shown_.size() - shown_at_);
      std::memcpy(to, shown_.data() + shown_at_, n);
      shown_at_ += n;
      return n;
    }
    shown_.clear();
    shown_at_ = 0;
    // A few bytes may change a whole screen, so only a little is read at a time.
    auto n = read_raw(to, terminal_.passes_text() ? size : std::min(size, kScreenStretch));
    if (!n) return n;
    if (*n == 0) {
      if (finished_) return n;
      finished_ = true;
      terminal_.finish(shown_);
      if (shown_.empty()) return n;
    } else if (terminal_.passes_text() && std::memchr(to, '\x1b', *n) == nullptr) {
      terminal_.pass({to, *n});
      return n;
    } else {
      terminal_.feed({to, *n}, shown_);
    }
  }
}

Result<std::size_t> TextInput::read_raw(char* to, std::size_t size) {
  if (encoding_ == Encoding::utf8) {
    if (at_ == end_) return bytes_.read({reinterpret_cast<std::uint8_t*>(to), size});
    const std::size_t n = std::min(size, end_ - at_);
    std::memcpy(to, waiting_.data() + at_, n);
    at_ += n;
    return n;
  }
  if (size < 4) return std::size_t{0};
  while (true) {
    if (const std::size_t n = decode(to, size); n > 0) return n;
    if (done_) return std::size_t{0};
    if (auto ok = refill(); !ok) return fail(std::move(ok.error()));
  }
}

}  // namespace vramtrack
