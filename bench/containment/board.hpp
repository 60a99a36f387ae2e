// The board: a file that the bench and the programs that it starts map, one slot per program. So the truth about each
// is known to the bench, and not told by what is measured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bench {

/// What a program does with its life, once its `onset` has come.
enum class Kind : std::uint32_t {
  steady,    ///< holds its memory and works
  sawtooth,  ///< takes and releases
  warm_up,   ///< grows to a level, more and more slowly
  batches,   ///< takes another amount for each batch
  brief,     ///< as steady, and soon over
  server,    ///< listens on a port, and nobody calls
  leaks,     ///< its memory grows to the end
  stubborn,  ///< likewise, and it ignores SIGTERM
  hangs,     ///< waits for what does not come
  stopped,   ///< somebody sent SIGSTOP
  orphaned,  ///< its parent has ended, and it waits for it
};
inline constexpr const char* kKindNames[] = {"steady", "sawtooth", "warm_up", "batches", "brief",   "server",
                                             "leaks",  "stubborn", "hangs",   "stopped", "orphaned"};
inline constexpr std::size_t kKinds = sizeof kKindNames / sizeof *kKindNames;

constexpr bool is_leak(Kind kind) {
  return kind == Kind::leaks || kind == Kind::stubborn;
}
constexpr bool is_zombie(Kind kind) {
  return kind == Kind::hangs || kind == Kind::stopped || kind == Kind::orphaned;
}

/// Times are of CLOCK_MONOTONIC in us; 0: it has not happened.
struct Slot {
  Kind kind = Kind::steady;
  std::uint32_t seed = 0;
  std::uint32_t device = 0;
  double speed = 1;  ///< seconds of the watch a second
  // In seconds of the watch.
  double length_s = 0;
  double onset_s = 0;
  double checkpoint_s = 0;
  double growth_bytes_per_s = 0;
  std::uint64_t base_bytes = 0;
  std::atomic<std::uint32_t> pid{0};
  std::atomic<std::int64_t> began_us{0}, trouble_us{0}, asked_us{0}, saved_us{0}, full_us{0}, ended_us{0};
};

std::int64_t now_us();
/// Maps `slots` slots of the file; nullptr: it cannot be.
Slot* map_board(const char* path, std::size_t slots);

/// The life of one program. Returns its exit status.
int live(Slot& slot);

}  // namespace bench
