// The text of a log file as UTF-8, whatever it is stored as: plain, .gz or .zst, UTF-8 or UTF-16, or standard input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/byte_input.hpp"
#include "core/result.hpp"
#include "source/log/terminal_text.hpp"

namespace vramtrack {

/// Reads a file once, front to back, as UTF-8 without a byte-order mark and without a terminal's escape sequences.
/// Holds under 1 MiB whatever the size. Not thread-safe.
class TextInput {
 public:
  /// Opens `path`; "-" is standard input. Errors name the file and the reason.
  static Result<std::unique_ptr<TextInput>> open(const std::string& path);

  /// Fills `to` with up to `size` bytes of text; 0 at the end. REQUIRES size >= 4: a character of UTF-16 may need that.
  Result<std::size_t> read(char* to, std::size_t size);

  /// What was noticed that is not fatal (a compressed file that is cut off); empty when nothing.
  [[nodiscard]] const std::string& warning() const { return bytes_.warning(); }
  /// Size on disk when this is a plain, seekable, uncompressed UTF-8 file that draws no screen; 0 otherwise.
  [[nodiscard]] std::size_t plain_size() const { return plain_size_; }
  /// Moves a plain file (plain_size() > 0) to `offset` bytes from its start.
  bool seek(std::size_t offset);

 private:
  enum class Encoding : std::uint8_t { utf8, utf16_little, utf16_big };

  explicit TextInput(ByteInput bytes);
  Result<std::size_t> read_raw(char* to, std::size_t size);
  Status refill();
  Status settle_encoding();
  std::size_t decode(char* to, std::size_t size);

  ByteInput bytes_;
  Encoding encoding_ = Encoding::utf8;
  std::vector<char> waiting_;  ///< [at_, end_) waits to be handed out or decoded
  std::size_t at_ = 0, end_ = 0;
  bool done_ = false;
  std::size_t plain_size_ = 0;
  unsigned high_surrogate_ = 0;
  TerminalText terminal_;
  std::string shown_;  ///< what it made plain; [shown_at_, end) waits to be handed out
  std::size_t shown_at_ = 0;
  bool finished_ = false;
};

}  // namespace vramtrack
