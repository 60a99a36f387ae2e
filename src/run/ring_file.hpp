// The reader's end of a ring: takes a program's records while it runs and after it has ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "probe/wire.hpp"

namespace vramtrack::run {

/// One process's ring. Not thread-safe; the program writes while this reads, and neither waits.
class RingFile {
 public:
  /// Maps the ring at `path`. An Error if it is not a ring or has another version. A ring that its program is still
  /// creating is an Error, too; try again.
  static Result<RingFile> open(const std::string& path);
  RingFile(RingFile&& other) noexcept;
  RingFile& operator=(RingFile&& other) noexcept;
  ~RingFile();

  [[nodiscard]] std::uint32_t pid() const { return header_->pid; }
  [[nodiscard]] std::uint64_t start_ticks() const { return header_->start_ticks; }
  [[nodiscard]] std::int64_t begin_realtime_us() const { return header_->begin_realtime_us; }
  [[nodiscard]] probe::RingHeader& header() const { return *header_; }

  /// Whether the program image that created the ring is gone: nobody has locked its file, and the process with its pid,
  /// if any, has not mapped it. For a process in another pid namespace, only the lock is checked.
  [[nodiscard]] bool is_abandoned() const;

  /// Appends the records written since the last call, at most `most`, and frees their space; returns their number.
  /// Records without space are reported in a separate record (Record::lost). An incomplete record ends the reading; if
  /// `is_over`, because the program is gone, it is left out.
  std::size_t take(std::vector<probe::Slot>& into, std::size_t most, bool is_over);

 private:
  RingFile() = default;
  [[nodiscard]] bool is_mapped() const;

  probe::RingHeader* header_ = nullptr;
  probe::Slot* slots_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::uint64_t capacity_ = 0;  ///< as validated: the program may write anything into its header
  int file_ = -1;               ///< to detect truncation
  std::uint64_t lost_ = 0;      ///< number of lost records reported so far
};

}  // namespace vramtrack::run
