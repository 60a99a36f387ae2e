// Spool: an unnamed temporary file for data that does not fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"

namespace vramtrack {

/// An unnamed file in $TMPDIR, else in /tmp: it disappears with this object, even if the program crashes. Not
/// thread-safe. Errors name the folder and what to do.
class Spool {
 public:
  static constexpr std::uint64_t kMostBytes = 8 * kBytesPerGiB;

  static Result<Spool> make();
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&& other) noexcept;
  ~Spool();

  /// Errors: the disk is full, or more than kMostBytes.
  Status append(std::string_view bytes);
  /// Fills `into` from `offset` on; returns fewer bytes only at the end of the file.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const;
  [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
  /// Opens it again from its beginning; valid while this object lives.
  [[nodiscard]] std::string path() const;

 private:
  Spool(int fd, std::string folder) : fd_(fd), folder_(std::move(folder)) {}

  int fd_ = -1;
  std::string folder_;
  std::uint64_t size_ = 0;
};

}  // namespace vramtrack
