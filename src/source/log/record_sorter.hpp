// RecordSorter: puts the records of a log in order, in bounded memory (an external merge sort), with the Spool: an
// unnamed temporary file for data that does not fit into memory.
//
//   add   |  buffer, 32 MiB  | full: sorted and written as a run ->  Spool  | run | run | run |
//   next  <- the smallest front of all runs, or of the buffer if nothing was written
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  /// Errors: the disk is full, or the file exceeds kMostBytes.
  Status append(std::string_view bytes);
  /// Fills `into` from `offset` on; returns fewer bytes only at the end of the file.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const;
  [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
  /// Path for opening the file again from its start; valid while this object lives.
  [[nodiscard]] std::string path() const;

 private:
  Spool(int fd, std::string folder) : fd_(fd), folder_(std::move(folder)) {}

  int fd_ = -1;
  std::string folder_;
  std::uint64_t size_ = 0;
};

/// Whole lines of a log that belong together.
struct LogRecord {
  std::int64_t key = 0;    ///< sort key
  std::uint64_t line = 1;  ///< number of the first line in the file
  bool complete = true;    ///< false for a last line without its newline
  std::string_view text;
};

/// Records with equal keys keep the order in which they were added. Takes up to 64 MiB of memory and, if the records
/// have more than 32 MiB, temporary disk space for all of them. Not thread-safe.
class RecordSorter {
 public:
  /// `buffer_bytes`: smaller in tests.
  explicit RecordSorter(std::size_t buffer_bytes = kBufferBytes) : buffer_bytes_(buffer_bytes) {}

  /// Copies the record. Returns the Spool's errors. REQUIRES: before the first next().
  Status add(const LogRecord& record);
  /// Reads the next record by key; returns false at the end. Its text is valid until the next call.
  Result<bool> next(LogRecord& out);
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  static constexpr std::size_t kBufferBytes = 32 * kBytesPerMiB;

  struct Entry {
    std::int64_t key = 0;
    std::uint64_t line = 0;
    std::size_t offset = 0;
    std::uint32_t length = 0;
    bool complete = true;
  };
  /// A sorted part of the spool, read through a window.
  struct Run {
    std::uint64_t at = 0;
    std::uint64_t end = 0;
    std::vector<char> window;
    std::size_t begin = 0;
    std::size_t filled = 0;
    LogRecord front;
  };

  Status spill();
  Status start();
  Result<bool> advance(Run& run);
  Status fill(Run& run, std::size_t least);
  [[nodiscard]] bool later(std::size_t a, std::size_t b) const;

  std::size_t buffer_bytes_;
  std::uint64_t size_ = 0;
  std::string text_;
  std::vector<Entry> entries_;
  std::size_t taken_ = 0;  ///< position in entries_, if nothing was spilled
  std::optional<Spool> spool_;
  std::vector<Run> runs_;
  std::vector<std::size_t> heap_;   ///< indices of runs_, the one with the smallest front first
  std::size_t current_ = SIZE_MAX;  ///< the run that supplied the last record returned
  bool started_ = false;
};
}  // namespace vramtrack
