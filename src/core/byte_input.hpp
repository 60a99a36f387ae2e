// ByteInput: the bytes of a file from its beginning, decompressed on the way. Only a window of them is ever in memory.
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
  /// What such files hold, in the plural, for the errors: "snapshots".
  std::string_view contents = "files";
  /// Compressed data that is damaged or cut off: an error, or (false) a warning and the end of what is read.
  bool is_damage_an_error = true;
  /// Data that grows by more than this factor, past 64 MiB, is an error: it is made to fill memory. 0: no limit.
  std::uint64_t most_ratio = 0;
};

/// Reads once, front to back. Not thread-safe.
class ByteInput {
 public:
  /// A file or a pipe; "-" is standard input. gzip and zstd are recognised by their first bytes, whatever the name is;
  /// several members or frames one after another are read as one. Errors name the file and the reason.
  static Result<ByteInput> open(const std::string& path, const ByteInputOptions& options = {});
  /// Bytes that belong to the caller and must outlive this; compressed ones are recognised as well.
  static Result<ByteInput> over(std::span<const std::uint8_t> bytes, std::string name,
                                const ByteInputOptions& options = {});

  ByteInput(ByteInput&&) noexcept;
  ByteInput& operator=(ByteInput&&) noexcept;
  ~ByteInput();

  /// Up to `most` bytes from here without taking them: read() gives them again. Fewer at the end only. Valid until the
  /// next call. REQUIRES: before the first read().
  Result<std::span<const std::uint8_t>> peek(std::size_t most);

  /// Up to into.size() bytes; 0 at the end only. Errors name the file and the place. REQUIRES: `into` is not empty.
  Result<std::size_t> read(std::span<std::uint8_t> into);

  /// What was noticed that is no error (see is_damage_an_error); empty when nothing.
  [[nodiscard]] const std::string& warning() const;
  /// Bytes in all, where that is known: uncompressed regular files and memory.
  [[nodiscard]] std::optional<std::uint64_t> size_bytes() const;
  /// Moves to `offset` from the beginning. Only an uncompressed regular file can: false for any other.
  bool seek(std::uint64_t offset);
  /// The path, "standard input", or the name given to over().
  [[nodiscard]] const std::string& name() const;

 private:
  struct State;
  explicit ByteInput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramtrack
