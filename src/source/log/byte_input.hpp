// The text of a log file: plain, .gz or .zst (told by their first bytes), UTF-8 or UTF-16, or standard input.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/result.hpp"

namespace vramtrack {

/// Reads a file once, front to back, as UTF-8 without a byte-order mark. Holds under 1 MiB whatever the size.
/// Not thread-safe.
class ByteInput {
 public:
  /// Opens `path`; "-" is standard input. Errors name the file and the reason.
  static Result<std::unique_ptr<ByteInput>> open(const std::string& path);
  ~ByteInput();
  ByteInput(const ByteInput&) = delete;
  ByteInput& operator=(const ByteInput&) = delete;

  /// Fills `to` with up to `size` bytes of text; 0 at the end. REQUIRES size >= 4.
  Result<std::size_t> read(char* to, std::size_t size);

  /// What was noticed that is not fatal (a compressed file that breaks off); empty when nothing.
  [[nodiscard]] const std::string& warning() const;
  /// Size on disk when this is a plain, seekable, uncompressed UTF-8 file; 0 otherwise.
  [[nodiscard]] std::size_t plain_size() const;
  /// Moves a plain file (plain_size() > 0) to `offset` bytes from its start.
  bool seek(std::size_t offset);

 private:
  struct State;
  explicit ByteInput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramtrack
