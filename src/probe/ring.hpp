// The writer's end of the ring: records go into shared memory, where they survive however the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "probe/wire.hpp"

namespace vramtrack::probe {

/// Any thread may write without waiting. A record without space is counted as lost.
class Ring {
 public:
  /// Creates `directory`/ring.PID.N with the first free N: an earlier image of this process (exec) or a process of
  /// another pid namespace may have the others. It gets its name once complete. While this image lives, its file is
  /// locked (F_OFD_SETLK). Uses a spare ring if there is one, else creates a file no larger than this process may
  /// write. False if there is none: the caller stays inert; errno is EFBIG if that limit is the reason. Allocates
  /// nothing.
  bool create(const char* directory);
  /// Creates a ring without a file: only held bytes and limits, no records.
  bool create_private();
  /// Call after a fork: the parent's ring is not the child's.
  void forget();
  [[nodiscard]] bool exists() const { return header_ != nullptr; }
  [[nodiscard]] RingHeader& header() const { return *header_; }

  void put(std::uint64_t head, std::uint64_t a, std::uint64_t address, std::uint64_t bytes);
  /// Writes a text under `number`, in chunks.
  void put_text(std::uint32_t number, std::string_view text);
  /// Time since the ring began.
  [[nodiscard]] std::uint64_t now_us() const;

 private:
  void begin(void* mapped, std::size_t bytes, std::uint64_t slots);
  void hold(int file);

  RingHeader* header_ = nullptr;
  Slot* slots_ = nullptr;
  std::uint64_t slot_count_ = 0;  ///< number of slots, a power of two
  std::size_t mapped_bytes_ = 0;
  std::uint64_t begin_monotonic_ns_ = 0;
  int file_ = -1;
  std::uint64_t inode_ = 0;  ///< the inode of file_
};

/// The ring of this process; see recorder.cpp.
Ring& ring();
/// A number for a text, unique in this process.
std::uint32_t next_text();
/// Writes `text` and returns its number.
std::uint32_t record_text(std::string_view text);

}  // namespace vramtrack::probe
