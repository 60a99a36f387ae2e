// ByteInput: the bytes of a file from its beginning, decompressed on the way; only a window of them is ever in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/result.hpp"

namespace vramtrack::trace {

class ByteInput {
 public:
  /// A regular file or a pipe, "-" for standard input; gzip and zstd are recognised by their first bytes.
  static Result<ByteInput> open(const std::string& path);
  /// Bytes of somebody else that must outlive this; compressed ones are recognised as well.
  static Result<ByteInput> over(std::span<const std::uint8_t> bytes, std::string name);

  ByteInput(ByteInput&&) noexcept;
  ByteInput& operator=(ByteInput&&) noexcept;
  ~ByteInput();

  /// Up to `most` bytes from here without taking them: read() gives them again. Fewer at the end only. Valid until the
  /// next call. Once, before the first read().
  Result<std::span<const std::uint8_t>> peek(std::size_t most);

  /// Up to into.size() bytes; 0 at the end only. Errors name the file and the place: unreadable, broken or cut-off
  /// compression, or a compression ratio that only a bomb has.
  Result<std::size_t> read(std::span<std::uint8_t> into);

  /// Bytes in all, where that is known: uncompressed regular files and memory.
  [[nodiscard]] std::optional<std::uint64_t> size_bytes() const;
  [[nodiscard]] const std::string& name() const;

 private:
  struct State;
  explicit ByteInput(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vramtrack::trace
