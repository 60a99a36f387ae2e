// The text of a log file as UTF-8, in whatever form it is stored: plain, .gz or .zst, UTF-8 or UTF-16, the records of a
// binary file as lines, or standard input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/byte_input.hpp"
#include "core/result.hpp"
#include "source/log/run_file.hpp"
#include "source/log/terminal_text.hpp"

namespace vramtrack {

/// Reads a file once, front to back, as UTF-8 without a byte-order mark and without terminal escape sequences. Holds
/// less than 1 MiB for any size. Not thread-safe.
class TextInput {
 public:
  /// Opens `path`; "-" is standard input. Errors name the file and the reason.
  static Result<std::unique_ptr<TextInput>> open(const std::string& path);

  /// Fills `to` with up to `size` bytes of text; 0 at the end. A carriage return without a line feed, as a
  /// progress bar writes before each update, becomes a line feed. REQUIRES size >= 8: a character of UTF-16 may
  /// need 4.
  Result<std::size_t> read(char* to, std::size_t size);

  /// A problem that is not fatal (a truncated compressed file); empty: none.
  [[nodiscard]] std::string warning() const;

 private:
  enum class Encoding : std::uint8_t { utf8, utf16_little, utf16_big, records };

  explicit TextInput(ByteInput bytes);
  Result<std::size_t> read_shown(char* to, std::size_t size);
  Result<std::size_t> read_raw(char* to, std::size_t size);
  Status refill();
  Status detect_encoding();
  std::size_t decode(char* to, std::size_t size);
  std::size_t decode_utf16(char* to, std::size_t size);
  std::size_t decode_records(char* to, std::size_t size);

  ByteInput bytes_;
  Encoding encoding_ = Encoding::utf8;
  std::vector<char> waiting_;  ///< [at_, end_) has not been returned or decoded yet
  std::size_t at_ = 0, end_ = 0;
  bool done_ = false;
  unsigned high_surrogate_ = 0;
  std::unique_ptr<RunFile> records_;
  std::string lines_;  ///< of the records; [lines_at_, end) has not been returned yet
  std::size_t lines_at_ = 0;
  TerminalText terminal_;
  std::string shown_;  ///< plain text from terminal_; [shown_at_, end) has not been returned yet
  std::size_t shown_at_ = 0;
  bool finished_ = false;
  bool return_waits_ = false;  ///< a carriage return whose next character is unknown yet
  bool has_updates_ = false;   ///< some were not followed by a line feed
};

}  // namespace vramtrack
