// ByteInput: the bytes of a file from its beginning, decompressed on the fly. Only a window of them is held in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack {

struct ByteInputOptions {
  /// The plural noun for the contents of such files, for error messages: "snapshots".
  std::string_view contents = "files";
  /// Whether damaged or truncated compressed data is an error. If false, it is a warning, and reading ends there.
  bool is_damage_an_error = true;
  /// Data that expands by more than this factor, beyond 64 MiB, is an error: it was made to fill memory. 0: no limit.
  std::uint64_t most_ratio = 0;
};

/// Reads once, front to back. Not thread-safe.
class ByteInput {
 public:
  /// Opens a file or pipe; "-" is standard input. gzip and zstd are recognised by their first bytes, whatever the name;
  /// several members or frames in a row are read as one. Errors name the file and the reason.
  static Result<ByteInput> open(const std::string& path, const ByteInputOptions& options = {});
  /// Reads bytes that belong to the caller and must outlive this object; compressed ones are recognised as well.
  static Result<ByteInput> over(std::span<const std::uint8_t> bytes, std::string name,
                                const ByteInputOptions& options = {});

  ByteInput(ByteInput&&) noexcept;
  ByteInput& operator=(ByteInput&&) noexcept;
  ~ByteInput();

  /// Up to `most` bytes from here without consuming them: read() returns them again. Fewer only at the end. Valid until
  /// the next call. REQUIRES: before the first read().
  Result<std::span<const std::uint8_t>> peek(std::size_t most);

  /// Reads up to into.size() bytes; 0 only at the end. Errors name the file and place. REQUIRES: `into` is not empty.
  Result<std::size_t> read(std::span<std::uint8_t> into);

  /// A problem that is not an error (see is_damage_an_error); empty if there was none.
  [[nodiscard]] const std::string& warning() const;
  /// The total number of bytes, if known: for uncompressed regular files and for memory.
  [[nodiscard]] std::optional<std::uint64_t> size_bytes() const;
  /// Moves to `offset` from the beginning. Possible only in an uncompressed regular file; returns false for any other.
  bool seek(std::uint64_t offset);
  /// The path, "standard input", or the name given to over().
  [[nodiscard]] const std::string& name() const;

 private:
  struct State;
  explicit ByteInput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramtrack
