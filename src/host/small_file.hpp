// Reading the kernel's small text files (/proc, /sys): one open, read, close; no streams, no seeking.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/ascii.hpp"
#include "core/number_text.hpp"

namespace vramtrack {

/// Reads the beginning of the file at `path` (NUL-terminated) into `buffer` and returns what was read, a
/// view into it; nullopt if it cannot be opened or read, with errno as the kernel set it. A file of zero
/// length is an empty view. Content beyond the buffer is not read. Cost: three system calls.
std::optional<std::string_view> read_small_file(const char* path, std::span<char> buffer);

/// The same for text of unknown length up to `limit_bytes`; longer files are cut there.
std::optional<std::string> read_text_file(const std::string& path, std::size_t limit_bytes);

/// Its first line, without the newline, at most 4 KiB; empty if it cannot be read.
std::string first_line(const std::string& path);

/// A whole file that contains one unsigned number, decimal or 0x-hexadecimal; nullopt if it contains anything else.
std::optional<std::uint64_t> read_number_file(const std::string& path);

/// The target of a link, at most 4 KiB of it; empty if it cannot be read. Cost: one system call.
std::string link_target(const std::string& path);

/// All of `text` as an unsigned number.
inline std::optional<std::uint64_t> parse_unsigned(std::string_view text, int base = 10) {
  return parse_number<std::uint64_t>(text, base);
}

/// Cuts the first line off `text` and returns it without its newline.
std::string_view next_line(std::string_view& text);

}  // namespace vramtrack
