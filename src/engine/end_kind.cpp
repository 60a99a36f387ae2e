#include "engine/end_kind.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

constexpr double kNearLimit = 0.1;    ///< at most this share of the limit was free
constexpr double kOutOfMemory = 0.1;  ///< at most this share of what was free at the onset is still free

}  // namespace

EndKind end_kind(const LastFigures& last) {
  if (!last.limit_bytes || *last.limit_bytes <= 0) return EndKind::ended;
  const double free_bytes = *last.limit_bytes - last.used_bytes;
  if (last.growth_bytes_per_s && last.onset_bytes) {
    const double unseen_bytes = std::max(0.0, *last.growth_bytes_per_s) * last.unseen_s;
    if (free_bytes - unseen_bytes <= kOutOfMemory * (*last.limit_bytes - *last.onset_bytes))
      return EndKind::out_of_memory;
  }
  return free_bytes <= kNearLimit * *last.limit_bytes ? EndKind::ended_near_limit : EndKind::ended;
}

}  // namespace vramtrack
